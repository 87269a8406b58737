"""Histories about when jobs run."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from minutebook.domain.commands import DeclareCalendar, DeleteCalendar, PauseJob, ResumeJob
from minutebook.domain.timing import Timing
from tests.golden.plays import history
from tests.golden.scene import TENANT, Scene, days

MINUTE = 60_000
HOUR = 60 * MINUTE
DAY = 24 * HOUR


def instant(text: str) -> int:
    """ms of an instant such as 2025-10-25T20:00Z."""
    return int(datetime.fromisoformat(text).timestamp() * 1_000)


def at(text: str) -> Scene:
    """A scene with a worker, that begins then."""
    scene = Scene()
    scene.jump_to(instant(text))
    scene.add_worker()
    scene.go(10)
    return scene


@history
def one_off() -> Scene:
    """Three jobs that fire once: at an instant, after a delay, at once; and one too long in the past, which is refused."""
    scene = at("2025-07-01T12:00Z")
    scene.submit("at-noon", run_at=scene.now + 1_500)
    scene.submit("soon", delay_ms=700)
    scene.submit("now")
    scene.submit("past", run_at=scene.now - 2 * DAY)
    scene.go(4_000)
    return scene


@history
def cron_over_a_night_of_25_hours() -> Scene:
    """Clocks go back: 02:30 comes twice, once, first and last, as the job wishes."""
    scene = at("2025-10-25T20:00Z")
    for fold in ("auto", "first", "last", "both"):
        scene.submit(fold, cron="30 2 * * *", zone="Europe/Berlin", timing=Timing(fold=fold))
    scene.submit("each-quarter", cron="*/15 * * * *", zone="Europe/Berlin")
    scene.go_to(instant("2025-10-26T03:00Z"))
    return scene


@history
def cron_over_a_night_of_23_hours() -> Scene:
    """Clocks go forward: 02:30 does not come; each job has its own way with that."""
    scene = at("2026-03-28T20:00Z")
    for gap in ("auto", "run", "skip"):
        scene.submit(gap, cron="30 2 * * *", zone="Europe/Berlin", timing=Timing(gap=gap))
    scene.submit("each-hour", cron="5 * * * *", zone="Europe/Berlin")
    scene.go_to(instant("2026-03-29T06:00Z"))
    return scene


@history
def interval() -> Scene:
    """Every seven seconds, from the command and from a start; bounded by an end, and by a number of runs."""
    scene = at("2025-07-01T12:00Z")
    scene.submit("each", every_ms=7_000, timing=Timing(end_at=scene.now + 40_000))
    start_at = scene.now + 10_000
    scene.submit("three", every_ms=7_000, timing=Timing(start_at=start_at, max_runs=3))
    scene.go(60_000)
    return scene


@history
def jitter() -> Scene:
    """Instants that are due up to ten seconds late, each by its own draw."""
    scene = at("2025-07-01T12:00Z")
    for name in ("a", "b", "c"):
        scene.submit(name, cron="* * * * *", timing=Timing(jitter_ms=10_000))
    scene.go(3 * MINUTE)
    return scene


@history
def calendar_change() -> Scene:
    """A calendar leaves days out, then other ones, then is deleted; next instants are computed anew each time."""
    scene = at("2025-12-23T00:00Z")
    declare = {"tenant": TENANT, "name": "holidays"}
    xmas = days("2025-12-24", "2025-12-25")
    scene.say(DeclareCalendar(**declare, **scene.about(), first_days=xmas, last_days=xmas))
    scene.go(10)
    for name in ("a", "b"):
        scene.submit(name, cron="0 12 * * *", timing=Timing(exclude=["holidays"]))
    scene.go_to(instant("2025-12-23T18:00Z"))
    other = days("2025-12-24", "2025-12-26")
    scene.say(DeclareCalendar(**declare, **scene.about(), first_days=other, last_days=other))
    scene.go_to(instant("2025-12-25T18:00Z"))
    scene.say(DeleteCalendar(**declare, **scene.about()))
    scene.go_to(instant("2025-12-26T18:00Z"))
    return scene


def _missed(**timing: Any) -> Scene:
    """Nobody is there for six minutes of a job that runs each minute."""
    scene = at("2025-07-01T12:00:30Z")
    scene.submit("each-minute", cron="* * * * *", timing=Timing(**timing))
    scene.submit("once", run_at=scene.now + MINUTE, timing=Timing(misfire=timing["misfire"]))
    scene.go(1_000)
    scene.jump_to(scene.now + 6 * MINUTE)
    scene.go(2 * MINUTE)
    return scene


@history
def misfire_all() -> Scene:
    """What was missed is made up for, the latest four of it."""
    return _missed(misfire="all", misfire_max=4)


@history
def misfire_latest() -> Scene:
    """Of what was missed only the latest runs."""
    return _missed(misfire="latest")


@history
def misfire_none() -> Scene:
    """What was missed is skipped."""
    return _missed(misfire="none")


def _overlapping(policy: str) -> Scene:
    """Runs of 25 seconds, one due every ten."""
    scene = at("2025-07-01T12:00Z")
    scene.workers[0].run_ms = 25_000
    scene.submit("long", every_ms=10_000, timing=Timing(overlap=policy, max_runs=6))
    scene.go(3 * MINUTE)
    return scene


@history
def overlap_allow() -> Scene:
    """They run side by side."""
    return _overlapping("allow")


@history
def overlap_skip() -> Scene:
    """What is due while one is open is skipped."""
    return _overlapping("skip")


@history
def overlap_queue_one() -> Scene:
    """One waits until the one before it has ended."""
    return _overlapping("queue_one")


@history
def overlap_queue_all() -> Scene:
    """All wait for one another."""
    return _overlapping("queue_all")


@history
def overlap_cancel_running() -> Scene:
    """The later one ends the earlier one."""
    return _overlapping("cancel_running")


def _paused(*, is_caught_up: bool) -> Scene:
    scene = at("2025-07-01T12:00:30Z")
    scene.submit("each-minute", cron="* * * * *")
    scene.go(MINUTE)
    which = {"tenant": TENANT, "job_id": "each-minute"}
    scene.say(PauseJob(**which, **scene.about(), reason="the feed is broken"))
    scene.go(4 * MINUTE)
    scene.say(ResumeJob(**which, **scene.about(), is_caught_up=is_caught_up))
    scene.go(2 * MINUTE)
    return scene


@history
def pause_and_skip() -> Scene:
    """The instants of a pause are skipped."""
    return _paused(is_caught_up=False)


@history
def pause_and_catch_up() -> Scene:
    """The instants of a pause are made up for."""
    return _paused(is_caught_up=True)


@history
def zone_data_change() -> Scene:
    """An owner with newer zone data takes over: next instants are computed anew."""
    scene = Scene()
    newer, scene.desk.tzdata = scene.desk.tzdata, "2001a"
    scene.add_worker()
    scene.submit("berlin", cron="30 2 * * *", zone="Europe/Berlin")
    scene.go(1_000)
    scene.desk.tzdata = newer
    scene.take_over()
    scene.go(DAY)
    return scene
