"""Settling up: what was asked for against what the API tells and what the handlers saw.

Three accounts that do not share a line of code: plain arithmetic (`plan`), the API's histories, the witness
files.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from examples.demo.plan import Planned, expected_instants, instant
from examples.demo.witness import Sighting

_WINDOW_MS: Final = 8_000


class History(NamedTuple):
    """What the API tells of a job: its status, and its attempts in order."""

    status: str
    attempts: Sequence[Mapping[str, Any]]


class Life(NamedTuple):
    """When a job was submitted and, if it was, cancelled, in ms."""

    submitted: int
    cancelled: int


class Kill(NamedTuple):
    """A process ended with SIGKILL: which, when (ms), and its pid."""

    what: str
    at: float
    pid: int


@dataclass(slots=True)
class Account:
    """The result. `late_s` holds one number an execution: from its due instant to its first start, in
    seconds, ascending. `skipped` counts instants by reason; `spread_ms` is the largest jitter.
    """

    jobs: int = 0
    executions: Counter[str] = field(default_factory=Counter)
    late_s: list[float] = field(default_factory=list)
    early: int = 0
    lost: int = 0
    repeated: int = 0
    kills: list[dict[str, Any]] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)
    skipped: Counter[str] = field(default_factory=Counter)
    spread_ms: int = 0
    left_out: tuple[str, str] | None = None
    """(job id, instant) of one that was skipped."""

    def quantile(self, part: float) -> float:
        """Lateness below which `part` of the executions started, in seconds."""
        return self.late_s[min(len(self.late_s) - 1, int(part * len(self.late_s)))] if self.late_s else 0.0


def settle(
    plan: Sequence[Planned],
    lives: Mapping[str, Life],
    histories: Mapping[str, History],
    sightings: Iterable[Sighting],
    kills: Sequence[Kill],
) -> Account:
    """Compare the three accounts; whatever does not fit becomes a complaint."""
    seen = _by_execution(sightings)
    account = Account(jobs=len(plan))
    expected: set[str] = set()
    for planned in plan:
        instants = expected_instants(planned, *lives[planned.id])
        expected |= {f"{planned.id}:{at}" for at in instants}
        _settle_job(account, planned, instants, histories[planned.id], seen)
    for stranger in seen.keys() - expected:
        account.complaints.append(f"{stranger}: started, but never due")
    starts = {execution: _starts(found) for execution, found in seen.items()}
    firsts = {execution: found[0] for execution, found in starts.items() if found}
    account.late_s = sorted((one.at - one.due_at) / 1000 for one in firsts.values())
    account.early = sum(one.at < one.due_at for found in starts.values() for one in found)
    account.kills = [_cost(kill, seen, firsts) for kill in kills]
    return account


def _settle_job(
    account: Account,
    planned: Planned,
    instants: Sequence[int],
    history: History,
    seen: Mapping[str, Sequence[Sighting]],
) -> None:
    if history.status != planned.status:
        account.complaints.append(f"{planned.id}: is {history.status}, wanted {planned.status}")
    tried: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    skipped: set[int] = set()
    for attempt in history.attempts:
        if attempt["status"] == "skipped":
            skipped |= _settle_stretch(account, planned, instants, attempt)
        else:
            tried[attempt["execution_id"]].append(attempt)
    for at in sorted({*instants} - skipped):
        execution = f"{planned.id}:{at}"
        attempts = tried.pop(execution, [])
        faults = list(_faults(planned, at, attempts, seen.get(execution, ())))
        account.complaints += [f"{execution}: {fault}" for fault in faults]
        account.lost += bool(faults)
        account.executions[attempts[-1]["status"] if attempts else "missing"] += 1
        account.repeated += _repeats(attempts, seen.get(execution, ()))
        if planned.jitter_ms and attempts:
            account.spread_ms = max(account.spread_ms, instant(attempts[0]["due_at"]) - at)
    for execution, attempts in tried.items():
        status = attempts[-1]["status"]
        account.executions[status] += 1
        if status != "cancelled":
            account.complaints.append(f"{execution}: {status}, but never due")


def _settle_stretch(
    account: Account, planned: Planned, instants: Sequence[int], row: Mapping[str, Any]
) -> set[int]:
    """The instants that a row of skipped ones stands for."""
    first_at, last_at = instant(row["scheduled_at"]), instant(row["last_at"])
    covered = {at for at in instants if first_at <= at <= last_at}
    if row["reason"] != planned.skips or row["count"] != len(covered):
        account.complaints.append(
            f"{planned.id}: {row['count']} skipped ({row['reason']}), {len(covered)} instants are there"
        )
    account.skipped[row["reason"]] += row["count"]
    account.left_out = account.left_out or (planned.id, row["scheduled_at"])
    return covered


def _faults(
    planned: Planned, at: int, attempts: Sequence[Mapping[str, Any]], seen: Sequence[Sighting]
) -> Iterator[str]:
    """Why this due instant is not accounted for; nothing if it is."""
    if not attempts:
        yield "not in the history"
        return
    statuses = Counter(attempt["status"] for attempt in attempts)
    if attempts[-1]["status"] != planned.outcome:
        yield f"ended {attempts[-1]['status']}, wanted {planned.outcome}"
    if any(instant(attempt["scheduled_at"]) != at for attempt in attempts):
        yield "the history names another instant"
    if not 0 <= instant(attempts[0]["due_at"]) - at <= planned.jitter_ms:
        yield f"due at {attempts[0]['due_at']}, which is not within its jitter"
    if len(attempts) - statuses["lost"] != planned.attempts and not statuses["lost"]:
        yield f"{len(attempts)} attempts, wanted {planned.attempts}"
    if bool(_starts(seen)) != planned.is_started:
        yield "no handler saw it" if planned.is_started else "a handler saw it"
    if planned.outcome == "succeeded" and not any(one.moment == "finished" for one in seen):
        yield "no handler finished it"


def _repeats(attempts: Sequence[Mapping[str, Any]], seen: Sequence[Sighting]) -> int:
    """Starts beyond those that attempts with an outcome explain: what at-least-once costs."""
    explained = sum(attempt["status"] in ("succeeded", "failed") for attempt in attempts)
    return max(0, len(_starts(seen)) - explained)


def _cost(
    kill: Kill, seen: Mapping[str, Sequence[Sighting]], firsts: Mapping[str, Sighting]
) -> dict[str, Any]:
    """The latest start, after its due instant, of what fell due around the kill or ran on what was killed."""
    late = [
        one.at - one.due_at
        for one in firsts.values()
        if kill.at - 1_000 <= one.due_at <= kill.at + _WINDOW_MS
    ]
    for found in seen.values():
        mine = [one for one in found if one.pid == kill.pid]
        if mine and mine[-1].moment == "started":
            late.append(_starts(found)[-1].at - found[0].due_at)
    return {"what": kill.what, "latest_start_s": round(max(late, default=0.0) / 1000, 3)}


def _starts(seen: Sequence[Sighting]) -> list[Sighting]:
    return [one for one in seen if one.moment == "started"]


def _by_execution(sightings: Iterable[Sighting]) -> dict[str, list[Sighting]]:
    found: dict[str, list[Sighting]] = defaultdict(list)
    for sighting in sorted(sightings, key=lambda one: one.at):
        found[sighting.execution].append(sighting)
    return found
