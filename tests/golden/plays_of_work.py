"""Histories about what becomes of executions, and of everything that is declared."""

from __future__ import annotations

import hashlib
from typing import Any

from minutebook import ids
from minutebook.domain.commands import (
    AskWorker,
    CancelExecution,
    CancelJob,
    CancelOperation,
    DeclareKey,
    DeclareLimit,
    DeclareQueue,
    DeclareTask,
    DiscardExecution,
    EditJob,
    PauseLimit,
    PauseQueue,
    PurgeJob,
    RedriveExecution,
    ResumeQueue,
    RevokeKey,
    RunJobNow,
    StartOperation,
)
from minutebook.domain.operation import OperationFilter
from minutebook.domain.policy import Policy
from minutebook.domain.timing import Timing
from tests.golden.plays import history
from tests.golden.plays_of_time import DAY, MINUTE, at, instant
from tests.golden.scene import TENANT, Scene, succeeds

NOON = "2025-07-01T12:00Z"


def fails(execution: str) -> str:
    """Every run fails."""
    return "failed"


def hangs(execution: str) -> str:
    """No run ends."""
    return "hangs"


def _of(job_id: str) -> dict[str, Any]:
    return {"tenant": TENANT, "job_id": job_id}


@history
def edit() -> Scene:
    """A job gets another payload, then another schedule; an edit of a version that is gone is refused."""
    scene = at(NOON)
    scene.submit("j", cron="* * * * *")
    scene.go(90_000)
    for changes, expected in (({"payload": b"2"}, 1), ({"cron": "*/2 * * * *"}, 2), ({"payload": b"3"}, 1)):
        wanted = scene.job("j", **({"cron": "* * * * *"} | changes))
        about = scene.about() | {"command_id": wanted.command_id}
        scene.say(EditJob(**_of("j"), **about, expected_version=expected, job=wanted))
        scene.go(MINUTE)
    return scene


@history
def cancel() -> Scene:
    """A job that waits, a job that runs, an execution that runs; and a job that nobody knows."""
    scene = at(NOON)
    scene.workers[0].run_ms = 5_000
    scene.submit("waits", run_at=scene.now + DAY)
    for name in ("runs", "one"):
        scene.submit(name)
    execution = ids.execution_id("one", scene.now)
    scene.go(1_000)
    for name in ("waits", "runs", "unknown"):
        scene.say(CancelJob(**_of(name), **scene.about(), reason="over"))
    scene.say(CancelExecution(**_of("one"), **scene.about(), execution=execution))
    scene.go(1_000)
    scene.workers[0].cancel(execution)
    scene.go(10_000)
    return scene


@history
def run_now() -> Scene:
    """Beside the schedule, twice; the same command again changes nothing."""
    scene = at(NOON)
    scene.submit("j", cron="0 0 1 1 *")
    scene.go(100)
    again = RunJobNow(**_of("j"), **scene.about())
    for command in (again, again, RunJobNow(**_of("j"), **scene.about())):
        scene.say(command)
        scene.go(2_000)
    return scene


@history
def retries() -> Scene:
    """Three failures, then success; each wait is longer than the one before."""
    scene = at(NOON)
    scene.workers[0].ending = fails
    scene.submit("j")
    scene.go(6_000)
    scene.workers[0].ending = succeeds
    scene.go(MINUTE)
    return scene


@history
def snoozed_in_progress_and_handed_back() -> Scene:
    """A run tells how far it is, goes on later, is handed back unstarted, and is reported as stuck and stopped."""
    scene = at(NOON)
    worker = scene.workers[0]
    worker.ending = hangs
    execution = ids.execution_id("j", scene.now)
    scene.submit("j", policy=Policy(stuck_after_ms=20_000, is_stuck_stopped=True, max_attempts=1))
    scene.go(1_000)
    worker.say(execution, progress=0.5)
    scene.go(1_000)
    worker.say(execution, snooze_ms=3_000)
    scene.go(5_000)
    worker.hand_back(execution)
    for _ in range(6):
        scene.go(5_000)
        scene.tick()
    scene.go(5_000)
    return scene


@history
def grant_withdrawn() -> Scene:
    """A worker that does not acknowledge what it is granted: the grant is taken back, and somebody else runs it."""
    scene = at(NOON)
    first = scene.workers[0]
    scene.submit("j")
    scene.go(5)
    first.is_alive = False
    scene.go(3_000)
    scene.tick()
    scene.add_worker("w2")
    scene.go(5_000)
    return scene


@history
def dead_letter() -> Scene:
    """Given up after the last attempt, at once for a permanent error, and for its deadline; one is redriven."""
    scene = at(NOON)
    scene.workers[0].ending = lambda name: "permanent" if name.startswith("wrong") else "failed"
    scene.submit("last", policy=Policy(max_attempts=2, jitter=0.0))
    scene.submit("wrong")
    scene.submit("late", policy=Policy(deadline_ms=5_000))
    scene.submit(
        "paused", cron="* * * * *", policy=Policy(max_attempts=1), timing=Timing(is_paused_on_failure=True)
    )
    execution = ids.execution_id("wrong", scene.now)
    scene.go(2 * MINUTE)
    scene.workers[0].ending = succeeds
    scene.say(RedriveExecution(**_of("wrong"), **scene.about(), execution=execution, payload=b"2"))
    scene.go(5_000)
    return scene


