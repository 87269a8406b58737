"""Commands: the exact events that answer each, what is refused and why, and that a repeat changes nothing."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

import msgspec
import pytest

from minutebook.domain import book as state
from minutebook.domain import events as facts
from minutebook.domain import keys
from minutebook.domain.commands import DeclareLimit, DeclareQueue, DeleteLimit, PauseLimit, SubmitJob
from minutebook.domain.events import Event
from minutebook.domain.submit import fingerprint
from tests.simulation.log_maker import T0, LogMaker, cancel, execution_of, failure, run_now, submit, success

DAY_MS = keys.DAY_MS
replace = msgspec.structs.replace


@pytest.fixture
def maker() -> LogMaker:
    made = LogMaker()
    made.open()
    return made


def refused(events: list[Event]) -> tuple[str, str]:
    """(reason, field) of the one refusal."""
    (event,) = events
    assert isinstance(event, facts.CommandRejected), event
    return event.reason, event.field


def job_status(maker: LogMaker, job_id: str) -> str:
    row = keys.job_row("acme", job_id)
    found = maker.book.jobs.get(row) or maker.book.remembered(maker.book.closed, row)
    return found.status if found else ""


# -- submit


def test_a_job_is_submitted_with_everything_it_said(maker: LogMaker) -> None:
    command = submit(
        "a",
        command_id="c-1",
        actor="me",
        payload=b'{"n":1}',
        run_at=T0 + 5_000,
        timeout_ms=2_000,
        traceparent="00-1",
    )
    assert maker.command(command, stamp=T0 + 7) == [
        facts.JobSubmitted(
            tenant="acme",
            job_id="a",
            command_id="c-1",
            actor="me",
            issued_at=T0,
            accepted_at=T0 + 7,
            fingerprint=fingerprint(command),
            task="t",
            payload=b'{"n":1}',
            key_id=0,
            payload_sha256=hashlib.sha256(b'{"n":1}').digest(),
            queue="default",
            cron="",
            zone="UTC",
            late="refuse",
            timeout_ms=2_000,
            priority=5,
            next_at=T0 + 5_000,
            traceparent="00-1",
        )
    ]
    assert job_status(maker, "a") == "active"


@pytest.mark.parametrize(
    ("when", "first_at"),
    [
        ({}, T0 + 500),
        ({"delay_ms": 0}, T0 + 500),
        ({"delay_ms": 30_000}, T0 + 30_500),
        ({"run_at": T0 - 3_600_000}, T0 - 3_600_000),
        ({"run_at": T0 - 2 * DAY_MS, "late": "run"}, T0 - 2 * DAY_MS),
        ({"cron": "* * * * *"}, (T0 // 60_000 + 1) * 60_000),
    ],
    ids=str,
)
def test_the_first_instant_counts_from_the_brokers_stamp(
    maker: LogMaker, when: dict[str, object], first_at: int
) -> None:
    maker.clock.advance(90_000)  # decided long after: makes no difference
    (event,) = maker.command(submit("a", **when), stamp=T0 + 500)
    assert isinstance(event, facts.JobSubmitted)
    assert event.next_at == first_at


def test_a_cron_starts_strictly_after_its_stamp(maker: LogMaker) -> None:
    minute = (T0 // 60_000) * 60_000
    (event,) = maker.command(submit("a", cron="* * * * *", issued_at=minute), stamp=minute)
    assert isinstance(event, facts.JobSubmitted)
    assert event.next_at == minute + 60_000


@pytest.mark.parametrize(
    ("more", "reason", "field"),
    [
        ({"tenant": "a b"}, "invalid", "tenant"),
        ({"tenant": ""}, "invalid", "tenant"),
        ({"job_id": "x" * 129}, "invalid", "id"),
        ({"job_id": "a:b"}, "invalid", "id"),
        ({"command_id": "x" * 65}, "invalid", "command_id"),
        ({"issued_at": T0 - 7 * DAY_MS - 1}, "too_old", "issued_at"),
        ({"issued_at": T0 + DAY_MS + 1}, "invalid", "issued_at"),
        ({"task": "a task"}, "invalid", "task"),
        ({"payload": b'"' + b"x" * (256 * 1024) + b'"'}, "invalid", "payload"),
        ({"payload": b""}, "invalid", "payload"),
        ({"payload": b'1,"status":"dead"'}, "invalid", "payload"),
        ({"payload": b"{"}, "invalid", "payload"),
        ({"payload": b'"\xff"'}, "invalid", "payload"),
        ({"payload": b"[" * 100_000}, "invalid", "payload"),
        ({"timeout_ms": 999}, "invalid", "timeout"),
        ({"timeout_ms": 7 * DAY_MS + 1}, "invalid", "timeout"),
        ({"queue": "nowhere"}, "unknown_queue", "queue"),
        ({"limit": "a b"}, "invalid", "limit"),
        ({"run_at": T0, "delay_ms": 1}, "invalid", "delay"),
        ({"run_at": T0, "cron": "* * * * *"}, "invalid", "cron"),
        ({"delay_ms": 1, "cron": "* * * * *"}, "invalid", "cron"),
        ({"run_at": T0 - DAY_MS - 1}, "invalid", "run_at"),
        ({"run_at": -1}, "invalid", "run_at"),
        ({"run_at": T0 + 101 * 366 * DAY_MS}, "invalid", "run_at"),
        ({"delay_ms": -1}, "invalid", "delay"),
        ({"delay_ms": 101 * 366 * DAY_MS}, "invalid", "delay"),
        ({"cron": "* * * *"}, "invalid", "cron"),
        ({"cron": "0 0 31 2 *"}, "invalid", "cron"),
        ({"cron": "0 0 H(30-31) 2 *"}, "invalid", "cron"),
        ({"cron": "0 0 0 1 1 ? 1999"}, "invalid", "cron"),
        ({"cron": "* * * * *", "zone": "Mars/Base"}, "invalid", "zone"),
        ({"zone": "../etc/passwd"}, "invalid", "zone"),
    ],
    ids=str,
)
def test_a_senseless_submit_is_refused_with_its_field(
    maker: LogMaker, more: dict[str, object], reason: str, field: str
) -> None:
    before = state.digest(maker.rows)
    command = submit(**{"job_id": "a"} | more)
    assert refused(maker.command(command, stamp=T0)) == (reason, field)
    assert maker.book.jobs.get(keys.job_row("acme", "a")) is None
    assert list(maker.book.index.scan(b"")) == []
    assert state.digest(maker.rows) != before  # the answer is remembered


def test_the_edges_of_what_is_allowed_are_accepted(maker: LogMaker) -> None:
    for number, more in enumerate(
        (
            {"issued_at": T0 - 7 * DAY_MS},
            {"issued_at": T0 + DAY_MS},
            {"payload": b'"' + b"x" * (256 * 1024 - 2) + b'"'},
            {"timeout_ms": 1_000},
            {"timeout_ms": 7 * DAY_MS},
            {"run_at": T0 - DAY_MS},
            {"run_at": T0 + 100 * 366 * DAY_MS},
        )
    ):
        (event,) = maker.command(submit(f"job{number}", **more), stamp=T0)
        assert isinstance(event, facts.JobSubmitted), event


def test_a_queue_for_named_tenants_refuses_the_others(maker: LogMaker) -> None:
    maker.command(DeclareQueue(name="mail", command_id="q1", issued_at=T0, tenants=["blue"]))
    assert refused(maker.command(submit("a", queue="mail"))) == ("unknown_queue", "queue")
    (event,) = maker.command(submit("a", queue="mail", tenant="blue"))
    assert isinstance(event, facts.JobSubmitted)


def test_the_same_body_again_is_answered_and_another_is_refused(maker: LogMaker) -> None:
    maker.command(submit("a", payload=b"1"))
    (event,) = maker.command(submit("a", payload=b"1", command_id="again"))
    assert event == facts.CommandAnswered("acme", "a", "again", "exists", "SubmitJob")
    assert refused(maker.command(submit("a", payload=b"2"))) == ("id_exists", "id")
    keyed = submit("a", payload=b"2", is_keyed=True)
    assert refused(maker.command(keyed)) == ("key_reused", "Idempotency-Key")


def test_the_id_of_a_closed_job_is_not_given_out(maker: LogMaker) -> None:
    maker.command(submit("a"))
    maker.command(cancel("a"))
    (event,) = maker.command(submit("a", command_id="again"))
    assert event == facts.CommandAnswered("acme", "a", "again", "exists", "SubmitJob")
    assert refused(maker.command(submit("a", task="u"))) == ("id_exists", "id")
    assert job_status(maker, "a") == "cancelled"


def test_one_tenants_ids_are_not_anothers(maker: LogMaker) -> None:
    first, second = maker.command(submit("a"), submit("a", tenant="blue", task="u"))
    assert isinstance(first, facts.JobSubmitted)
    assert isinstance(second, facts.JobSubmitted)


def test_commands_of_one_frame_see_one_another(maker: LogMaker) -> None:
    """Both in one batch: the second finds what the first decided."""
    first, second = maker.command(submit("a"), submit("a", task="u"))
    assert isinstance(first, facts.JobSubmitted)
    assert isinstance(second, facts.CommandRejected)


@pytest.mark.parametrize(
    "change",
    [{"task": "u"}, {"payload": b"1"}, {"queue": "q"}, {"run_at": 1}, {"delay_ms": 0}, {"cron": "* * * * *"},
     {"zone": "Europe/Berlin"}, {"late": "run"}, {"timeout_ms": 1_000}, {"limit": "k"}],
    ids=str,
)  # fmt: skip
def test_the_fingerprint_covers_every_field_of_the_body(change: dict[str, object]) -> None:
    command = submit("a", command_id="c")
    assert fingerprint(replace(command, **change)) != fingerprint(command)


def test_the_fingerprint_leaves_the_envelope_out() -> None:
    command = submit("a", command_id="c")
    other = replace(
        command, job_id="b", command_id="d", issued_at=9, actor="x", is_keyed=True, traceparent="y"
    )
    assert fingerprint(other) == fingerprint(command)


def test_the_fingerprint_stays_what_it_was() -> None:
    """It is on record for every job ever made: a new field with a default must not change it."""
    command = SubmitJob(
        tenant="t", job_id="j", command_id="c", issued_at=0, task="mail", payload=b'{"a":1}', cron="0 7 * * *"
    )
    assert fingerprint(command).hex() == FINGERPRINT


FINGERPRINT = hashlib.sha256(
    b"cron\x009\x000 7 * * *" + b'payload\x007\x00{"a":1}' + b"task\x004\x00mail"
).hexdigest()


# -- cancel


def test_a_cancel_takes_all_instants_and_waiting_attempts(maker: LogMaker) -> None:
    maker.command(submit("a", cron="* * * * *"))
    maker.clock.advance(60_000)
    maker.due()
    maker.command(run_now("a", command_id="now"))
    queued, requested = execution_of("a", maker.clock.now() // 60_000 * 60_000), "a:rnow"
    events = maker.command(cancel("a", command_id="c-9", reason="enough", actor="me"))
    stamp = maker.clock.now()
    assert events == [
        facts.JobCancelled("acme", "a", "c-9", "me", "enough", stamp, [queued, requested], [], [])
    ]
    assert job_status(maker, "a") == "cancelled"
    for family in (
        maker.book.index,
        maker.book.queued,
        maker.book.executions,
        maker.book.counts,
        maker.book.specs,
    ):
        assert list(family.scan(b"")) == []


def test_a_cancel_asks_what_runs_to_stop(maker: LogMaker) -> None:
    maker.command(submit("a"))
    maker.due("w1.1")
    (held,) = maker.running()
    (event,) = maker.command(cancel("a"))
    assert isinstance(event, facts.JobCancelled)
    assert (event.executions, event.stopping, event.tokens) == ([], [execution_of("a", T0)], [held.token])
    assert job_status(maker, "a") == "cancelled"
    assert maker.book.jobs.get(keys.job_row("acme", "a")) is not None  # open until the attempt ends


def test_a_stopping_attempt_that_fails_is_cancelled_without_retry(maker: LogMaker) -> None:
    maker.command(submit("a"))
    maker.due("w1.1")
    maker.command(cancel("a"))
    (held,) = maker.running()
    assert maker.report(failure(held)) == [
        facts.AttemptCancelled("acme", execution_of("a", T0), 1, held.token, "ValueError: no")
    ]
    assert maker.book.jobs.get(keys.job_row("acme", "a")) is None
    assert job_status(maker, "a") == "cancelled"


def test_a_stopping_attempt_that_succeeds_counts(maker: LogMaker) -> None:
    maker.command(submit("a"))
    maker.due("w1.1")
    maker.command(cancel("a"))
    (event,) = maker.report(success(maker.running()))
    assert isinstance(event, facts.AttemptsSucceeded)
    assert job_status(maker, "a") == "cancelled"


def test_a_cancel_of_a_cancelled_job_is_answered(maker: LogMaker) -> None:
    maker.command(submit("a"))
    maker.command(cancel("a"))
    assert maker.command(cancel("a", command_id="c")) == [
        facts.CommandAnswered("acme", "a", "c", "cancelled", "CancelJob")
    ]


@pytest.mark.parametrize(("end", "status"), [("success", "completed"), ("failure", "dead")])
@pytest.mark.parametrize("make", [cancel, run_now])
def test_a_closed_job_takes_no_command(
    maker: LogMaker, end: str, status: str, make: Callable[[str], object]
) -> None:
    maker.command(submit("a"))
    maker.due("w1.1")
    (held,) = maker.running()
    maker.report(success([held]) if end == "success" else failure(held, is_permanent=True))
    assert job_status(maker, "a") == status
    assert refused(maker.command(make("a"))) == ("job_closed", "id")  # type: ignore[arg-type]


@pytest.mark.parametrize("make", [cancel, run_now])
def test_a_command_for_no_job_is_refused(maker: LogMaker, make: Callable[[str], object]) -> None:
    assert refused(maker.command(make("none"))) == ("not_found", "id")  # type: ignore[arg-type]


def test_a_cancelled_retry_waits_no_more(maker: LogMaker) -> None:
    maker.command(submit("a"))
    maker.due("w1.1")
    maker.report(failure(maker.running()[0]))
    (event,) = maker.command(cancel("a"))
    assert isinstance(event, facts.JobCancelled)
    assert event.executions == [execution_of("a", T0)]
    assert list(maker.book.index.scan(b"")) == []
    assert job_status(maker, "a") == "cancelled"


def test_jobs_with_a_common_start_of_their_ids_are_apart(maker: LogMaker) -> None:
    maker.command(submit("a"), submit("a-b"), submit("a.c"))
    maker.due()
    (event,) = maker.command(cancel("a"))
    assert isinstance(event, facts.JobCancelled)
    assert event.executions == [execution_of("a", T0)]


# -- run now


def test_a_run_now_is_one_execution_more_due_at_once(maker: LogMaker) -> None:
    maker.command(submit("a", run_at=T0 + DAY_MS))
    assert maker.command(run_now("a", command_id="x1", actor="me", reason="why"), stamp=T0 + 3) == [
        facts.ExecutionRequested("acme", "a", "x1", "me", "why", T0 + 3, "a:rx1")
    ]
    maker.clock.advance(3)
    (event,) = maker.due()
    assert isinstance(event, facts.ExecutionsQueued)
    assert (event.executions, event.scheduled_at, event.next_at) == (["a:rx1"], [T0 + 3], [-2])
    job = maker.book.jobs.get(keys.job_row("acme", "a"))
    assert job is not None
    assert (job.next_at, job.open) == (T0 + DAY_MS, 2)


def test_a_cancelled_job_takes_no_run_now(maker: LogMaker) -> None:
    maker.command(submit("a"))
    maker.due("w1.1")
    maker.command(cancel("a"))
    assert refused(maker.command(run_now("a"))) == ("job_closed", "id")


# -- queues


def test_a_queue_is_declared_and_copied_at_its_home(maker: LogMaker) -> None:
    command = DeclareQueue(name="mail", command_id="q1", issued_at=T0, actor="me", tenants=["b", "a", "b"])
    assert maker.command(command, stamp=T0) == [
        facts.QueueDeclared("mail", 1, False, ["a", "b"], "q1", "me", T0),
        facts.QueueCopied("mail", 1, False, ["a", "b"]),
    ]


def test_a_queue_declared_alike_stays_and_differently_changes(maker: LogMaker) -> None:
    maker.command(DeclareQueue(name="mail", command_id="q1", issued_at=T0, tenants=["a", "b"]))
    same = DeclareQueue(name="mail", command_id="q2", issued_at=T0, tenants=["b", "a"])
    assert maker.command(same) == [facts.CommandAnswered("", "mail", "q2", "exists", "DeclareQueue")]
    changed = maker.command(DeclareQueue(name="mail", command_id="q3", issued_at=T0, is_open=True))
    assert changed[1] == facts.QueueCopied("mail", 2, True, [])


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"name": "a b"}, "invalid"),
        ({"command_id": ""}, "invalid"),
        ({"issued_at": T0 - 8 * DAY_MS}, "too_old"),
    ],
    ids=str,
)
def test_a_senseless_queue_is_refused(maker: LogMaker, more: dict[str, object], reason: str) -> None:
    command = DeclareQueue(**{"name": "mail", "command_id": "q", "issued_at": T0} | more)  # type: ignore[arg-type]
    (event,) = maker.command(command, stamp=T0)
    assert isinstance(event, facts.CommandRejected)
    assert event.reason == reason
    assert maker.book.queue("mail") is None


# -- repeats


def test_every_command_again_changes_nothing(maker: LogMaker) -> None:
    commands = [
        submit("a", cron="* * * * *"),
        submit("b", delay_ms=100),
        submit("a", task="another"),
        submit("b", delay_ms=100),
        run_now("a"),
        cancel("a"),
        cancel("none"),
        run_now("a"),
        DeclareQueue(name="q", command_id="q", issued_at=T0),
        DeclareQueue(name="q", command_id="r", issued_at=T0),
        DeclareLimit(tenant="acme", name="a", command_id="l1", issued_at=T0, concurrency=1),
        PauseLimit(tenant="acme", name="a", command_id="l2", issued_at=T0, for_ms=1_000),
        PauseLimit(tenant="acme", name="none", command_id="l2", issued_at=T0),
        DeleteLimit(tenant="acme", name="a", command_id="l3", issued_at=T0),
        DeleteLimit(tenant="acme", name="a", command_id="l4", issued_at=T0),
    ]
    for command in commands:
        maker.command(command)
    for later_ms in (0, 200, DAY_MS, 6 * DAY_MS):
        maker.clock.advance(later_ms)
        for command in (*commands, *reversed(commands)):
            assert maker.command(command) == []


def test_a_command_never_outlives_the_memory_of_its_answer(maker: LogMaker) -> None:
    """Forgotten after eight days; by then it is too old, even if its sender's clock was a day ahead."""
    command = submit("a", issued_at=T0 + DAY_MS)
    maker.command(command, stamp=T0)
    maker.due("w1.1")
    maker.report(success(maker.running()))
    today = T0 // DAY_MS
    maker.clock.advance(9 * DAY_MS)
    maker.add(facts.DayForgotten(today))
    assert maker.book.remembered(maker.book.closed, keys.job_row("acme", "a")) is None
    assert refused(maker.command(command)) == ("too_old", "issued_at")
