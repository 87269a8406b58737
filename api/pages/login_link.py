"""The link that logs in once: made by what starts the process, for whoever sits in front of it."""

from __future__ import annotations

import hmac
from typing import Final

GOOD_MS: Final = 10 * 60_000


class LoginLink:
    """A token that is good once, until 10 minutes after `started_at` (ms). An empty one is good for nothing."""

    def __init__(self, token: str, key_hash: str, started_at: int) -> None:
        self._token = token
        self._key_hash = key_hash
        self._until = started_at + GOOD_MS

    def use(self, token: str, now: int) -> str | None:
        """SHA-256 of the key that the token stands for; None if it is another one, too old, or was used. `now`: ms."""
        is_good = bool(self._token) and hmac.compare_digest(self._token.encode(), token.encode())
        if not is_good or now >= self._until:
            return None
        self._token = ""
        return self._key_hash
