"""How often a key may ask: a bucket of tokens for each, in the memory of this process.

A bucket fills at a steady rate up to its burst, and each request takes one token. Fields: `RateLimit-Policy` and
`RateLimit` of draft-ietf-httpapi-ratelimit-headers, on every answer to a key while a rate is set.
"""

from __future__ import annotations

from math import ceil
from typing import Final

from fastapi import Request

from api.problems import Refused

SCOPE_KEY: Final = "minutebook.rate"
"""Where an ASGI scope keeps the fields that its answer is to carry."""

Headers = list[tuple[bytes, bytes]]


class Rates:
    """The buckets. `per_s`: requests a second, 0 = no limit; `burst`: how many may come at once."""

    def __init__(self, per_s: float, burst: int) -> None:
        self._per_s = per_s
        self._burst = burst
        self._buckets: dict[str, tuple[float, float]] = {}
        """By key: tokens that were left, and when that was."""
        self._policy = b'"key";q=%d;w=%d' % (burst, ceil(burst / per_s)) if per_s else b""

    def take(self, request: Request, key: str, now_s: float) -> None:
        """One request of `key`, at `now_s` of a monotonic clock. Raises Refused (rate-limited)."""
        if not self._per_s:
            return
        tokens, at = self._buckets.get(key, (float(self._burst), now_s))
        tokens = min(self._burst, tokens + (now_s - at) * self._per_s)
        is_over = tokens < 1
        left = tokens if is_over else tokens - 1
        self._buckets[key] = (left, now_s)
        request.scope[SCOPE_KEY] = self._fields(left)
        if is_over:
            wait_s = ceil((1 - tokens) / self._per_s)
            raise Refused("rate-limited", headers={"retry-after": str(wait_s)})

    def _fields(self, left: float) -> Headers:
        full_s = ceil((self._burst - left) / self._per_s)
        return [(b"ratelimit-policy", self._policy), (b"ratelimit", b'"key";r=%d;t=%d' % (left, full_s))]
