"""What acknowledged pulses tell: how long a session may run its tasks, and what time it is at the broker.

Times are seconds on a monotonic clock that runs through suspend; stamps are ms since the epoch, by the broker.
"""

from __future__ import annotations

import math
from typing import Final

_MARGIN_SHARE: Final = 0.1
_WINDOW_S: Final = 10.0


class Lease:
    """Lease of one session toward one partition. It counts from the moment at which the last acknowledged pulse was
    *sent*, so it ends here before it can end at the owner, whose count starts at the broker's later stamp.
    """

    def __init__(self, lease_s: float) -> None:
        self._span_s = lease_s * (1 - _MARGIN_SHARE)
        self._sent_at: float | None = None

    def sent(self, now: float) -> None:
        """A pulse goes out. Before the first ack, grants can rest on no other pulse than the first one."""
        if self._sent_at is None:
            self._sent_at = now

    def renewed(self, sent_at: float) -> None:
        """The pulse sent at `sent_at` is acknowledged."""
        if self._sent_at is None or sent_at > self._sent_at:
            self._sent_at = sent_at

    @property
    def ends_at(self) -> float:
        """From here on nothing of the session may run. Minus infinity before the first pulse."""
        return -math.inf if self._sent_at is None else self._sent_at + self._span_s


class BrokerTime:
    """The broker's time, never behind it: a pulse is stamped after it was sent, so stamp - sent bounds the difference
    of the clocks from above. The smallest bound of the last 10 to 20 s counts.
    """

    def __init__(self) -> None:
        self._ahead_ms = math.inf
        self._before_ms = math.inf
        self._window_ends_at = -math.inf

    def learn(self, stamp: int, sent_at: float, now: float) -> None:
        """A record sent at `sent_at` was stamped `stamp`."""
        if now >= self._window_ends_at:
            self._before_ms, self._ahead_ms = self._ahead_ms, math.inf
            self._window_ends_at = now + _WINDOW_S
        self._ahead_ms = min(self._ahead_ms, stamp - sent_at * 1_000)

    def local(self, stamp: int) -> float:
        """The broker's instant `stamp` on the monotonic clock, rather early than late; infinity while not known."""
        ahead_ms = min(self._ahead_ms, self._before_ms)
        return math.inf if ahead_ms == math.inf else (stamp - ahead_ms) / 1_000
