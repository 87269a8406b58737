"""The read model: what each event makes of its rows, and that only the log decides them."""

from __future__ import annotations

import random

import msgspec
import pytest

from minutebook.domain import events as facts
from minutebook.domain.events import Event
from minutebook.domain.view import PartitionView
from minutebook.domain.view_rows import FAMILIES, CursorRow, ExecutionRow, digest
from minutebook.errors import BrokenFrameError
from minutebook.store.memory import MemoryRows

T = 1_767_225_600_000
HOUR = 3_600_000
TENANT = "acme"


class Reader:
    """A view of one partition, given events frame by frame. `now` is one second later in each frame."""

    def __init__(self, partition: int = 3, hot_max: int = 1_000) -> None:
        self.rows = MemoryRows(FAMILIES)
        self.view = PartitionView(self.rows, partition, hot_max)
        self.now = T
        self.position = -1
        self.is_committing = True

    def frame(self, *events: Event) -> int:
        """Fold one frame; when it was decided."""
        self.position += 1
        self.now += 1_000
        self.view.fold(events, self.now, self.position)
        self.view.advance(CursorRow(self.position))
        if self.is_committing:
            self.commit()
        return self.now

    def commit(self) -> None:
        self.rows.write(*self.view.drain())

    def status(self, job_id: str = "j") -> str:
        found = self.view.job(TENANT, job_id)
        assert found is not None
        return found[1].status

    def next_at(self, job_id: str = "j") -> int:
        found = self.view.job(TENANT, job_id)
        assert found is not None
        return found[1].next_at

    def history(self, job_id: str = "j") -> list[tuple[str, ExecutionRow]]:
        self.commit()
        return [(name, row) for _, name, row in self.view.executions(TENANT, job_id)]

    def attempts(self, job_id: str = "j") -> list[tuple[str, int, str]]:
        return [
            (name, attempt.number, attempt.status)
            for name, row in self.history(job_id)
            for attempt in (*row.earlier, row.last)
        ]


def submitted(
    job_id: str = "j", next_at: int = T, cron: str = "", tenant: str = TENANT
) -> facts.JobSubmitted:
    return facts.JobSubmitted(
        tenant, job_id, f"c-{job_id}", "actor", T, T, b"", "task", b'{"n": 1}', 0, b"", "default", cron, "UTC",
        "refuse", 300_000, 5, next_at, "",
    )  # fmt: skip


def queued(*names: str, at: int = T, next_at: int = -1, attempt: int = 1) -> facts.ExecutionsQueued:
    count = len(names)
    zeros, instants = [0] * count, [at] * count
    return facts.ExecutionsQueued(
        tenants=[TENANT],
        queues=["default"],
        tasks=["task"],
        tenant=zeros,
        queue=zeros,
        task=zeros,
        executions=list(names),
        versions=[1] * count,
        scheduled_at=instants,
        due_at=instants,
        next_at=[next_at] * count,
        attempts=[attempt] * count,
        priorities=[5] * count,
    )


def due_granted(*names: str, at: int = T, next_at: int = -1, attempt: int = 1) -> facts.ExecutionsDueGranted:
    columns = msgspec.structs.asdict(queued(*names, at=at, next_at=next_at, attempt=attempt))
    del columns["limits"], columns["limit"]
    return facts.ExecutionsDueGranted(**columns, sessions=["w.1"], session=[0] * len(names), permits=[])


def granted(*names: str, session: str = "w.1", attempt: int = 1) -> facts.ExecutionsGranted:
    zeros = [0] * len(names)
    return facts.ExecutionsGranted([TENANT], zeros, list(names), [attempt] * len(names), [session], zeros, [])


def succeeded(*names: str) -> facts.AttemptsSucceeded:
    zeros = [0] * len(names)
    return facts.AttemptsSucceeded([TENANT], zeros, list(names), zeros, zeros, zeros)


def failed(name: str, attempt: int, retry_at: int) -> facts.AttemptFailed:
    return facts.AttemptFailed(TENANT, name, attempt, 0, "w.1", "ValueError", "no", False, retry_at, 0, 0)


