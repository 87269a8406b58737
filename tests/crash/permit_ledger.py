"""What the log says of limits and their permits, by rules of its own: nothing of the product's fold is used.

Each breach becomes a complaint: more out than the limit in force lets, a permit used by somebody who does not have it, two
attempts under one, an attempt without one, one that comes back before its attempt has ended.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from minutebook.domain import events as facts
from tests.crash.joblog import Fact, JobLog
from tests.crash.stack import Sighting

Limit = tuple[str, str]
"""(tenant, name)."""
Permit = tuple[str, str, int]

_ENDS = (
    facts.AttemptsSucceeded,
    facts.AttemptsLost,
    facts.AttemptFailed,
    facts.AttemptCancelled,
    facts.AttemptSnoozed,
    facts.GrantsReturned,
)


class PermitLedger:
    """Read a log into it once; then look at what it found."""

    def __init__(self, log: JobLog) -> None:
        self.complaints: list[str] = []
        self.out: dict[Permit, int] = {}
        """Permits out, with the partition they were granted to."""
        self.used = 0
        """Attempts that ran under permits."""
        self._granted: dict[Permit, int] = {}
        self._released: set[Permit] = set()
        self._limits_of_jobs = {
            (event.tenant, event.job_id): event.limit for event in log.events(facts.JobSubmitted)
        }
        homes = {(fact.event.tenant, fact.event.name): fact.partition for fact in log.of(facts.LimitDeclared)}
        for fact in log.facts:
            if isinstance(fact.event, facts.PermitsGranted):
                for row, partition in enumerate(fact.event.partitions):
                    self._granted[fact.event.tenant, fact.event.limit, fact.token + row] = partition
                if homes[fact.event.tenant, fact.event.limit] != fact.partition:
                    self._complain(fact, "permits granted elsewhere than at the limit's home")
        for partition in sorted({fact.partition for fact in log.facts}):
            _User(self, partition).read(log)
        for partition in sorted(set(homes.values())):
            self._read_home(log, partition)

    def _complain(self, fact: Fact, what: str) -> None:
        self.complaints.append(f"limits at {fact.partition}:{fact.frame}: {what}")

    def _read_home(self, log: JobLog, partition: int) -> None:
        """Of each limit never more out than the version in force lets, nor granted in any period of its rate."""
        limits: dict[Limit, Any] = {}
        recent: dict[Limit, list[int]] = defaultdict(list)
        for fact in log.facts:
            if fact.partition != partition:
                continue
            event = fact.event
            match event:
                case facts.LimitDeclared():
                    limits[event.tenant, event.name] = event
                case facts.PermitsGranted():
                    limit = (event.tenant, event.limit)
                    self.out.update(
                        ((*limit, fact.token + row), to) for row, to in enumerate(event.partitions)
                    )
                    recent[limit] += [fact.now] * len(event.partitions)
                    self._check_bounds(fact, limits[limit], recent[limit])
                case facts.PermitsReturned():
                    for permit in event.permits:
                        self._come_back(fact, (event.tenant, event.limit, permit))
                case _:
                    pass

    def _check_bounds(self, fact: Fact, limit: Any, granted: list[int]) -> None:
        out = sum(1 for tenant, name, _ in self.out if (tenant, name) == (limit.tenant, limit.name))
        if limit.is_deleted or fact.now < limit.paused_until:
            self._complain(fact, f"permits of {limit.name!r}, which is paused or deleted")
        if 0 <= limit.concurrency < out:
            self._complain(fact, f"{out} permits of {limit.name!r} are out, its limit is {limit.concurrency}")
        if limit.rate_count >= 0:
            count = sum(1 for at in granted if at > fact.now - limit.rate_period_ms)
            if count > limit.rate_count:
                self._complain(fact, f"{count} permits of {limit.name!r} within {limit.rate_period_ms} ms")

    def _come_back(self, fact: Fact, permit: Permit) -> None:
        if permit not in self._released:
            self._complain(fact, f"permit {permit} came back, but nobody gave it back")
        if self.out.pop(permit, None) is None:
            self._complain(fact, f"permit {permit} came back, but was not out")


class _User:
    """One partition's use of permits, in the order of its log."""

    def __init__(self, ledger: PermitLedger, partition: int) -> None:
        self._ledger = ledger
        self._partition = partition
        self._here: set[Permit] = set()
        self._bound: dict[Permit, int] = {}
        self._known: dict[Limit, bool] = {}

    def read(self, log: JobLog) -> None:
        """All of it."""
        for fact in log.facts:
            if fact.partition == self._partition:
                self._take(fact)

    def _take(self, fact: Fact) -> None:
        event = fact.event
        match event:
            case facts.LimitCopied():
                self._known[event.tenant, event.name] = not event.is_deleted
            case facts.PermitsReceived():
                for permit in event.permits:
                    self._receive(fact, (event.tenant, event.limit, permit))
            case facts.PermitsReleased():
                for permit in event.permits:
                    self._release(fact, (event.tenant, event.limit, permit))
            case facts.ExecutionsGranted() | facts.ExecutionsDueGranted():
                self._start(fact, event)
            case _ if isinstance(event, _ENDS) and getattr(event, "cause", "") != "session_died":
                ended = set(getattr(event, "tokens", ())) | {getattr(event, "token", -1)}
                self._bound = {permit: token for permit, token in self._bound.items() if token not in ended}
            case _:
                pass

    def _receive(self, fact: Fact, permit: Permit) -> None:
        if self._ledger._granted.get(permit) != self._partition:
            self._ledger._complain(fact, f"permit {permit} is here, but was not granted to this partition")
        if permit in self._here:
            self._ledger._complain(fact, f"permit {permit} came twice")
        self._here.add(permit)

    def _release(self, fact: Fact, permit: Permit) -> None:
        if permit not in self._here or permit in self._bound:
            self._ledger._complain(fact, f"permit {permit} is given back, but is not here, or in use")
        self._here.discard(permit)
        self._ledger._released.add(permit)

    def _start(self, fact: Fact, event: Any) -> None:
        held: dict[int, list[Permit]] = defaultdict(list)
        if isinstance(event, facts.ExecutionsGranted):
            columns = zip(event.permit_row, event.permit_limit, event.permit_ids, strict=True)
            for row, number, permit in columns:
                tenant = event.tenants[event.tenant[row]]
                held[row].append((tenant, event.limits[number], permit))
        for row, (number, execution) in enumerate(zip(event.tenant, event.executions, strict=True)):
            wanted = self._wanted(event.tenants[number], execution)
            if [permit[:2] for permit in held[row]] != wanted:
                self._ledger._complain(fact, f"{execution} starts under {held[row]}, needs {wanted}")
            self._ledger.used += bool(held[row])
            for permit in held[row]:
                if permit not in self._here or permit in self._bound:
                    self._ledger._complain(fact, f"{execution} starts under {permit}, not free here")
                self._bound[permit] = fact.token + row

    def _wanted(self, tenant: str, execution: str) -> list[Limit]:
        key = self._ledger._limits_of_jobs.get((tenant, execution.rpartition(":")[0]), "")
        names = (key, "") if key else ("",)
        return [(tenant, name) for name in names if self._known.get((tenant, name))]


def most_at_once(witness: Sequence[Sighting]) -> int:
    """How many of these runs went on at the same moment, by what their handlers wrote: an end at the very moment of a start
    was before it."""
    changes = sorted((one.at, 1 if one.moment == "start" else -1) for one in witness)
    running = most = 0
    for _, change in changes:
        running += change
        most = max(most, running)
    return most
