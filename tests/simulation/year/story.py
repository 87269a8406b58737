"""What happens in a year, drawn from a seed: commands at their moments, and what becomes of owner and workers."""

from __future__ import annotations

import random
from itertools import count
from typing import Any, Final, NamedTuple

import msgspec

from minutebook.domain.commands import (
    CalendarCommand,
    CancelJob,
    DeclareCalendar,
    DeleteCalendar,
    EditJob,
    JobCommand,
    PauseJob,
    ResumeJob,
    RunJobNow,
    SubmitJob,
)
from minutebook.domain.timing import Timing
from tests.simulation.year.schedules import (
    CALENDARS,
    DAY,
    END,
    HOUR,
    MINUTE,
    SECOND,
    START,
    quarter,
    schedule,
)

TENANTS: Final = ("acme", "globex", "initech")
TASK: Final = "t"
OUTAGES_MS: Final = (
    3 * SECOND,
    2 * MINUTE,
    10 * MINUTE,
    HOUR,
    3 * HOUR,
    9 * HOUR,
    26 * HOUR,
    3 * DAY,
    5 * DAY,
)


replace = msgspec.structs.replace


class Outage(NamedTuple):
    """Nobody owns the partition until then."""

    until_at: int


class SetBack(NamedTuple):
    """The broker's clock goes back: what was written by the old clock holds, and nobody decides before that is reached."""

    by_ms: int


class HandOver(NamedTuple):
    """Another owner takes the partition, with what the log says."""


class Idle(NamedTuple):
    """No worker offers anything until then."""

    until_at: int


class Death(NamedTuple):
    """A worker dies with all that it runs."""


Happening = JobCommand | CalendarCommand | Outage | SetBack | HandOver | Idle | Death


class Act(NamedTuple):
    """Something that happens at `at`."""

    at: int
    what: Happening


def story(seed: int, jobs: int, until: int) -> list[Act]:
    """A year of `jobs` schedules, by time, up to `until`; what happens but once in a while all happens until then."""
    chance = _Chance(seed, until)
    acts = [*_machines(chance)]
    for tenant in TENANTS:
        for name in CALENDARS:
            acts += _calendar(chance, tenant, name)
    nights = jobs // 100
    for number in range(nights):
        acts += _night(chance, number)
    for number in range(jobs - nights):
        acts += _Life(chance, number).acts
    return sorted((act for act in acts if START < act.at < until), key=lambda act: act.at)


def _machines(chance: _Chance) -> list[Act]:
    """What owner and workers go through."""
    acts: list[Act] = []
    for ms in OUTAGES_MS * 2:
        at = _moment(chance)
        acts.append(Act(at, Outage(at + ms + chance.randint(0, MINUTE))))
        acts.append(Act(at + 1, HandOver()))
    acts += [Act(_moment(chance), SetBack(by_ms)) for by_ms in (400, 900, MINUTE, 20 * MINUTE, 3 * HOUR, DAY)]
    acts += [Act(_moment(chance), HandOver()) for _ in range(12)]
    acts += [Act(_moment(chance), Death()) for _ in range(24)]
    for ms in (HOUR, 3 * HOUR, 9 * HOUR, 30 * HOUR):
        at = _moment(chance)
        acts.append(Act(at, Idle(at + ms)))
    return acts


class _Chance(random.Random):
    """Chance, and the end of what is told."""

    def __init__(self, seed: int, until: int) -> None:
        super().__init__(seed)
        self.until = until


def _moment(chance: _Chance) -> int:
    """Any moment, or one close to a quarter of an hour."""
    last = chance.until - 7 * DAY
    if chance.random() < 0.5:
        return chance.randrange(START + HOUR, last)
    return quarter(chance, START + HOUR, last) + chance.choice((-1, 0, 1, 5, 70, 2_000))


def _night(chance: _Chance, number: int) -> list[Act]:
    """A job that is due every second for a night, in which it is paused, or nobody owns the partition; not for the last
    seconds."""
    start = quarter(chance, START + DAY, chance.until - 7 * DAY)
    awake_at = start + chance.randint(14, 20) * HOUR
    names: dict[str, Any] = {"tenant": "acme", "job_id": f"night-{number}"}
    timing = Timing(start_at=start, end_at=awake_at + 20_000, misfire_max=chance.choice((1, 100, 1_000)))
    about = names | {"command_id": f"night-{number}", "issued_at": START + 1_000}
    acts = [
        Act(START + 1_000, SubmitJob(**about, task=TASK, payload=b"1", cron="* * * * * *", timing=timing))
    ]
    if number % 3 == 2:
        return [*acts, Act(start - 30_000, Outage(awake_at))]
    about |= {"command_id": f"night-{number}-p", "issued_at": start - 30_000}
    acts.append(Act(start - 30_000, PauseJob(**about)))
    about |= {"command_id": f"night-{number}-r", "issued_at": awake_at}
    return [*acts, Act(awake_at, ResumeJob(**about, is_caught_up=number % 3 == 1))]