def lost(name: str, *, has_retry: bool, cause: str = "lease_over") -> facts.AttemptsLost:
    return facts.AttemptsLost([TENANT], cause, [0], [name], [0], ["w.1"], [0], [has_retry])


def dead(name: str, attempt: int = 1) -> facts.ExecutionDead:
    return facts.ExecutionDead(TENANT, name, 1, 1, attempt, T, T, T, "attempts", "ValueError", "no")


def test_job_that_fires_once_runs_to_completed() -> None:
    reader = Reader()
    reader.frame(submitted())
    assert reader.status() == "active"
    granted_at = reader.frame(due_granted(f"j:{T}"))
    assert reader.attempts() == [(f"j:{T}", 1, "running")]
    assert reader.status() == "active"
    ended_at = reader.frame(succeeded(f"j:{T}"))
    name, row = reader.history()[0]
    assert (name, row.scheduled_at, row.outcome) == (f"j:{T}", T, "succeeded")
    attempt = row.last
    assert (attempt.due_at, attempt.queued_at, attempt.started_at, attempt.ended_at) == (
        T,
        granted_at,
        granted_at,
        ended_at,
    )
    assert attempt.session == "w.1"
    assert reader.status() == "completed"


def test_queued_attempt_starts_when_granted() -> None:
    reader = Reader()
    reader.frame(submitted())
    queued_at = reader.frame(queued(f"j:{T}"))
    assert reader.attempts() == [(f"j:{T}", 1, "queued")]
    granted_at = reader.frame(granted(f"j:{T}"))
    attempt = reader.history()[0][1].last
    assert (attempt.status, attempt.queued_at, attempt.started_at) == ("running", queued_at, granted_at)


def test_recurring_job_stays_active_and_lists_by_instant() -> None:
    reader = Reader()
    reader.frame(submitted(cron="0 * * * *"))
    for number in range(12):
        at = T + number * HOUR
        reader.frame(due_granted(f"j:{at}", at=at, next_at=at + HOUR))
        reader.frame(succeeded(f"j:{at}"))
    assert [name for name, _ in reader.history()] == [f"j:{T + number * HOUR}" for number in range(12)]
    assert (reader.status(), reader.next_at()) == ("active", T + 12 * HOUR)


def test_failed_attempt_is_followed_by_the_next() -> None:
    reader = Reader()
    reader.frame(submitted())
    reader.frame(due_granted(f"j:{T}"))
    reader.frame(failed(f"j:{T}", 1, T + 9_000))
    assert reader.attempts() == [(f"j:{T}", 1, "failed"), (f"j:{T}", 2, "scheduled")]
    row = reader.history()[0][1]
    assert (row.earlier[0].error_type, row.earlier[0].message) == ("ValueError", "no")
    assert (row.last.due_at, row.last.queued_at, row.last.started_at) == (T + 9_000, -1, -1)
    reader.frame(queued(f"j:{T}", next_at=-2, attempt=2))
    reader.frame(granted(f"j:{T}", attempt=2))
    reader.frame(succeeded(f"j:{T}"))
    assert reader.attempts() == [(f"j:{T}", 1, "failed"), (f"j:{T}", 2, "succeeded")]
    assert reader.status() == "completed"


def test_execution_given_up_leaves_a_dead_job() -> None:
    reader = Reader()
    reader.frame(submitted())
    reader.frame(due_granted(f"j:{T}"))
    reader.frame(failed(f"j:{T}", 1, -1), dead(f"j:{T}"))
    assert reader.attempts() == [(f"j:{T}", 1, "failed")]
    assert reader.history()[0][1].outcome == "dead"
    assert reader.status() == "dead"


def test_status_goes_by_the_execution_that_ended_last() -> None:
    reader = Reader()
    reader.frame(submitted(cron="0 * * * *"))
    reader.frame(due_granted(f"j:{T}", next_at=T + HOUR))
    reader.frame(due_granted(f"j:{T + HOUR}", at=T + HOUR, next_at=-1))
    reader.frame(failed(f"j:{T + HOUR}", 1, -1), dead(f"j:{T + HOUR}"))
    assert reader.status() == "active"
    reader.frame(succeeded(f"j:{T}"))
    assert reader.status() == "completed"


