"""How a worker hears from the owners and speaks to them: its partition of `worker-inbox`, `worker-reports`, and
`job-commands` for what it declares."""

from __future__ import annotations

from typing import Protocol


class Channel(Protocol):
    """Used from the link's event loop alone. While the broker is away, calls wait and try again; they do not raise for it."""

    async def open(self, worker_id: str) -> int:
        """Connect and find the end of the inbox: what is written later will be read. Answers the number of partitions P."""
        ...

    async def poll(self) -> list[bytes]:
        """Records for this worker since the last call, in order; may be empty after a while without any."""
        ...

    async def send(self, partition: int, value: bytes) -> int:
        """Put a report on `partition` and wait for the ack. Answers the broker's stamp (ms). May arrive twice."""
        ...

    async def command(self, key: str, value: bytes) -> bool:
        """Put a command on `job-commands`, on the partition of its key, and wait for the ack. May arrive twice. False where
        the broker does not allow it.
        """
        ...

    async def close(self) -> None:
        """Let go; `poll` and `send` under way are cancelled by the caller before."""
        ...
