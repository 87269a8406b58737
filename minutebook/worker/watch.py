"""Tells when the user's event loop is blocked, and where. Runs on the link's loop."""

from __future__ import annotations

import asyncio
import sys
import threading
import traceback
from typing import Final

import structlog

BLOCKED_S: Final = 1.0
EVERY_S: Final = 0.5
EARLY_S: Final = 0.05
"""A timer may fire a moment early, which must not cost a whole further look."""

log = structlog.get_logger(__name__)


class Watch:
    """Asks `loop`, which runs in `thread`, for a sign of life again and again; reports once an episode."""

    def __init__(self, loop: asyncio.AbstractEventLoop, thread: threading.Thread) -> None:
        self._loop = loop
        self._thread = thread
        self._asked_at: float | None = None
        self._is_reported = False

    def look(self, now: float) -> None:
        """One look at time `now` (seconds, monotonic)."""
        if self._asked_at is None:
            self._asked_at = now
            self._loop.call_soon_threadsafe(self._answer)
        elif now - self._asked_at > BLOCKED_S - EARLY_S and not self._is_reported:
            self._is_reported = True
            log.warning("event_loop_blocked", seconds=round(now - self._asked_at, 1), stack=self._stack())

    def _answer(self) -> None:
        self._asked_at = None
        self._is_reported = False

    def _stack(self) -> str:
        frame = sys._current_frames().get(self._thread.ident or 0)
        return "".join(traceback.format_stack(frame)) if frame else ""
