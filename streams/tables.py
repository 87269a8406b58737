"""Faust's table manager for an app without tables."""

from __future__ import annotations

from faust.tables import TableManager


class NoTables(TableManager):
    """Starts at once: faust-streaming 0.15.3 waits a second for tables to register before the group is joined.

    An owner that comes back within the session timeout takes its partitions up again without a rebalance (KIP-345).
    """

    async def on_start(self) -> None:
        """Faust's, without the wait."""
        if not self.should_stop:
            await self._update_channels()
            await self.recovery.start()