@history
def deadlines_without_a_worker() -> Scene:
    """Nobody is there to run them: they expire, and are skipped."""
    scene = Scene()
    scene.submit("start", policy=Policy(start_deadline_ms=3_000))
    scene.submit("whole", policy=Policy(deadline_ms=7_000))
    scene.submit("each", every_ms=10_000, timing=Timing(max_runs=2), policy=Policy(start_deadline_ms=2_000))
    scene.go(MINUTE)
    return scene


@history
def redrive_operation() -> Scene:
    """All that was given up is run again, over two partitions."""
    scene = Scene(2)
    worker = scene.add_worker(slots=8, ending=lambda name: "permanent")
    for number in range(7):
        scene.submit(f"j{number}")
    scene.go(5_000)
    worker.ending = succeeds
    about = {"tenant": TENANT, "operation": "again", "reason": "fixed"} | scene.about()
    scene.say(
        StartOperation(**about, kind="redrive", filter=OperationFilter(error_type="ValueError"), rate_per_s=5)
    )
    scene.go(10_000)
    return scene


@history
def discard_operation() -> Scene:
    """One that was given up is discarded, and refused to a redrive; then all that are left, over two partitions."""
    scene = Scene(2)
    scene.add_worker(slots=8, ending=lambda name: "permanent")
    for number in range(5):
        scene.submit(f"j{number}")
    execution = ids.execution_id("j0", scene.now)
    scene.go(5_000)
    scene.say(DiscardExecution(**_of("j0"), **scene.about(), execution=execution, reason="sent by hand"))
    scene.go(1_000)
    scene.say(RedriveExecution(**_of("j0"), **scene.about(), execution=execution))
    about = {"tenant": TENANT, "operation": "away", "reason": "no longer wanted"} | scene.about()
    scene.say(StartOperation(**about, kind="discard", filter=OperationFilter(error_type="ValueError")))
    scene.go(10_000)
    return scene


@history
def backfill_operation() -> Scene:
    """The last six hours of an hourly job, from before it was there, run after all."""
    scene = at(NOON)
    scene.submit("hourly", cron="0 * * * *")
    scene.go(100)
    wanted = OperationFilter(job_id="hourly", from_at=instant("2025-07-01T06:00Z"), until_at=instant(NOON))
    about = {"tenant": TENANT, "operation": "fill"} | scene.about()
    scene.say(StartOperation(**about, kind="backfill", filter=wanted))
    scene.go(MINUTE)
    return scene


@history
def pause_operation() -> Scene:
    """Jobs with a tag are paused, and cancelled; an operation that is slow is cancelled itself."""
    scene = at(NOON)
    for number in range(4):
        scene.submit(f"j{number}", cron="* * * * *", tags=["old"] if number % 2 else [])
    scene.go(100)
    for kind in ("pause", "cancel"):
        about = {"tenant": TENANT, "operation": kind} | scene.about()
        scene.say(StartOperation(**about, kind=kind, filter=OperationFilter(tag="old")))
        scene.go(5_000)
    about = {"tenant": TENANT, "operation": "slow"} | scene.about()
    scene.say(StartOperation(**about, kind="pause", filter=OperationFilter(job_prefix="j"), rate_per_s=1))
    scene.go(500)
    scene.say(CancelOperation(tenant=TENANT, operation="slow", **scene.about(), reason="too slow"))
    scene.go(2_000)
    return scene


@history
def loss_of_a_lease() -> Scene:
    """A worker is silent: what it ran is lost and tried again elsewhere; what it says afterwards is refused."""
    scene = at(NOON)
    first = scene.workers[0]
    first.ending = hangs
    scene.submit("j")
    scene.go(3_000)
    first.is_alive = False
    second = scene.add_worker("w2")
    for _ in range(6):
        scene.go(2_000)
        scene.tick()
    scene.go(5_000)
    assert second.is_alive
    first.is_alive, first.ending = True, succeeds
    scene.go(3_000)
    return scene


@history
def hand_over_with_a_void_frame() -> Scene:
    """Another owner takes over; the frame of the one before it lies behind, and is void."""
    scene = at(NOON)
    scene.submit("j", cron="* * * * *")
    scene.go(MINUTE)
    scene.lose_race()
    scene.go(2 * MINUTE)
    return scene


@history
def limit() -> Scene:
    """Two at a time over two partitions; then the limit is paused, and changed."""
    scene = Scene(2)
    scene.add_worker(slots=8, run_ms=1_000)
    about = {"tenant": TENANT, "name": "k"}
    scene.say(DeclareLimit(**about, **scene.about(), concurrency=2))
    scene.go(100)
    for number in range(7):
        scene.submit(f"j{number}", limit="k")
    scene.go(2_500)
    scene.say(PauseLimit(**about, **scene.about(), for_ms=3_000))
    scene.go(2_000)
    scene.say(DeclareLimit(**about, **scene.about(), concurrency=3))
    scene.go(12_000)
    return scene


