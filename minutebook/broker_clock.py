"""How far the broker's clock is from this process's, as acks tell: it stamped between the sending and the ack."""

from __future__ import annotations

from typing import Final

KEPT_MS: Final = 60_000
"""An older ack says nothing of now."""


class BrokerClock:
    """`skew_ms`: what is certain of the broker's clock being ahead (behind: below 0), by the last ack."""

    def __init__(self) -> None:
        self.skew_ms = 0
        self._learned_at = -KEPT_MS

    def acknowledged(self, sent_at: int, stamp: int, now: int) -> None:
        """A record sent at `sent_at` by our clock was stamped `stamp`, and acknowledged `now`. All in ms."""
        self.skew_ms = stamp - min(max(stamp, sent_at), now)
        self._learned_at = now

    def fault(self, now: int, bound_ms: int) -> str:
        """What to do about a clock that is off by more than `bound_ms`; empty if it is not, or nothing is known."""
        if abs(self.skew_ms) <= bound_ms or now - self._learned_at > KEPT_MS:
            return ""
        return f"this machine's clock is {-self.skew_ms} ms off the broker's: set it right"
