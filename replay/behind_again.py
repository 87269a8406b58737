"""What a cycle does last, decided again: ends of leases, grants, permits, and the steps of long work."""

from __future__ import annotations

from collections import Counter, defaultdict

from minutebook import ids
from minutebook.domain import events as facts
from minutebook.domain import keys, operation_steps, rescheduling
from minutebook.domain.book import Book
from minutebook.domain.events import Event
from minutebook.domain.permit_folds import home_of, stock_of
from minutebook.domain.permits import ASKED_MAX, grantable, lacking, useless
from minutebook.domain.placing import spec_of
from minutebook.domain.records import Report
from minutebook.wire import topics
from replay.again import MEMORY, OFFERS, Again, DifferentError
from replay.differences import difference
from replay.due_again import DueAgain
from replay.hearing import Hearing
from replay.taken_again import LEASE_OVER, TakenAgain

Granted = facts.ExecutionsDueGranted | facts.ExecutionsGranted


class BehindAgain:
    """What follows the inputs in one frame."""

    def __init__(self, again: Again, due: DueAgain, hearing: Hearing) -> None:
        self._again = again
        self._book: Book = again.book
        self._due = due
        self._hearing = hearing
        self.taken = TakenAgain(again, hearing)

    def finish(self) -> None:
        """All that is left of the frame. Raises DifferentError."""
        while (said := self._again.next()) is not None:
            self._one(said)
        self._permits_left()

    def _one(self, said: Event) -> None:
        again = self._again
        match said:
            case facts.ExecutionsQueued():
                self._due.came(said)
            case facts.ExecutionsDueGranted() | facts.ExecutionsGranted() | facts.SessionStarted():
                self.granted(said)
            case facts.AttemptsLost() | facts.GrantsReturned():
                self.taken.by_owner(said)
            case facts.SessionEnded():
                self._ended(said)
            case facts.AttemptFailed() | facts.AttemptCancelled() | facts.AttemptStuck():
                self.taken.overrun(said)
            case facts.PermitsGranted() | facts.PermitsReleased():
                self._permits(said)
            case facts.PermitsAsked():
                self.asked(said)
            case facts.AlertRaised() | facts.OutputRefused():
                again.said(1, MEMORY)
            case facts.JobsRescheduled():
                self._rescheduled(said)
            case _:
                self._operation(said)

    # -- grants

    def granted(self, said: Granted | facts.SessionStarted, claimed: Report | None = None) -> None:
        """A grant, or who gets one for the first time; `claimed`: the report that asked for it by name. Raises
        DifferentError where it was not allowed."""
        again = self._again
        if isinstance(said, facts.SessionStarted):
            self._started(said)
            return
        for name in said.sessions:
            if self._book.sessions.get(name.encode()) is None:
                raise DifferentError(f"{name} is granted something, and nothing says that it has started")
        if isinstance(said, facts.ExecutionsDueGranted):
            self._due.came(said)
        work = self._work(said) if isinstance(said, facts.ExecutionsGranted) else _work_of(said)
        if claimed is not None:
            self._check_claims(said, claimed)
            again.allow()
            return
        by_session: dict[str, list[tuple[str, str]]] = defaultdict(list)
        for number, one in zip(said.session, work, strict=True):
            by_session[said.sessions[number]].append(one)
        faults = [self._hearing.fault_of_grants(name, len(of), of) for name, of in by_session.items()]
        if fault := next(filter(None, faults), ""):
            raise DifferentError(f"{type(said).__name__} is not covered: {fault}")
        if None in faults:
            again.said(1, OFFERS)
        else:
            again.allow()

    def _started(self, said: facts.SessionStarted) -> None:
        session = self._hearing.get(said.session)
        if session is None:
            self._again.said(1, OFFERS)
            return
        started = (said.session, session.worker, sorted(session.tasks), session.lease_ms, session.pulse_ms)
        self._again.same([facts.SessionStarted(*started)])

    def _work(self, said: facts.ExecutionsGranted) -> list[tuple[str, str]]:
        """(queue, task) of each that is granted; it must wait for that very attempt."""
        found = []
        for number, name, attempt in zip(said.tenant, said.executions, said.attempts, strict=True):
            key = keys.execution_row(said.tenants[number], name)
            execution = self._book.executions.get(key)
            if execution is None or execution.status != "queued" or execution.attempt != attempt:
                raise DifferentError(f"attempt {attempt} of {name} is granted, but does not wait")
            spec = spec_of(self._book, key, execution.version)
            found.append((spec.queue, spec.task))
        return found

    def _check_claims(self, said: Granted, report: Report) -> None:
        asked = {(claim.tenant, claim.execution, claim.attempt) for claim in report.claims}
        for number, name, attempt in zip(said.tenant, said.executions, said.attempts, strict=True):
            if (said.tenants[number], name, attempt) not in asked or said.sessions != [report.session]:
                raise DifferentError(f"attempt {attempt} of {name} is granted, but was not claimed")

    # -- ends of sessions

    def _ended(self, said: facts.SessionEnded) -> None:
        if self._book.sessions.get(said.session.encode()) is None or said.cause != LEASE_OVER:
            raise DifferentError(difference(said, None))
        fault = self._hearing.fault_of_lease(said.session)
        if fault:
            raise DifferentError(fault)
        if fault is None:
            self._again.said(1, OFFERS)
        else:
            self._again.allow()

    # -- permits

    def asked(self, said: facts.PermitsAsked) -> None:
        """Permits that are asked for: never more than the limit lets one partition have. Raises DifferentError."""
        limit = self._book.limit(said.tenant, said.limit)
        stock = stock_of(self._book, keys.limit_row(said.tenant, said.limit))
        home = topics.partition_of(ids.limit_key(said.tenant, said.limit), self._book.cursor.partitions)
        if limit is None or (said.version, said.home) != (limit.version, home):
            raise DifferentError(difference(said, None))
        if not 0 <= said.count <= (most := lacking(stock, limit, ASKED_MAX)):
            raise DifferentError(f"{said.count} permits of {said.limit} are asked for, {most} may be")
        self._again.allow()

    def _permits(self, said: facts.PermitsGranted | facts.PermitsReleased) -> None:
        row = keys.limit_row(said.tenant, said.limit)
        event = self._grantable(row) if isinstance(said, facts.PermitsGranted) else self._useless(row)
        if event is None:
            raise DifferentError(difference(said, None))
        self._again.same([event])

    def _grantable(self, row: bytes) -> Event | None:
        (tenant, name), again = keys.names(row), self._again
        limit, most = self._book.limit(tenant, name), min(ASKED_MAX, again.draft.room())
        found = grantable(home_of(self._book, row), limit, again.now, most)
        if not found or limit is None:
            return None
        return facts.PermitsGranted(tenant, name, limit.version, found)

    def _useless(self, row: bytes) -> Event | None:
        (tenant, name), again = keys.names(row), self._again
        stock = stock_of(self._book, row)
        waiting = self._under(tenant, name) if stock.free else 0
        gone = useless(stock, self._book.limit(tenant, name), waiting, again.now)[: again.draft.room()]
        home = topics.partition_of(ids.limit_key(tenant, name), self._book.cursor.partitions)
        return facts.PermitsReleased(tenant, name, home, gone) if gone else None

    def _under(self, tenant: str, name: str) -> int:
        """Executions queued under a limit."""
        waiting: Counter[str] = Counter()
        for prefix, count in self._book.counts.scan(b""):
            lane, _ = keys.queued_parts(prefix + bytes(8))
            if lane.tenant == tenant:
                waiting[lane.limit] += count
        return waiting.total() if not name else waiting[name]

    def _permits_left(self) -> None:
        """A limit's home grants in the cycle in which it may, and what is of no use goes back; but for what long work, which
        comes behind that, has changed."""
        found: list[Event | None] = [self._grantable(row) for row in sorted(self._book.homes.pending)]
        if not any(isinstance(event, facts.OperationAdvanced) for event in self._again.frame.events):
            found += [self._useless(row) for row in sorted(self._book.stocks.pending)]
        for left in found:
            if left is not None:
                raise DifferentError(difference(None, left))

    # -- long work

    def _rescheduled(self, said: facts.JobsRescheduled) -> None:
        reached = self._book.reschedulings.get(said.work.encode())
        if reached is None:
            raise DifferentError(difference(said, None))
        self._again.same([rescheduling.advance(self._book, said.work.encode(), reached, self._again.now)])

    def _operation(self, said: Event) -> None:
        """A step of a share, whose last event says whose it is."""
        left = self._again.frame.events[self._again.at :]
        step = next((event for event in left if isinstance(event, facts.OperationAdvanced)), None)
        row = b"" if step is None else keys.operation_row(step.tenant, step.operation)
        share = self._book.shares.get(row)
        if share is None:
            raise DifferentError(difference(said, None))
        before = self._again.at
        self._again.same(operation_steps.advance(self._book, share, self._again.now))
        if self._again.at == before:
            raise DifferentError(difference(said, None))


def _work_of(said: facts.ExecutionsDueGranted) -> list[tuple[str, str]]:
    return [(said.queues[queue], said.tasks[task]) for queue, task in zip(said.queue, said.task, strict=True)]
