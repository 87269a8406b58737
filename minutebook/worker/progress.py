"""How far running attempts are: noted from any thread, taken by the link's, the latest of each."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import msgspec

from minutebook.domain.results import DETAILS_BYTES_MAX
from minutebook.worker.run import Run

TEXT_CHARS_MAX: Final = 1_000


class Noted(NamedTuple):
    """What a task said of its attempt: a share of 0 to 1, words for people, JSON text for the next attempt."""

    run: Run
    fraction: float
    text: str
    details: bytes


Note = Callable[[Noted], None]


def noted(run: Run, fraction: float, text: str, details: Any) -> Noted:
    """What a task says, checked. Raises ValueError for a share beyond 0 to 1 or details beyond 16 KiB of JSON."""
    if not 0 <= fraction <= 1:
        raise ValueError(f"a share of progress is from 0 to 1, not {fraction}")
    data = b"" if details is None else msgspec.json.encode(details)
    if len(data) > DETAILS_BYTES_MAX:
        raise ValueError(
            f"details of progress end at {DETAILS_BYTES_MAX} bytes: store them elsewhere, note where"
        )
    return Noted(run, float(fraction), text[:TEXT_CHARS_MAX], data)


class Board:
    """The latest of each attempt since the last `take`. `wake` is called when something is the first."""

    def __init__(self, wake: Callable[[], None]) -> None:
        self._wake = wake
        self._lock = threading.Lock()
        self._latest: dict[tuple[int, int], Noted] = {}

    def note(self, item: Noted) -> None:
        """From any thread."""
        with self._lock:
            is_first = not self._latest
            self._latest[item.run.key] = item
        if is_first:
            self._wake()

    def take(self) -> list[Noted]:
        """Everything noted since the last call."""
        with self._lock:
            latest, self._latest = self._latest, {}
        return list(latest.values())

    def has_any(self) -> bool:
        """Whether something waits to be taken."""
        return bool(self._latest)