def _calendar(chance: _Chance, tenant: str, name: str) -> list[Act]:
    """A calendar that is there from the start, and is changed or deleted now and then."""
    acts: list[Act] = []
    for number, at in enumerate((START + 500, *(_moment(chance) for _ in range(4)))):
        about: dict[str, Any] = {
            "tenant": tenant,
            "name": name,
            "command_id": f"{tenant}-{name}-{number}",
            "issued_at": at,
        }
        if number and chance.random() < 0.25:
            acts.append(Act(at, DeleteCalendar(**about)))
            continue
        first = sorted(chance.sample(range(START // DAY, END // DAY), chance.choice((3, 20, 60))))
        last = [min(day + chance.choice((0, 0, 1, 9)), END // DAY - 1) for day in first]
        acts.append(Act(at, DeclareCalendar(**about, first_days=first, last_days=last)))
    return acts


class _Life:
    """One job from its submission on."""

    def __init__(self, chance: _Chance, number: int) -> None:
        self._chance = chance
        self._ids = count()
        self.tenant = chance.choice(TENANTS)
        self.job_id = f"job-{number}"
        self._since = START + 1_000 if chance.random() < 0.75 else _moment(chance)
        job = self._job(self._since)
        self.acts = [Act(self._since, job)]
        for _ in range(_few(chance, 0.3)):
            self._pause()
        edits = sorted(_moment(chance) for _ in range(_few(chance, 0.25)))
        for at in edits:
            job = self._edit(at, job)
        if chance.random() < 0.1:
            self._act(_moment(chance), CancelJob)
        for _ in range(_few(chance, 0.1)):
            self._act(_moment(chance), RunJobNow)

    def _pause(self) -> None:
        """A pause of some hours or weeks, or to the end; now and then both commands come twice."""
        chance = self._chance
        at = _moment(chance)
        until = at + chance.choice((MINUTE, HOUR, 5 * HOUR, DAY, 3 * DAY, 20 * DAY)) + chance.randint(0, HOUR)
        self._act(at, PauseJob)
        if chance.random() < 0.95:
            self._act(until, ResumeJob, is_caught_up=chance.random() < 0.4)
        if chance.random() < 0.1:
            self._act(at + 1_000, PauseJob)
            self._act(until + 1_000, ResumeJob)

    def _edit(self, at: int, job: SubmitJob) -> SubmitJob:
        """Another schedule, or only other policies."""
        about = self._about(at)
        changed = self._job(at)
        if self._chance.random() < 0.4:
            changed = replace(
                job, timeout_ms=6 * DAY, **{name: about[name] for name in ("command_id", "issued_at")}
            )
        changed = replace(changed, command_id=about["command_id"])
        if changed.run_at is not None and changed.run_at != job.run_at:
            changed = replace(changed, run_at=max(changed.run_at, at + HOUR))
        self._put(at, EditJob(**about, job=changed))
        return changed

    def _job(self, at: int) -> SubmitJob:
        fields = schedule(self._chance)
        return SubmitJob(**self._about(at), task=TASK, payload=b"1", timeout_ms=7 * DAY, late="run", **fields)

    def _about(self, at: int) -> dict[str, Any]:
        return {
            "tenant": self.tenant,
            "job_id": self.job_id,
            "command_id": f"{self.job_id}-{next(self._ids)}",
            "issued_at": at,
        }

    def _act(self, at: int, kind: type[JobCommand], **fields: Any) -> None:
        self._put(at, kind(**self._about(at), **fields))

    def _put(self, at: int, command: JobCommand) -> None:
        if at > self._since:
            self.acts.append(Act(at, command))


def _few(chance: _Chance, share: float) -> int:
    """How often something happens to a job, to which it happens at all with that chance."""
    return chance.choice((1, 1, 2, 3)) if chance.random() < share else 0
