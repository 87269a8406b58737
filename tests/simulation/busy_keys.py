"""API keys in a busy log: declared, given another end, revoked."""

from __future__ import annotations

import random

from minutebook.domain import keys
from minutebook.domain.api_keys import ROLES
from minutebook.domain.commands import DeclareKey, RevokeKey
from tests.simulation.log_maker import LogMaker


class BusyKeys:
    """Takes random steps on a log; every step appends one record."""

    def __init__(self, maker: LogMaker, chance: random.Random) -> None:
        self._maker = maker
        self._random = chance

    def step(self) -> None:
        """A key is declared, also one that is there, or one of those that are there is revoked."""
        known = [keys.names(row) for row, _ in self._maker.book.api_keys.scan(b"")]
        about = {"issued_at": self._maker.clock.now(), "command_id": f"key-{len(self._maker.records)}"}
        if known and self._random.random() < 0.4:
            tenant, key = self._random.choice(known)
            self._maker.command(RevokeKey(tenant=tenant, key=key, **about))  # type: ignore[arg-type]  # as said
        else:
            self._declare(f"k{self._random.randint(1, 6)}", about)

    def _declare(self, key: str, about: dict[str, object]) -> None:
        now = self._maker.clock.now()
        self._maker.command(
            DeclareKey(
                tenant=self._random.choice(("acme", "blue")),
                key=key,
                role=self._random.choice(ROLES[:2]),
                sha256=key.encode() * 16,
                expires_at=self._random.choice((None, None, now + 60_000, now - 1)),
                **about,  # type: ignore[arg-type]  # as said
            )
        )