def test_lost_attempt_is_queued_again_at_once() -> None:
    reader = Reader()
    reader.frame(submitted())
    reader.frame(due_granted(f"j:{T}"))
    lost_at = reader.frame(lost(f"j:{T}", has_retry=True))
    assert reader.attempts() == [(f"j:{T}", 1, "lost"), (f"j:{T}", 2, "queued")]
    row = reader.history()[0][1]
    assert (row.earlier[0].ended_at, row.last.queued_at, row.last.session) == (lost_at, lost_at, "")
    reader.frame(granted(f"j:{T}", attempt=2))
    reader.frame(lost(f"j:{T}", has_retry=False), dead(f"j:{T}", 2))
    assert reader.attempts()[-1] == (f"j:{T}", 2, "lost")
    assert reader.status() == "dead"


def test_loss_counted_after_withdrawal_changes_no_attempt() -> None:
    reader = Reader()
    reader.frame(submitted())
    reader.frame(queued(f"j:{T}"))
    reader.frame(lost(f"j:{T}", has_retry=True, cause="session_died"))
    assert reader.attempts() == [(f"j:{T}", 1, "queued")]


@pytest.mark.parametrize(("wait_until", "status"), [(-1, "queued"), (T + 5_000, "scheduled")])
def test_returned_grant_is_the_same_attempt(wait_until: int, status: str) -> None:
    reader = Reader()
    reader.frame(submitted())
    reader.frame(due_granted(f"j:{T}"))
    reader.frame(
        facts.GrantsReturned([TENANT], "withdrawn", [0], [f"j:{T}"], [0], ["w.1"], [0], [wait_until])
    )
    assert reader.attempts() == [(f"j:{T}", 1, status)]
    attempt = reader.history()[0][1].last
    assert (attempt.started_at, attempt.session) == (-1, "")


def test_run_now_is_an_execution_beside_the_schedule() -> None:
    reader = Reader()
    reader.frame(submitted(next_at=T + HOUR))
    at = T + 500
    name = "j:rcommand"
    reader.frame(facts.ExecutionRequested(TENANT, "j", "command", "actor", "", at, name))
    assert reader.attempts() == [(name, 1, "scheduled")]
    reader.view = PartitionView(reader.rows, 3)
    reader.frame(due_granted(name, at=at, next_at=-2))
    reader.frame(succeeded(name))
    assert [(name, row.scheduled_at, row.outcome) for name, row in reader.history()] == [
        (name, at, "succeeded")
    ]
    assert (reader.status(), reader.next_at()) == ("active", T + HOUR)
    answer = reader.view.command(TENANT, "command", "j")
    assert answer is not None
    assert answer.is_accepted


def test_cancelled_job_keeps_what_runs() -> None:
    reader = Reader()
    reader.frame(submitted(cron="0 * * * *"))
    reader.frame(due_granted(f"j:{T}", next_at=T + HOUR))
    reader.frame(queued(f"j:{T + HOUR}", at=T + HOUR, next_at=T + 2 * HOUR))
    reader.frame(facts.JobCancelled(TENANT, "j", "c2", "actor", "", T, [f"j:{T + HOUR}"], [f"j:{T}"], [0]))
    assert reader.attempts() == [(f"j:{T}", 1, "running"), (f"j:{T + HOUR}", 1, "cancelled")]
    assert (reader.status(), reader.next_at()) == ("cancelled", -1)
    reader.frame(facts.AttemptCancelled(TENANT, f"j:{T}", 1, 0, "cancel"))
    assert reader.attempts()[0] == (f"j:{T}", 1, "cancelled")
    assert reader.status() == "cancelled"


def test_skipped_instants_are_one_row_with_their_count() -> None:
    reader = Reader()
    reader.frame(submitted(cron="* * * * *"))
    reader.frame(facts.ExecutionsSkipped(TENANT, "j", "misfire", T, T + 59 * 60_000, 60, T + HOUR))
    name, row = reader.history()[0]
    assert (name, row.outcome, row.last.status) == (f"j:{T}", "skipped", "skipped")
    assert row.skip is not None
    assert (row.skip.reason, row.skip.last_at, row.skip.count) == ("misfire", T + 59 * 60_000, 60)
    assert reader.next_at() == T + HOUR


