"""What the log says of every execution, event by event, by rules of its own: nothing of the product's fold is used.

Each breach becomes a complaint: two grants that run at once, a token that does not grow, an attempt without a cause, a
second outcome, something due before its time.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any, NamedTuple

from minutebook.domain import events as facts
from tests.crash.joblog import Fact, JobLog

Name = tuple[str, str]
"""(tenant, execution id)."""


class Grant(NamedTuple):
    """A grant in the log. The token counts within its partition."""

    name: Name
    partition: int
    token: int
    attempt: int
    session: str


class _Execution:
    """Where an execution stands after the events so far."""

    def __init__(self) -> None:
        self.status = ""
        self.attempt = 0
        self.token = -1
        self.tokens: list[int] = []
        self.outcome = ""


class Ledger:
    """Read a log into it once; then look at what it found."""

    def __init__(self, log: JobLog) -> None:
        self.complaints: list[str] = []
        self.double_grants = 0
        self.grants: dict[tuple[Name, int], Grant] = {}
        self.succeeded: dict[Name, int] = {}
        self.causes: dict[Name, list[str]] = defaultdict(list)
        self.submitted: dict[Name, facts.JobSubmitted] = {}
        self.requested: set[Name] = set()
        self.cancelled_jobs: set[Name] = set()
        self.edited: set[Name] = set()
        """Jobs that are no more what they were submitted as."""
        self.died: set[Name] = set()
        """Executions that were dead once, redriven since or not."""
        self._executions: dict[Name, _Execution] = defaultdict(_Execution)
        for fact in log.facts:
            self._take(fact)

    def outcome(self, name: Name) -> str:
        """`succeeded`, `dead`, `cancelled`, `skipped`; empty while it is open or unknown."""
        return self._executions[name].outcome

    def known(self) -> set[Name]:
        """Every execution that the log speaks of."""
        return {name for name, one in self._executions.items() if one.status}

    def _complain(self, fact: Fact, name: Name, what: str) -> None:
        self.complaints.append(f"{name[0]}/{name[1]} at {fact.partition}:{fact.frame}: {what}")

    def _take(self, fact: Fact) -> None:
        event = fact.event
        match event:
            case facts.JobSubmitted():
                name = (event.tenant, event.job_id)
                if name in self.submitted:
                    self._complain(fact, name, "accepted twice")
                self.submitted[name] = event
            case facts.JobEdited():
                self.edited.add((event.job.tenant, event.job.job_id))
            case facts.ExecutionRequested():
                name = (event.tenant, event.execution)
                self.requested.add(name)
                self._executions[name].status = "scheduled"
            case facts.ExecutionsPlaced():
                self._placed(fact, event)
            case facts.ExecutionsQueued():
                self._due(fact, event)
            case facts.ExecutionsDueGranted():
                self._due(fact, event)
                self._grant(fact, event)
            case facts.ExecutionsGranted():
                self._grant(fact, event)
            case facts.JobCancelled():
                self.cancelled_jobs.add((event.tenant, event.job_id))
                for execution in event.executions:
                    self._finish(fact, (event.tenant, execution), "cancelled", "scheduled", "queued")
            case _:
                self._ends(fact, event)

    def _ends(self, fact: Fact, event: Any) -> None:
        match event:
            case facts.AttemptsSucceeded():
                for name, token in _rows(event):
                    self._stop(fact, name, token)
                    self._finish(fact, name, "succeeded", "ended")
                    self.succeeded[name] = token
            case facts.AttemptFailed():
                name = (event.tenant, event.execution)
                self._stop(fact, name, event.token)
                self._next(name, "failed", event.retry_at >= 0)
            case facts.AttemptsLost():
                for (name, token), has_retry in zip(_rows(event), event.has_retry, strict=True):
                    if event.cause != "session_died":
                        self._stop(fact, name, token)
                        self._next(name, "lost", has_retry, "queued")
            case facts.GrantsReturned():
                for (name, token), until in zip(_rows(event), event.wait_until, strict=True):
                    self._stop(fact, name, token)
                    self._executions[name].status = "scheduled" if until >= 0 else "queued"
                    self.causes[name].append(event.reason)
            case facts.AttemptCancelled():
                name = (event.tenant, event.execution)
                self._stop(fact, name, event.token)
                self._finish(fact, name, "cancelled", "ended")
            case facts.AttemptSnoozed():
                name = (event.tenant, event.execution)
                self._stop(fact, name, event.token)
                self._next(name, "snoozed", True)
            case facts.ExecutionDead():
                name = (event.tenant, event.execution)
                self.died.add(name)
                self._finish(fact, name, "dead", "ended", "queued", "scheduled")
            case facts.ExecutionExpired():
                self._finish(fact, (event.tenant, event.execution), "skipped", "queued", "scheduled")
            case facts.ExecutionCancelled() if event.token < 0:
                self._finish(fact, (event.tenant, event.execution), "cancelled", "queued", "scheduled")
            case facts.ExecutionRedriven():
                self._redriven(fact, event)
            case _:
                return

    def _redriven(self, fact: Fact, event: facts.ExecutionRedriven) -> None:
        name = (event.tenant, event.execution)
        one = self._executions[name]
        if one.outcome != "dead" or event.attempt != one.attempt + 1:
            self._complain(
                fact, name, f"redriven as attempt {event.attempt}, though {one.outcome} after {one.attempt}"
            )
        self.causes[name].append("redriven")
        one.status, one.outcome, one.attempt = "scheduled", "", event.attempt

    def _placed(self, fact: Fact, event: facts.ExecutionsPlaced) -> None:
        for at in event.scheduled_at:
            name = (event.tenant, f"{event.job_id}:{at}")
            one = self._executions[name]
            if one.status:
                self._complain(fact, name, f"placed, though {one.status}")
            one.status = "scheduled"

    def _due(self, fact: Fact, event: Any) -> None:
        rows = zip(event.tenant, event.executions, event.attempts, event.due_at, strict=True)
        for tenant, execution, attempt, due_at in rows:
            name = (event.tenants[tenant], execution)
            one = self._executions[name]
            if one.status not in ("", "scheduled"):
                self._complain(fact, name, f"due, though {one.status}")
            if due_at > fact.now:
                self._complain(fact, name, f"{due_at - fact.now} ms before it is due")
            if one.status == "" and attempt != 1:
                self._complain(fact, name, f"begins with attempt {attempt}")
            if one.status and attempt != max(one.attempt, 1):
                self._complain(fact, name, f"due as attempt {attempt}, wanted {one.attempt}")
            one.status, one.attempt = "queued", attempt

    def _grant(self, fact: Fact, event: Any) -> None:
        rows = zip(event.tenant, event.executions, event.attempts, event.session, strict=True)
        for token, (tenant, execution, attempt, session) in enumerate(rows, fact.token):
            name = (event.tenants[tenant], execution)
            one = self._executions[name]
            self.double_grants += one.status == "running"
            if one.status != "queued":
                self._complain(fact, name, f"granted, though {one.status or 'unknown'}")
            if attempt != one.attempt:
                self._complain(fact, name, f"granted as attempt {attempt}, wanted {one.attempt}")
            if one.tokens and token <= one.tokens[-1]:
                self._complain(fact, name, f"token {token} after {one.tokens[-1]}")
            one.status, one.token = "running", token
            one.tokens.append(token)
            self.grants[name, token] = Grant(name, fact.partition, token, attempt, event.sessions[session])

    def _stop(self, fact: Fact, name: Name, token: int) -> None:
        one = self._executions[name]
        if one.status != "running" or one.token != token:
            self._complain(fact, name, f"token {token} ends, but it is {one.status} under {one.token}")
        one.status, one.token = "ended", -1

    def _next(self, name: Name, cause: str, is_tried_again: bool, status: str = "scheduled") -> None:
        self.causes[name].append(cause)
        if is_tried_again:
            one = self._executions[name]
            one.status, one.attempt = status, one.attempt + 1

    def _finish(self, fact: Fact, name: Name, outcome: str, *allowed: str) -> None:
        one = self._executions[name]
        if one.outcome or one.status not in allowed:
            self._complain(fact, name, f"{outcome}, though {one.outcome or one.status or 'unknown'}")
        one.status, one.outcome = "final", outcome


def _rows(event: Any) -> Iterator[tuple[Name, int]]:
    for tenant, execution, token in zip(event.tenant, event.executions, event.tokens, strict=True):
        yield (event.tenants[tenant], execution), token