@history
def rate_limit() -> Scene:
    """Two starts in any three seconds."""
    scene = at(NOON)
    about = {"tenant": TENANT, "name": "k"} | scene.about()
    scene.say(DeclareLimit(**about, rate_count=2, rate_period_ms=3_000))
    scene.go(100)
    for number in range(5):
        scene.submit(f"j{number}", limit="k")
    scene.go(15_000)
    return scene


@history
def paused_key() -> Scene:
    """Nothing of one customer starts for a while."""
    scene = at(NOON)
    about = {"tenant": TENANT, "name": "customer-7"}
    scene.say(DeclareLimit(**about, **scene.about(), concurrency=9))
    scene.say(PauseLimit(**about, **scene.about(), for_ms=5_000, reason="their system is down"))
    scene.go(100)
    scene.submit("theirs", limit="customer-7")
    scene.submit("others", limit="customer-8")
    scene.go(10_000)
    return scene


@history
def open_queue_claims() -> Scene:
    """Claims by name: granted, repeated, of an attempt that is none, of an execution that nobody knows."""
    scene = at(NOON)
    scene.say(DeclareQueue(name="open", is_open=True, **scene.about()))
    scene.go(100)
    execution = ids.execution_id("j", scene.now)
    scene.submit("j", queue="open")
    scene.go(1_000)
    scene.workers[0].claim("j:1", execution)
    scene.go(100)
    scene.workers[0].claim(execution, attempt=2)
    scene.go(5_000)
    return scene


@history
def paused_queue() -> Scene:
    """Nothing of a queue is granted until it is resumed."""
    scene = at(NOON)
    scene.say(PauseQueue(name="default", **scene.about(), reason="deploy"))
    scene.go(100)
    scene.submit("j")
    scene.go(10_000)
    scene.say(ResumeQueue(name="default", **scene.about()))
    scene.go(3_000)
    return scene


@history
def keys_declared_and_revoked() -> Scene:
    """API keys; the same id for another key is refused."""
    scene = Scene()
    about = {"tenant": TENANT, "key": "ci"}
    for secret in (b"one", b"two"):
        digest = hashlib.sha256(secret).digest()
        scene.say(DeclareKey(**about, **scene.about(), role="submitter", sha256=digest, label="of the CI"))
        scene.go(100)
    scene.say(RevokeKey(**about, **scene.about(), reason="leaked"))
    scene.go(100)
    return scene


@history
def purge() -> Scene:
    """A job that is closed is purged; one that is open is not."""
    scene = at(NOON)
    scene.submit("closed")
    scene.submit("open", run_at=scene.now + DAY)
    scene.go(3_000)
    for name in ("closed", "open"):
        scene.say(PurgeJob(**_of(name), **scene.about(), reason="asked for"))
    scene.go(1_000)
    scene.submit("closed")
    scene.go(3_000)
    return scene


@history
def forgotten_days() -> Scene:
    """Ten days: what was closed on the first is forgotten, and its id is free again."""
    scene = at(NOON)
    scene.submit("once")
    scene.submit("daily", cron="0 6 * * *")
    scene.go(10 * DAY)
    scene.submit("once")
    scene.go(2_000)
    return scene


@history
def clock_set_back() -> Scene:
    """The broker's clock is two hours behind for a while: commands count from its stamps, nothing is done twice."""
    scene = at(NOON)
    scene.submit("hourly", cron="0 * * * *")
    scene.go(61 * MINUTE)
    for name, fields in (
        ("now", {}),
        ("later", {"delay_ms": 3 * 60 * MINUTE}),
        ("each", {"cron": "30 * * * *"}),
    ):
        scene.say(scene.job(name, **fields), stamp=scene.now - 2 * 60 * MINUTE)
    scene.go(4 * 60 * MINUTE)
    return scene


@history
def bad_records() -> Scene:
    """Records that are no commands, under another key, or sent to another partition."""
    scene = Scene(2)
    desk = scene.desk
    feed = desk.inputs["job-commands"]
    feed.add(b"junk", scene.now)
    here = next(name for name in ("a", "b", "c", "d") if scene.is_at(0, name))
    there = next(name for name in ("a", "b", "c", "d") if scene.is_at(1, name))
    for name, key in ((here, b"acme/other"), (there, None)):
        desk.now = scene.now
        scene.put(0, scene.job(name), key)
    scene.go(2_000)
    return scene


@history
def work_declared_and_workers_asked() -> Scene:
    """A task says what payload it takes; a worker is asked to be quiet."""
    scene = at(NOON)
    scene.say(DeclareTask(name="t", **scene.about(), payload_schema='{"type": "object"}'))
    scene.say(AskWorker(name="w1", **scene.about(), what="quiet"))
    scene.submit("nobody", task="unknown")
    scene.go(11 * MINUTE)
    return scene