@pytest.mark.parametrize(
    ("event", "key", "is_accepted", "reason"),
    [
        (submitted(), ("c-j", "j"), True, ""),
        (
            facts.CommandRejected(TENANT, "x", "c", "CancelJob", "not_found", "id", "no"),
            ("c", "x"),
            False,
            "not_found",
        ),
        (facts.CommandAnswered(TENANT, "x", "c", "exists"), ("c", "x"), True, "exists"),
    ],
)
def test_command_is_answered(event: Event, key: tuple[str, str], is_accepted: bool, reason: str) -> None:
    reader = Reader()
    reader.frame(event)
    row = reader.view.command(TENANT, *key)
    assert row is not None
    assert (row.is_accepted, row.reason, row.position) == (is_accepted, reason, 0)
    assert len(reader.view.answered) == 1
    assert reader.view.command("other", *key) is None


def test_repeat_keeps_the_first_answer() -> None:
    reader = Reader()
    reader.frame(facts.CommandRejected(TENANT, "x", "c", "CancelJob", "not_found", "id", "no"))
    reader.frame(facts.CommandAnswered(TENANT, "x", "c", "again"))
    row = reader.view.command(TENANT, "c", "x")
    assert row is not None
    assert (row.is_accepted, row.position) == (False, 0)
    assert len(reader.view.answered) == 2


def test_queue_counts_when_its_copy_is_here() -> None:
    reader = Reader()
    reader.frame(facts.QueueDeclared("mail", 1, False, [], "c", "actor", T))
    assert reader.view.queue("mail") is None
    reader.frame(facts.QueueCopied("mail", 1, False, ["acme"]))
    found = reader.view.queue("mail")
    assert found is not None
    assert (found.version, found.tenants) == (1, ["acme"])


def test_limit_is_that_of_the_newest_version() -> None:
    reader = Reader()
    reader.frame(facts.LimitDeclared(TENANT, "k", 2, 3, -1, -1, -1, False, "c", "actor", "", T))
    answer = reader.view.command(TENANT, "c", "limit:k")
    assert answer is not None
    assert (answer.is_accepted, answer.version) == (True, 2)
    assert reader.view.limit(TENANT, "k") is None
    for version, concurrency in ((2, 3), (1, 9), (2, 9)):
        reader.frame(facts.LimitCopied(TENANT, "k", version, concurrency, -1, -1, -1, False))
    found = reader.view.limit(TENANT, "k")
    assert found is not None
    assert (found.version, found.concurrency) == (2, 3)


def test_worker_behind_a_session_is_named() -> None:
    reader = Reader()
    reader.frame(facts.SessionStarted("w.1", "worker-1", ["task"], 10_000, 3_000))
    assert reader.view.worker("w.1") == "worker-1"
    assert reader.view.worker("w.2") == ""


def test_tenants_with_equal_ids_stay_apart() -> None:
    reader = Reader()
    reader.frame(submitted(), submitted(tenant="other"))
    reader.frame(due_granted(f"j:{T}"))
    assert reader.attempts() == [(f"j:{T}", 1, "running")]
    assert list(reader.view.executions("other", "j")) == []


@pytest.mark.parametrize(
    "event",
    [
        due_granted(f"x:{T}"),
        succeeded(f"x:{T}"),
        granted(f"x:{T}"),
        failed(f"x:{T}", 1, -1),
        succeeded("x:rc"),
    ],
)
def test_event_about_nothing_known_halts(event: Event) -> None:
    reader = Reader()
    with pytest.raises(BrokenFrameError):
        reader.frame(event)


def story(seed: int) -> list[tuple[Event, ...]]:
    """Frames of a random but lawful log: many jobs, in every state."""
    chance = random.Random(seed)
    frames: list[tuple[Event, ...]] = []
    waiting: list[tuple[str, int]] = []
    for number in range(60):
        job = f"job-{number}"
        frames.append((submitted(job),))
        frames.append(
            (due_granted(f"{job}:{T}"),)
            if chance.random() < 0.5
            else (queued(f"{job}:{T}"), granted(f"{job}:{T}"))
        )
        waiting.append((f"{job}:{T}", 1))
        if len(waiting) > 5:
            name, attempt = waiting.pop(chance.randrange(len(waiting)))
            ends: list[tuple[Event, ...]] = [
                (succeeded(name),),
                (failed(name, attempt, -1), dead(name, attempt)),
                (failed(name, attempt, T + 9_000),),
                (lost(name, has_retry=True), granted(name, attempt=attempt + 1)),
            ]
            kind = chance.randrange(4)
            frames.append(ends[kind])
            if kind == 2:
                frames.append((due_granted(name, next_at=-2, attempt=attempt + 1),))
            if kind >= 2:
                waiting.append((name, attempt + 1))
    return frames


