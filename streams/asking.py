"""What the workers whose home is this partition are asked to do, said again until their pulses show that they do it."""

from __future__ import annotations

from collections.abc import Iterable

from minutebook.domain import events as facts
from minutebook.domain import keys
from minutebook.domain.book import Book
from minutebook.domain.events import Event
from minutebook.domain.records import Inbox, Report
from minutebook.domain.workers import is_heard
from minutebook.ids import worker_of
from streams.sessions import Sessions


class Asking:
    """Wishes by worker, as fold remembers them. Said at once, and with each full pulse that does not show them."""

    def __init__(self, book: Book, sessions: Sessions, partition: int) -> None:
        self._book = book
        self._sessions = sessions
        self._partition = partition
        self._wanted = {keys.remembered_name(key): what for key, what in book.asked.scan(b"")}
        self._unsaid: dict[str, str] = {}

    def hear(self, report: Report) -> None:
        """A report that is taken."""
        if not self._wanted or report.full is None or report.pulse is None:
            return
        what = self._wanted.get(worker_of(report.session))
        if what is not None and not is_heard(what, report.pulse):
            self._unsaid[report.session] = what

    def follow(self, placed: Iterable[tuple[Event, int]]) -> None:
        """Wishes of the frame about to be committed; `placed` as in `Draft`."""
        for event, _ in placed:
            if isinstance(event, facts.WorkerAsked):
                self._wanted[event.worker] = event.what
                names = (session.name for session in self._sessions)
                self._unsaid |= {name: event.what for name in names if worker_of(name) == event.worker}

    def replies(self) -> list[Inbox]:
        """What is to be said since the last call."""
        position = self._book.cursor.position
        found = [
            Inbox(session, self._partition, position, 0, [], asked=what)
            for session, what in self._unsaid.items()
        ]
        self.forget()
        return found

    def forget(self) -> None:
        """Drop what was gathered for a draft that is forgotten; a later pulse brings it up again."""
        self._unsaid.clear()
