"""What sessions offered, heard again from `worker-reports`: whether a grant was allowed, and a lease over.

An owner knows more than that of its sessions, and grants less. So this tells what it must not have done, not what it must.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from itertools import chain

from minutebook.domain import events as facts
from minutebook.domain.book import Book
from minutebook.domain.events import Event
from minutebook.domain.offers import Session, hear
from minutebook.domain.records import Report
from minutebook.domain.senseless import senseless
from minutebook.domain.state import Execution
from minutebook.errors import DecodeError
from minutebook.log.inputs import read_input
from minutebook.log.port import RawRecord
from minutebook.wire import topics


class Hearing:
    """Sessions of one partition as its reports show them."""

    def __init__(self, book: Book) -> None:
        self._book = book
        self._sessions: dict[str, Session] = {}
        self._over: set[str] = set()
        self.stamp = -1
        """The latest stamp of what was heard: nothing that an owner knows of leases is later."""

    def hear(self, record: RawRecord) -> None:
        """One record, in the order of the topic."""
        self.stamp = max(self.stamp, record.stamp)
        try:
            report = read_input(topics.REPORTS, record.value)
        except DecodeError:
            return
        if not isinstance(report, Report) or senseless(report, self._book.cursor.position):
            return
        session = self._sessions.get(report.session)
        if session is None and report.full is not None and report.session not in self._over:
            session = self._sessions[report.session] = Session(report.session)
            session.take(dict.fromkeys(self._running(report.session), b""))
        if session is not None and hear(session, report, record.stamp):
            _note_shown(session, report)

    def follow(self, placed: Iterable[tuple[Event, int]]) -> None:
        """Events of a frame: grants take up what is offered, ended sessions offer nothing."""
        for event, token in placed:
            match event:
                case facts.ExecutionsDueGranted() | facts.ExecutionsGranted():
                    for row, number in enumerate(event.session):
                        session = self._sessions.get(event.sessions[number])
                        if session is not None:
                            session.take({token + row: b""})
                case facts.SessionEnded():
                    self._over.add(event.session)
                    self._sessions.pop(event.session, None)
                case facts.OwnershipTaken():
                    self._take_over()
                case _:
                    pass

    def _take_over(self) -> None:
        """A new owner counts of its sessions' grants what runs, and does not know which of them arrived."""
        for session in self._sessions.values():
            running = self._running(session.name)
            session.above = deque(token for token in running if token > session.last_token)
            session.unacknowledged = dict.fromkeys(running)

    def _running(self, name: str) -> list[int]:
        return sorted(row.token for _, row in self._book.running.scan(b"") if row.session == name)

    def get(self, name: str) -> Session | None:
        """A session of which all is known that its grants rest on; None if it was not heard here."""
        return self._sessions.get(name)

    def fault_of_grants(self, name: str, rows: int, work: Iterable[tuple[str, str]]) -> str | None:
        """Why a session must not be granted so many executions of that (queue, task); empty if it may, None if it was not
        heard here."""
        session = self._sessions.get(name)
        if session is None or session.is_void:
            return None
        for queue, task in work:
            if queue not in session.queues or task not in session.tasks:
                return f"{name} did not offer to run {task} from queue {queue}"
        free = session.offer - len(session.above)
        return f"{name} offered {free} slots more, {rows} are granted" if rows > free else ""

    def fault_of_lease(self, name: str) -> str | None:
        """Why the lease of a session was not over; empty if it may have been, None if it was not heard here."""
        session = self._sessions.get(name)
        if session is None:
            return None
        left_ms = session.lease_end() - self.stamp
        return (
            f"the lease of {name} was good for {left_ms} ms more by all that was read" if left_ms >= 0 else ""
        )

    def fault_of_withdrawal(self, token: int, execution: Execution) -> str | None:
        """Why a grant must not be withdrawn; empty if it may, None if its session was not heard here."""
        session = self._sessions.get(execution.session)
        if session is None:
            return None
        if token not in session.unacknowledged:
            return f"{execution.session} had shown that it holds the token {token}, which is withdrawn"
        return ""


def _note_shown(session: Session, report: Report) -> None:
    """Grants that a report lists as held, or as under way, arrived."""
    held = [] if report.full is None else report.full.held
    for token in chain(held, (progress.token for progress in report.progress)):
        session.unacknowledged.pop(token, None)
