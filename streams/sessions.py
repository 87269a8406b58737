"""The sessions of one partition: who offers, who holds what, whose lease or grant is over.

A lease ends and a grant is withdrawn only on evidence: when such a check is due the owner appends a `Tick` to
`worker-reports` and waits to read it, so only the broker's clock and unread pulses decide. One that came through late says
that the broker was away, and with it everybody's pulses: then all deadlines start again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from minutebook.domain import events as facts
from minutebook.domain import keys
from minutebook.domain.book import Book
from minutebook.domain.came_back import CameBack
from minutebook.domain.events import Event
from minutebook.domain.giving_up import Held
from minutebook.domain.offers import NO_QUEUES, NOTHING, Session
from minutebook.domain.records import Report
from streams.overruns import Overruns

ENDED_KEPT_MAX: Final = 16_384
TICK_WAIT_MS: Final = 1_000
DEADLINE_KEPT_MS: Final = 1_000
"""A fleet has a thousand sessions and hundreds of cycles a second: so long the earliest deadline is not looked for anew."""


class Sessions:
    """Live sessions by name. `evidence` is the stamp of the last `Tick` that counted: all pulses before it are read."""

    def __init__(self, book: Book) -> None:
        self._book = book
        self._by_name: dict[str, Session] = {}
        self._holders: dict[int, Session] = {}
        self.overruns = Overruns(book)
        self.evidence = -1
        self.ended_tokens: dict[int, str] = {}
        self.heard: dict[int, bool] = {}
        """Reports by offset whose pulse was heard before their results are decided; whether it was a new one."""
        self.heard_through = -1
        self.came_back = CameBack()
        self.acknowledged: list[tuple[int, int]] = []
        """Of each report one grant that it shows to have arrived: (token, ms since the broker had it). For those who count."""
        self.has_plans = False
        """Whether grants may be planned in this cycle."""
        self._deadline: int | None = None
        self._deadline_looked_at = -DEADLINE_KEPT_MS
        self._settled_at = -1
        """Evidence on which nothing was over."""
        self.urgent = -1
        """Last report heard that must not wait, nor what came before it: failures, hand-backs, claims, ticks."""
        self._resume()

    def _resume(self) -> None:
        """Sessions that hold running attempts, as the store knows them."""
        for name, row in self._book.sessions.scan(b""):
            session = self.open(name.decode())
            session.is_started = True
            session.lease_ms, session.pulse_ms = row.lease_ms, row.pulse_ms
        for key, execution in sorted(self._book.running.scan(b""), key=lambda row: row[1].token):
            session = self._holders[execution.token] = self.open(execution.session)
            session.take(
                {execution.token: key}, permitted={execution.token} if execution.permits else NOTHING
            )

    def __iter__(self) -> Iterator[Session]:
        return iter(self._by_name.values())

    def get(self, name: str) -> Session | None:
        """The session, if it lives."""
        return self._by_name.get(name)

    def open(self, name: str) -> Session:
        """The session, made if it is new."""
        found = self._by_name.get(name)
        if found is None:
            found = self._by_name[name] = Session(name)
        return found

    def speaker(self, report: Report) -> Session | None:
        """The session of a report. A new one is made by a full pulse alone, and not of a session that is over."""
        session = self.get(report.session)
        if session is None and report.full is not None and not self.is_over(report.session):
            session = self.open(report.session)
        return session

    def is_over(self, name: str) -> bool:
        """Whether the session has ended; that is final."""
        return self._book.remembered(self._book.ended, name.encode()) is not None

    def drop(self, name: str) -> None:
        """Forget a session."""
        self._by_name.pop(name, None)

    def follow(self, placed: Iterable[tuple[Event, int]]) -> None:
        """Attempts that the frame about to be committed starts and ends; `placed` as in `Draft`."""
        for event, token in placed:
            match event:
                case facts.ExecutionsDueGranted() | facts.ExecutionsGranted():
                    self._started(event, token)
                case facts.AttemptsLost() | facts.GrantsReturned():
                    self._note_back(event.tokens)
                    self._ended(event.tokens)
                case facts.AttemptFailed():
                    self._note_back([event.token])
                    self._ended([event.token])
                case facts.AttemptsSucceeded():
                    self._ended(event.tokens)
                case facts.AttemptCancelled() | facts.AttemptSnoozed():
                    self._ended([event.token])
                case facts.ExecutionDead():
                    self.came_back.forget(keys.execution_row(event.tenant, event.execution))
                case facts.JobCancelled():
                    self.overruns.asked_to_stop(event.tokens, self._book.cursor.now)
                case facts.ExecutionCancelled() if event.token >= 0:
                    self.overruns.asked_to_stop([event.token], self._book.cursor.now)
                case facts.AttemptProgressed():
                    self.overruns.progressed(event.token, self._book.cursor.now)
                case _:
                    pass

    def _started(self, event: facts.ExecutionsDueGranted | facts.ExecutionsGranted, token: int) -> None:
        tenants = [tenant.encode() + b"\0" for tenant in event.tenants]
        running: list[dict[int, bytes]] = [{} for _ in event.sessions]
        rows = zip(event.tenant, event.executions, event.session, strict=True)
        for granted, (tenant, name, number) in enumerate(rows, token):
            running[number][granted] = tenants[tenant] + name.encode()
        permitted: set[int] = set()
        if isinstance(event, facts.ExecutionsGranted):
            permitted.update(map(token.__add__, event.permit_row))
        for name, taken in zip(event.sessions, running, strict=True):
            session = self.open(name)
            session.take(taken, self._queues(session, taken), permitted & taken.keys())
            self._holders.update(dict.fromkeys(taken, session))
            if self.came_back:
                for key in taken.values():
                    self.came_back.forget(key)

    def _ended(self, tokens: Sequence[int]) -> None:
        self.overruns.ended(tokens)
        for token in tokens:
            session = self._holders.pop(token, None)
            if session is not None:
                session.drop(token)

    def _note_back(self, tokens: Iterable[int]) -> None:
        for token in tokens:
            session = self._holders.get(token)
            key = None if session is None else session.running.get(token)
            if session is not None and key is not None:
                self.came_back.note(key, session.name)

    def _queues(self, session: Session, taken: dict[int, bytes]) -> Mapping[int, str]:
        """Queues of what a session is granted, if it caps any."""
        if not session.has_caps():
            return NO_QUEUES
        return {granted: self._queue_of(key) for granted, key in taken.items()}

    def _queue_of(self, key: bytes) -> str:
        execution = self._book.running.get(key)
        if execution is None:
            return ""
        spec = self._book.specs.get(keys.spec_row(keys.job_of_execution(key), execution.version))
        return "" if spec is None else spec.queue

    def remember_ended(self, tokens: Iterable[int], how: str) -> None:
        """Tokens that ended, so that the same result again is known as a repeat. Bounded."""
        if len(self.ended_tokens) > ENDED_KEPT_MAX:
            self.ended_tokens.clear()
        self.ended_tokens.update(dict.fromkeys(tokens, how))

    def plan_over(self) -> None:
        """Grants planned in this cycle are in the log, or forgotten."""
        if not self.has_plans:
            return
        self.has_plans = False
        for session in self._by_name.values():
            session.planned = 0

    def holder(self, token: int) -> Session | None:
        """The session under whose token an attempt runs."""
        return self._holders.get(token)

    def held(self, session: Session, tokens: Iterable[int]) -> list[Held]:
        """Running attempts behind tokens, for a decision; tokens that run no more are left out."""
        found: list[Held] = []
        for token in tokens:
            key = session.running.get(token)
            execution = None if key is None else self._book.running.get(key)
            if key is not None and execution is not None and execution.token == token:
                found.append(Held(key, token, execution))
        return found

    def is_settled(self) -> bool:
        """Whether a look on the present evidence found nothing that is over: only a new mark can change that."""
        return self._settled_at == self.evidence

    def settle(self) -> None:
        """Nothing is over on the present evidence."""
        self._settled_at = self.evidence

    def over(self) -> list[Session]:
        """Sessions whose lease has ended on evidence."""
        return [session for session in self if session.stamp >= 0 and session.lease_end() < self.evidence]

    def unacknowledged(self) -> Iterator[tuple[Session, list[int]]]:
        """Grants that nobody acknowledged in time, on evidence, by session."""
        for session in self:
            tokens = [
                token
                for token in session.unacknowledged
                if (over_at := session.withdraw_at(token)) is not None and over_at < self.evidence
            ]
            if tokens:
                yield session, tokens

    def next_deadline(self, now: int) -> int | None:
        """The earliest instant at which a lease or a grant could be over, as of `DEADLINE_KEPT_MS` ago at most; None if
        nothing can. What brings it nearer than that, such as a pulse with a shorter lease, is noticed so much later.
        """
        is_over = self._deadline is not None and now >= self._deadline
        if is_over or not 0 <= now - self._deadline_looked_at < DEADLINE_KEPT_MS:
            self._deadline, self._deadline_looked_at = self._earliest_deadline(), now
        return self._deadline

    def _earliest_deadline(self) -> int | None:
        """Of a fleet hardly anybody has grants to acknowledge, so only those few are asked."""
        sessions = self._by_name.values()
        deadlines = [session.stamp + session.lease_ms for session in sessions if session.stamp >= 0]
        waiting = [session.next_withdrawal_at() for session in sessions if session.unacknowledged]
        deadlines += [at for at in waiting if at is not None]
        if self.overruns.next_at is not None:
            deadlines.append(self.overruns.next_at)
        return min(deadlines, default=None)

    def restart_deadlines(self, stamp: int) -> None:
        """The broker was away or its clock stepped: all leases and grant deadlines start again from `stamp`."""
        for session in self:
            session.stamp = max(session.stamp, stamp)
            session.sent_at = dict.fromkeys(session.sent_at, stamp)
            session.is_void = True
