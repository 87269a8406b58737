"""What the view keeps of commands: who, when, why, what, and what was decided; tenants apart, the latest first."""

from __future__ import annotations

from typing import Any

import pytest

from minutebook.domain import events as facts
from minutebook.domain.commands import (
    AskWorker,
    CancelJob,
    Command,
    DeclareCalendar,
    DeclareKey,
    DeclareLimit,
    DeclareQueue,
    DeclareTask,
    DeleteCalendar,
    DeleteLimit,
    DrainQueue,
    EditJob,
    PauseJob,
    PauseLimit,
    PauseQueue,
    ResumeJob,
    ResumeQueue,
    RunJobNow,
    StartOperation,
)
from minutebook.domain.operation import OperationFilter
from minutebook.domain.view import PartitionView
from minutebook.domain.view_audit import AT_MAX, Audited, audited
from minutebook.domain.view_rows import FAMILIES
from minutebook.store.memory import MemoryRows
from tests.simulation.log_maker import T0, LogMaker, submit


class Office:
    """Commands on one partition, one frame each, and the view that follows."""

    def __init__(self) -> None:
        self.maker = LogMaker()
        self.maker.open()
        self.rows = MemoryRows(FAMILIES)
        self.view = PartitionView(self.rows, 0)
        self.frames = 0

    def take(self, *commands: Command) -> None:
        events = self.maker.command(*commands)
        self.view.fold(events, self.maker.clock.now(), self.frames)
        self.rows.write(*self.view.drain())
        self.frames += 1
        self.maker.clock.advance(1)

    def kept(self, tenant: str = "acme", at: int = AT_MAX) -> list[Audited]:
        return list(audited(self.view, tenant, at))


@pytest.fixture
def office() -> Office:
    return Office()


def about(command_id: str, **more: Any) -> dict[str, Any]:
    """What every command on something of acme has."""
    said = {"command_id": command_id, "issued_at": T0, "actor": "me", "reason": "because"}
    return {"tenant": "acme"} | said | more


def nobodys(command_id: str, **more: Any) -> dict[str, Any]:
    said = about(command_id, **more)
    del said["tenant"]
    return said


def test_who_what_when_and_why_are_kept(office: Office) -> None:
    office.take(submit("a", cron="0 * * * *", command_id="s1"))
    office.take(PauseJob(job_id="a", **about("c1")))
    ((at, row),) = office.kept()
    assert (at, row.command, row.subject, row.command_id) == (T0 + 1, "PauseJob", "a", "c1")
    assert (row.actor, row.reason, row.is_accepted, row.code) == ("me", "because", True, "")
    assert (row.version, row.position) == (1, 1)


def test_a_refused_command_and_one_that_changes_nothing_are_kept(office: Office) -> None:
    office.take(CancelJob(job_id="a", **about("c1")))
    office.take(submit("a", command_id="s1"))
    office.take(CancelJob(job_id="a", **about("c2")))
    office.take(CancelJob(job_id="a", **about("c3", actor="you", reason="again")))
    kept = [(row.command_id, row.actor, row.reason, row.is_accepted, row.code) for _, row in office.kept()]
    assert kept == [
        ("c3", "you", "again", True, "cancelled"),
        ("c2", "me", "because", True, ""),
        ("c1", "me", "because", False, "not_found"),
    ]


def test_an_accepted_submission_is_left_to_its_job_and_a_refused_one_is_kept(office: Office) -> None:
    office.take(submit("a", command_id="s1"))
    office.take(submit("a", command_id="s2"))
    assert office.kept() == []
    office.take(submit("a", command_id="s3", task="another", actor="me"))
    assert [(row.command, row.actor, row.code) for _, row in office.kept()] == [
        ("SubmitJob", "me", "id_exists")
    ]


def test_a_task_declared_as_it_is_leaves_no_row(office: Office) -> None:
    for number in range(3):
        said = nobodys(f"t{number}")
        del said["reason"]
        office.take(DeclareTask(name="t", **said))
    assert [(row.command, row.command_id) for _, row in office.kept("")] == [("DeclareTask", "t0")]


QUEUE: dict[str, Any] = {"name": "mail"}
LIMIT: dict[str, Any] = {"name": "api"}