@pytest.mark.parametrize("seed", range(5))
def test_rows_follow_from_the_log_alone(seed: int) -> None:
    """However often it is committed, however little is kept decoded, and across restarts: the same digest."""
    digests = set()
    for every, hot_max, restart in [(1, 1_000, False), (7, 0, False), (1_000, 1_000, False), (3, 4, True)]:
        reader = Reader(hot_max=hot_max)
        reader.is_committing = False
        for number, frame in enumerate(story(seed)):
            reader.frame(*frame)
            if number % every == 0:
                reader.commit()
                if restart:
                    reader.view = PartitionView(reader.rows, 3, hot_max)
        reader.commit()
        digests.add(digest(reader.rows, 3))
    assert len(digests) == 1


def test_digest_and_reset_are_of_one_partition() -> None:
    rows = MemoryRows(FAMILIES)
    views = [PartitionView(rows, partition) for partition in (0, 1, 256)]
    for view in views:
        view.fold([submitted()], T, 0)
        view.advance(CursorRow(0))
        rows.write(*view.drain())
    before = [digest(rows, view.partition) for view in views]
    rows.write({}, views[1].reset())
    after = [digest(rows, view.partition) for view in views]
    assert before[0::2] == after[0::2]
    assert before[1] != after[1]
    assert views[1].job(TENANT, "j") is None
    assert PartitionView(rows, 1).cursor.position == -1


def placed(*at: int, place_at: int = -1, next_at: int = -2) -> facts.ExecutionsPlaced:
    count = len(at)
    return facts.ExecutionsPlaced(
        TENANT, "j", "overlap", 1, list(at), [one + 5 for one in at], [place_at] * count, next_at
    )


@pytest.mark.parametrize(("place_at", "is_held"), [(-1, True), (T + HOUR, False)])
def test_placed_instants_are_executions_that_are_scheduled(place_at: int, is_held: bool) -> None:
    reader = Reader()
    reader.frame(submitted(cron="0 * * * *"))
    reader.frame(placed(T, T + 60_000, place_at=place_at, next_at=T + HOUR))
    reader.view = PartitionView(reader.rows, 3)
    found = reader.history()
    assert [(name, row.version, row.scheduled_at, row.outcome) for name, row in found] == [
        (f"j:{at}", 1, at, "") for at in (T, T + 60_000)
    ]
    assert [(row.last.status, row.last.due_at, row.last.is_held) for _, row in found] == [
        ("scheduled", at + 5, is_held) for at in (T, T + 60_000)
    ]
    job = reader.view.job(TENANT, "j")
    assert job is not None
    assert (job[1].open, job[1].next_at) == (2, T + HOUR)
    reader.frame(due_granted(f"j:{T}", next_at=-2))
    reader.frame(succeeded(f"j:{T}"))
    assert [row.outcome for _, row in reader.history()] == ["succeeded", ""]


def test_placed_instants_may_leave_the_next_one_as_it_is() -> None:
    reader = Reader()
    reader.frame(submitted(cron="0 * * * *", next_at=T + HOUR))
    reader.frame(placed(T - HOUR, place_at=T))
    assert reader.next_at() == T + HOUR


def test_a_cancel_without_a_command_answers_nobody() -> None:
    reader = Reader()
    reader.frame(submitted(cron="0 * * * *"))
    reader.frame(queued(f"j:{T}", next_at=T + HOUR))
    reader.view.answered.clear()
    reader.frame(facts.ExecutionCancelled(TENANT, "j", "", "", "overlap", T, f"j:{T}", -1))
    assert reader.attempts() == [(f"j:{T}", 1, "cancelled")]
    assert reader.view.answered == []
