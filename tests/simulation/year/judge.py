"""The judge of a year: reads every frame as it is written, and holds it against the commands that were sent.

Each instant of each schedule must become one execution that reaches its outcome, or lie in a stretch that was skipped
for a reason that was true then. It shares no rule with the product: what a schedule means it knows from the documents.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from minutebook.domain import events as facts
from minutebook.domain.commands import CalendarCommand, DeclareCalendar, EditJob, JobCommand, SubmitJob
from minutebook.domain.events import Event
from tests.simulation.year.account import Account, Calendars

UNCHANGED: Final = -2
_Piece = facts.ExecutionsSkipped | facts.ExecutionsPlaced
FAULTS_MAX: Final = 200


class Execution:
    """An open one."""

    __slots__ = ("account", "ready_at", "status", "token")

    def __init__(self, account: Account, status: str, ready_at: int, token: int = -1) -> None:
        self.account = account
        self.status = status
        self.ready_at = ready_at
        self.token = token


class Judge:
    """Keeps the accounts of all jobs, and what is open. `faults` are sentences for people."""

    account_type: type[Account] = Account

    def __init__(self) -> None:
        self.accounts: dict[tuple[str, str], Account] = {}
        self.open: dict[tuple[str, str], Execution] = {}
        self.faults: list[str] = []
        self.outcomes: Counter[str] = Counter()
        self._sent: dict[str, tuple[JobCommand | CalendarCommand, int]] = {}
        self._calendars: dict[str, Calendars] = defaultdict(dict)
        """By tenant."""
        self._resumed: list[tuple[str, Account, int]] = []
        """Jobs whose pause ended in this frame: (job id, account, when)."""
        self._undecided: set[Account] = set()
        """Jobs that a command of this frame made, resumed or edited: what they owe is decided after it."""
        self._edits: list[facts.JobEdited] = []
        """Those that this frame has yet to come to."""
        self._behind: list[_Piece] = []
        self._is_over = False
        self._now = 0
        self._idle_at = 0

    # -- what it is told

    def sent(self, command: JobCommand | CalendarCommand, stamp: int) -> None:
        """A command was put on record at `stamp`."""
        self._sent[command.command_id] = command, stamp

    def nothing_due(self, now: int) -> None:
        """The owner has looked at everything that was due by now."""
        self._idle_at = now

    def frame(self, now: int, placed: Iterable[tuple[Event, int]]) -> None:
        """The events of a frame, each with the token of its first row."""
        if now < self._now:
            self._fault("the owner", f"goes back from {self._now} to {now}")
        self._now = now
        placed = list(placed)
        self._edits = [event for event, _ in placed if isinstance(event, facts.JobEdited)]
        for event, token in placed:
            take = _TAKES.get(type(event))
            if take is not None:
                take(self, event, token)
        if self._behind:
            self._judge_behind(is_over=True)
        for job_id, account, stamp in self._resumed:
            self._say(job_id, account.left_out(stamp))
        self._resumed.clear()
        self._undecided.clear()

    def year_over(self) -> None:
        """Everything that has come due must be accounted for by now."""
        for (_, job_id), account in self.accounts.items():
            self._say(job_id, account.year_over(self._idle_at))

    def finish(self) -> None:
        """Everything that became an execution must have ended."""
        for (_, name), execution in self.open.items():
            self._fault(name, f"is {execution.status} to the end")

    def instants(self) -> Counter[str]:
        """How many instants were accounted for, and how."""
        found: Counter[str] = Counter()
        for account in self.accounts.values():
            found.update(account.counts)
        return found

    # -- jobs

    def _submitted(self, event: facts.JobSubmitted, token: int) -> None:
        command, stamp = self._sent[event.command_id]
        assert isinstance(command, SubmitJob)
        account = self.accounts[event.tenant, event.job_id] = self.account_type(
            command, stamp, self._now, self._calendars[event.tenant]
        )
        self._undecided.add(account)
        self._check_next(event.job_id, account, event.next_at)

    def _paused(self, event: facts.JobPaused, token: int) -> None:
        account = self.accounts[event.tenant, event.job_id]
        self._say(event.job_id, account.paused(self._idle_at))

    def _resume(self, event: facts.JobResumed, token: int) -> None:
        account = self.accounts[event.tenant, event.job_id]
        self._undecided.add(account)
        self._say(event.job_id, account.resumed(self._now, is_caught_up=event.is_caught_up))
        if not event.is_caught_up and not account.is_once:
            self._resumed.append((event.job_id, account, self._sent[event.command_id][1]))

    def _edited(self, event: facts.JobEdited, token: int) -> None:
        command, stamp = self._sent[event.job.command_id]
        assert isinstance(command, EditJob)
        account = self.accounts[event.job.tenant, event.job.job_id]
        found = account.edited(command.job, stamp, event.job.next_at, self._now)
        self._say(event.job.job_id, found)
        self._undecided.add(account)
        del self._edits[0]

    def _decided_at(self, tenant: str, job_id: str) -> int:
        """When instants of a job that are on record here were decided: what one owes that another command of this frame
        changed before is decided with its next edit, as of the stamp of that."""
        if self._edits and self.accounts[tenant, job_id] in self._undecided:
            for event in self._edits:
                if (event.job.tenant, event.job.job_id) == (tenant, job_id):
                    return self._sent[event.job.command_id][1]
        return self._now

    def _cancelled(self, event: facts.JobCancelled, token: int) -> None:
        account = self.accounts[event.tenant, event.job_id]
        self._say(event.job_id, account.cancelled(self._now, self._idle_at))
        for name in event.executions:
            self._end((event.tenant, name), "cancelled", "scheduled", "queued", "held")
        for name, ended in zip(event.stopping, event.tokens, strict=True):
            self._running((event.tenant, name), ended)

    def _skipped(self, event: facts.ExecutionsSkipped, token: int) -> None:
        account = self.accounts[event.tenant, event.job_id]
        if self._is_behind(account, event, event.first_at):
            return
        stretch = (event.reason, event.first_at, event.last_at, event.count)
        now = self._now if event.reason == "paused" else self._decided_at(event.tenant, event.job_id)
        self._say(f"{event.job_id}:{event.first_at}", account.skipped(*stretch, now, self._idle_at))
        if event.next_at != UNCHANGED:
            self._check_next(event.job_id, account, event.next_at)

    def _placed(self, event: facts.ExecutionsPlaced, token: int) -> None:
        account = self.accounts[event.tenant, event.job_id]
        if self._is_behind(account, event, event.scheduled_at[0]):
            return
        rows = zip(event.scheduled_at, event.due_at, event.place_at, strict=True)
        for scheduled_at, due_at, place_at in rows:
            name, is_held = f"{event.job_id}:{scheduled_at}", place_at < 0
            if is_held != (event.cause == "overlap"):
                self._fault(name, f"is placed at {place_at} for {event.cause}")
            take = account.waits if is_held else account.made_up
            self._say(name, take(scheduled_at, due_at, self._decided_at(event.tenant, event.job_id)))
            status, ready_at = ("held", due_at) if is_held else ("scheduled", max(due_at, place_at))
            self._open((event.tenant, name), Execution(account, status, ready_at))
            if is_held:
                account.held.append(name)
        if event.next_at != UNCHANGED:
            self._check_next(event.job_id, account, event.next_at)

    def _is_behind(self, account: Account, event: _Piece, first_at: int) -> bool:
        """Whether an instant comes before those, that is recorded later in this frame; they are judged after it."""
        is_behind = event.next_at == UNCHANGED and first_at != account.first and not self._is_over
        if is_behind:
            self._behind.append(event)
        return is_behind

    def _judge_behind(self, *, is_over: bool) -> None:
        """Those that waited for an instant before them; all of them when the frame is over."""
        waiting, self._behind, self._is_over = self._behind, [], is_over
        for event in waiting:
            _TAKES[type(event)](self, event, -1)
        self._is_over = False

    def _declared(self, event: facts.CalendarDeclared, token: int) -> None:
        command, _ = self._sent[event.command_id]
        calendars = self._calendars[event.tenant]
        if isinstance(command, DeclareCalendar):
            ranges = zip(command.first_days, command.last_days, strict=True)
            calendars[event.name] = {day for first, last in ranges for day in range(first, last + 1)}
        else:
            calendars.pop(event.name, None)
        for account in self._accounts_of(event.tenant, event.name):
            account.dates_changed(self._now, is_undecided=account in self._undecided)

    def _rescheduled(self, event: facts.JobsRescheduled, token: int) -> None:
        """The jobs of a calendar follow a change of it, a moment later; one whose instant is unchanged is not named."""
        for tenant, job_id, next_at in zip(event.tenant, event.job_ids, event.next_at, strict=True):
            self._check_next(job_id, self.accounts[event.tenants[tenant], job_id], next_at)
        kind, _, subject = event.work.partition(":")
        if kind == "calendar" and event.is_finished:
            for account in self._accounts_of(*subject.split(":")):
                account.dates_followed()

    def _accounts_of(self, tenant: str, calendar: str) -> list[Account]:
        return [
            account
            for (owner, _), account in self.accounts.items()
            if owner == tenant and calendar in account.timing.calendars
        ]

    def _requested(self, event: facts.ExecutionRequested, token: int) -> None:
        account = self.accounts[event.tenant, event.job_id]
        if account.status == "cancelled":
            self._fault(event.execution, "was asked for after the cancel")
        self._open((event.tenant, event.execution), Execution(account, "scheduled", event.accepted_at))

    # -- executions

    def _due_granted(self, event: facts.ExecutionsDueGranted, token: int) -> None:
        self._came(event, token, "running")

    def _queued(self, event: facts.ExecutionsQueued, token: int) -> None:
        self._came(event, -1, "queued")

    def _came(self, event: Any, token: int, status: str) -> None:
        tenants = event.tenants
        rows = zip(
            event.tenant, event.executions, event.scheduled_at, event.due_at, event.next_at, strict=True
        )
        for tenant, name, scheduled_at, due_at, next_at in rows:
            key = tenants[tenant], name
            if next_at == UNCHANGED:
                self._wait_over(key, status, token)
            else:
                self._instant(key, scheduled_at, due_at, next_at, status, token)
            token += token >= 0

    def _instant(
        self,
        key: tuple[str, str],
        scheduled_at: int,
        due_at: int,
        next_at: int,
        status: str,
        token: int,
    ) -> None:
        job_id, _, suffix = key[1].rpartition(":")
        account = self.accounts[key[0], job_id]
        if suffix != str(scheduled_at):
            self._fault(key[1], f"is not of {scheduled_at}")
        self._say(key[1], account.ran(scheduled_at, due_at, self._decided_at(key[0], job_id)))
        self._open(key, Execution(account, status, due_at, token))
        if self._behind:
            self._judge_behind(is_over=False)
        self._check_next(job_id, account, next_at)

    def _wait_over(self, key: tuple[str, str], status: str, token: int) -> None:
        execution = self._in(key, "scheduled")
        if execution is not None:
            if self._now < execution.ready_at:
                self._fault(key[1], f"is early, it waits for {execution.ready_at}")
            execution.status, execution.token = status, token

    def _granted(self, event: facts.ExecutionsGranted, token: int) -> None:
        for number, (tenant, name) in enumerate(zip(event.tenant, event.executions, strict=True), token):
            execution = self._in((event.tenants[tenant], name), "queued")
            if execution is not None:
                execution.status, execution.token = "running", number

    def _succeeded(self, event: facts.AttemptsSucceeded, token: int) -> None:
        tenants, pop = event.tenants, self.open.pop
        for tenant, name, ended in zip(event.tenant, event.executions, event.tokens, strict=True):
            execution = pop((tenants[tenant], name), None)
            if execution is None or execution.token != ended:
                self._fault(name, f"succeeds under {ended}, it does not run so")
            else:
                self._closed(tenants[tenant], name, execution.account)
        self.outcomes["succeeded"] += len(event.executions)

    def _failed(self, event: facts.AttemptFailed, token: int) -> None:
        execution = self._running((event.tenant, event.execution), event.token)
        if execution is not None:
            execution.status = "scheduled" if event.retry_at >= 0 else "given up"
            execution.ready_at = event.retry_at

    def _lost(self, event: facts.AttemptsLost, token: int) -> None:
        rows = zip(event.tenant, event.executions, event.tokens, event.has_retry, strict=True)
        for tenant, name, ended, has_retry in rows:
            execution = self._running((event.tenants[tenant], name), ended)
            if execution is not None:
                execution.status = "queued" if has_retry else "given up"

    def _returned(self, event: facts.GrantsReturned, token: int) -> None:
        rows = zip(event.tenant, event.executions, event.tokens, event.wait_until, strict=True)
        for tenant, name, ended, wait_until in rows:
            execution = self._running((event.tenants[tenant], name), ended)
            if execution is not None:
                execution.status = "scheduled" if wait_until >= 0 else "queued"
                execution.ready_at = wait_until

    def _dead(self, event: facts.ExecutionDead, token: int) -> None:
        self._end((event.tenant, event.execution), "dead", "given up")

    def _stopped(self, event: facts.AttemptCancelled, token: int) -> None:
        if self._running((event.tenant, event.execution), event.token) is not None:
            self._end((event.tenant, event.execution), "cancelled", "running")

    def _expired(self, event: facts.ExecutionExpired, token: int) -> None:
        key = event.tenant, event.execution
        execution = self._in(key, "held")
        if execution is not None and (event.reason, execution.account.timing.overlap) != (
            "overlap",
            "cancel_running",
        ):
            self._fault(event.execution, f"is skipped for {event.reason}")
        self._end(key, "skipped", "held")

    def _execution_cancelled(self, event: facts.ExecutionCancelled, token: int) -> None:
        key = event.tenant, event.execution
        if event.token >= 0:
            self._running(key, event.token)
        else:
            self._end(key, "cancelled", "scheduled", "queued", "held")

    # -- inside

    def _in(self, key: tuple[str, str], *statuses: str) -> Execution | None:
        execution = self.open.get(key)
        if execution is None or execution.status not in statuses:
            status = "not open" if execution is None else execution.status
            self._fault(key[1], f"is {status}, it should be {' or '.join(statuses)}")
            return None
        return execution

    def _running(self, key: tuple[str, str], token: int) -> Execution | None:
        execution = self._in(key, "running")
        if execution is not None and execution.token != token:
            self._fault(key[1], f"runs under {execution.token}, not {token}")
        return execution

    def _end(self, key: tuple[str, str], outcome: str, *statuses: str) -> None:
        execution = self._in(key, *statuses)
        if execution is not None:
            del self.open[key]
            self.outcomes[outcome] += 1
            self._closed(*key, execution.account)

    def _open(self, key: tuple[str, str], execution: Execution) -> None:
        if key in self.open:
            self._fault(key[1], "is open already")
        self.open[key] = execution
        execution.account.open.add(key[1])

    def _closed(self, tenant: str, name: str, account: Account) -> None:
        """The first one that is held goes its way, once nothing else of its job is open."""
        freed = account.ended(name)
        if freed is not None:
            self.open[tenant, freed].status = "scheduled"
            self.open[tenant, freed].ready_at = self._now

    def _check_next(self, job_id: str, account: Account, next_at: int) -> None:
        if not account.is_next(next_at):
            self._fault(job_id, f"comes next at {next_at}, it should be {account.first}")

    def _say(self, subject: str, found: Iterator[str]) -> None:
        for text in found:
            self._fault(subject, text)

    def _fault(self, subject: str, text: str) -> None:
        if len(self.faults) < FAULTS_MAX:
            self.faults.append(f"{self._now}: {subject} {text}")


_TAKES: Final[dict[type, Callable[[Judge, Any, int], None]]] = {
    facts.JobSubmitted: Judge._submitted,
    facts.JobPaused: Judge._paused,
    facts.JobResumed: Judge._resume,
    facts.JobEdited: Judge._edited,
    facts.JobCancelled: Judge._cancelled,
    facts.ExecutionsPlaced: Judge._placed,
    facts.CalendarDeclared: Judge._declared,
    facts.JobsRescheduled: Judge._rescheduled,
    facts.ExecutionsSkipped: Judge._skipped,
    facts.ExecutionRequested: Judge._requested,
    facts.ExecutionsDueGranted: Judge._due_granted,
    facts.ExecutionsQueued: Judge._queued,
    facts.ExecutionsGranted: Judge._granted,
    facts.AttemptsSucceeded: Judge._succeeded,
    facts.AttemptFailed: Judge._failed,
    facts.AttemptsLost: Judge._lost,
    facts.GrantsReturned: Judge._returned,
    facts.ExecutionDead: Judge._dead,
    facts.AttemptCancelled: Judge._stopped,
    facts.ExecutionCancelled: Judge._execution_cancelled,
    facts.ExecutionExpired: Judge._expired,
}