def test_each_command_is_kept_under_its_own_name(office: Office) -> None:
    """Pauses and deletions are events of the same kind as declarations; the commands are told apart."""
    plain = nobodys("q1")
    del plain["reason"]
    unreasoned = about("l1")
    del unreasoned["reason"]
    of_nobody: list[Command] = [
        DeclareQueue(**QUEUE, **plain),
        PauseQueue(**QUEUE, **nobodys("q2")),
        DrainQueue(**QUEUE, **nobodys("q3")),
        ResumeQueue(**QUEUE, **nobodys("q4")),
        AskWorker(name="w1", what="quiet", **nobodys("q5")),
    ]
    of_acme: list[Command] = [
        DeclareLimit(concurrency=3, **LIMIT, **unreasoned),
        PauseLimit(for_ms=1_000, **LIMIT, **about("l2")),
        DeclareLimit(concurrency=4, **LIMIT, **(unreasoned | {"command_id": "l3"})),
        PauseLimit(**LIMIT, **about("l4")),
        DeleteLimit(**LIMIT, **about("l5")),
        DeclareCalendar(name="c", first_days=[1], last_days=[1], **about("d1")),
        DeleteCalendar(name="c", **about("d2")),
        DeclareKey(key="k", role="viewer", sha256=bytes(32), **about("k1")),
        StartOperation(operation="op", filter=OperationFilter(), **about("o1")),
    ]
    for command in [*of_nobody, *of_acme]:
        office.take(command)
    for sent, tenant in ((of_nobody, ""), (of_acme, "acme")):
        kept = [(row.command, row.command_id, row.actor) for _, row in reversed(office.kept(tenant))]
        assert kept == [(type(command).__name__, command.command_id, "me") for command in sent]
    reasons = {row.command_id: row.reason for _, row in [*office.kept(), *office.kept("")]}
    unsaid = {"q1", "l1", "l3"}
    assert reasons == {name: "" if name in unsaid else "because" for name in reasons}


def test_each_command_on_a_job_is_kept_with_its_reason(office: Office) -> None:
    office.take(submit("a", cron="0 * * * *", command_id="s1"))
    edited = submit("a", cron="5 * * * *", command_id="c3", actor="me")
    for command in (
        PauseJob(job_id="a", **about("c1")),
        ResumeJob(job_id="a", **about("c2")),
        EditJob(job_id="a", job=edited, **about("c3")),
        RunJobNow(job_id="a", **about("c4")),
        CancelJob(job_id="a", **about("c5")),
    ):
        office.take(command)
    assert [(row.command, row.actor, row.reason, row.execution) for _, row in reversed(office.kept())] == [
        ("PauseJob", "me", "because", ""),
        ("ResumeJob", "me", "because", ""),
        ("EditJob", "me", "because", ""),
        ("RunJobNow", "me", "because", "a:rc4"),
        ("CancelJob", "me", "because", ""),
    ]


def test_commands_of_tenants_are_apart(office: Office) -> None:
    for tenant in ("acme", "acme2", "acm", "blue"):
        office.take(CancelJob(job_id="a", **about(f"c-{tenant}", tenant=tenant)))
    for tenant in ("acme", "acme2", "acm", "blue"):
        assert [row.command_id for _, row in office.kept(tenant)] == [f"c-{tenant}"]
    assert office.kept("") == []


@pytest.mark.parametrize(
    "names",
    [{"tenant": "acme\0"}, {"tenant": ""}, {"tenant": "acme\0" + "\x7f" * 8 + "x"}, {"command_id": "a\0b"}],
)
def test_a_refusal_with_names_that_are_none_passes_for_nobodys(office: Office, names: dict[str, str]) -> None:
    office.take(CancelJob(job_id="a", **(about("c1") | names)))
    assert office.kept() == office.kept("") == []


def test_the_latest_comes_first_and_a_place_can_be_asked_for(office: Office) -> None:
    for number in range(5):
        office.take(CancelJob(job_id="a", **about(f"c{number}")))
    assert [row.command_id for _, row in office.kept()] == ["c4", "c3", "c2", "c1", "c0"]
    assert [row.command_id for _, row in office.kept(at=T0 + 2)] == ["c2", "c1", "c0"]


def test_what_older_logs_do_not_say_stays_empty(office: Office) -> None:
    """Frames before version 5 name no actor of a command that was refused, and no kind of one that changed nothing."""
    office.view.fold(
        [
            facts.CommandRejected("acme", "a", "c1", "CancelJob", "not_found", "id", "no such job"),
            facts.CommandAnswered("acme", "a", "c2", "cancelled"),
        ],
        T0,
        0,
    )
    office.rows.write(*office.view.drain())
    assert [(row.command_id, row.actor) for _, row in office.kept()] == [("c1", "")]
