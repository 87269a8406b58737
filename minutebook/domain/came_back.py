"""From whom an execution came back last: it goes to that session again only if no other offers for it.

In memory only, and bounded: whoever forgets one of them at worst tries the same session twice.
"""

from __future__ import annotations

from typing import Final

KEPT_MAX: Final = 4_096


class CameBack:
    """Sessions that returned, lost or failed an execution that waits again. Empty most of the time, and then false."""

    def __init__(self) -> None:
        self._sessions: dict[bytes, str] = {}

    def __bool__(self) -> bool:
        return bool(self._sessions)

    def note(self, key: bytes, session: str) -> None:
        """The execution with this row came back from `session`."""
        if len(self._sessions) >= KEPT_MAX:
            del self._sessions[next(iter(self._sessions))]
        self._sessions[key] = session

    def forget(self, key: bytes) -> None:
        """The execution is granted again, or given up."""
        self._sessions.pop(key, None)

    def session_of(self, key: bytes) -> str:
        """From whom it came back; empty if it did not."""
        return self._sessions.get(key, "")
