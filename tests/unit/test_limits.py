"""Limits as facts: what is declared at home, what each partition knows, and which limits hold for a job."""

from __future__ import annotations

from typing import Any

import pytest

from minutebook import ids
from minutebook.domain import events as facts
from minutebook.domain import keys
from minutebook.domain.book import FAMILIES, Book
from minutebook.domain.commands import Command, DeclareLimit, DeleteLimit, PauseLimit
from minutebook.domain.events import Event
from minutebook.domain.outputs import ToPartition, outputs
from minutebook.domain.records import LimitFact, Mail
from minutebook.domain.state import Limit
from minutebook.domain.subjects import key_of
from minutebook.store.memory import MemoryRows
from minutebook.wire import codec, topics
from tests.simulation.desk import Desk
from tests.simulation.log_maker import T0, LogMaker, submit

DAY_MS = keys.DAY_MS


@pytest.fixture
def maker() -> LogMaker:
    made = LogMaker()
    made.open()
    return made


def declare(name: str, command_id: str = "l1", **bounds: Any) -> DeclareLimit:
    about = {"tenant": "acme", "actor": "me", "issued_at": T0}
    return DeclareLimit(name=name, command_id=command_id, **(about | bounds))  # type: ignore[arg-type]  # as said


def pause(name: str, command_id: str = "p1", **more: Any) -> PauseLimit:
    return PauseLimit(tenant="acme", name=name, command_id=command_id, issued_at=T0, **more)


def delete(name: str, command_id: str = "d1") -> DeleteLimit:
    return DeleteLimit(tenant="acme", name=name, command_id=command_id, issued_at=T0)


def copied(*fact: Any) -> facts.LimitCopied:
    return facts.LimitCopied("acme", *fact)


def refusal(events: list[Event]) -> facts.CommandRejected:
    (event,) = events
    assert isinstance(event, facts.CommandRejected), event
    return event


# -- at home


@pytest.mark.parametrize("name", ["", "api.example"])
def test_a_limit_is_declared_and_copied_at_its_home(maker: LogMaker, name: str) -> None:
    command = declare(name, concurrency=3, rate_count=10, rate_period_ms=60_000)
    fact = ("acme", name, 1, 3, 10, 60_000, -1, False)
    assert maker.command(command, stamp=T0 + 5) == [
        facts.LimitDeclared(*fact, "l1", "me", "", T0 + 5),
        facts.LimitCopied(*fact),
    ]
    assert maker.book.limit("acme", name) == Limit(1, 3, 10, 60_000)


def test_a_limit_may_bound_nothing(maker: LogMaker) -> None:
    maker.command(declare("k"))
    assert maker.book.limit("acme", "k") == Limit(1)


def test_a_limit_declared_alike_stays_and_differently_changes(maker: LogMaker) -> None:
    maker.command(declare("k", concurrency=3))
    assert maker.command(declare("k", "l2", concurrency=3)) == [
        facts.CommandAnswered("acme", "limit:k", "l2", "exists", "DeclareLimit", "me")
    ]
    assert maker.command(declare("k", "l3", rate_count=2, rate_period_ms=1_000))[1] == copied(
        "k", 2, -1, 2, 1_000, -1, False
    )


@pytest.mark.parametrize(
    ("bounds", "field"),
    [
        ({"concurrency": 0}, "concurrency"),
        ({"concurrency": 100_001}, "concurrency"),
        ({"rate_count": 0, "rate_period_ms": 1_000}, "rate_count"),
        ({"rate_count": 1_001, "rate_period_ms": 1_000}, "rate_count"),
        ({"rate_count": 1, "rate_period_ms": 999}, "rate_period"),
        ({"rate_count": 1, "rate_period_ms": DAY_MS + 1}, "rate_period"),
        ({"rate_count": 1}, "rate_period"),
        ({"rate_period_ms": 1_000}, "rate_count"),
        ({"tenant": "a b"}, "tenant"),
        ({"tenant": ""}, "tenant"),
        ({"name": "a b"}, "name"),
        ({"name": "x" * 129}, "name"),
        ({"command_id": ""}, "command_id"),
    ],
    ids=str,
)
def test_a_senseless_limit_is_refused(maker: LogMaker, bounds: dict[str, Any], field: str) -> None:
    found = refusal(maker.command(declare(**({"name": "k"} | bounds))))
    assert (found.reason, found.field) == ("invalid", field)
    assert found.detail
    assert maker.book.limit("acme", "k") is None


def test_the_widest_bounds_are_taken(maker: LogMaker) -> None:
    maker.command(declare("k", concurrency=100_000, rate_count=1_000, rate_period_ms=DAY_MS))
    assert maker.book.limit("acme", "k") == Limit(1, 100_000, 1_000, DAY_MS)


@pytest.mark.parametrize("until", [{"until": T0 + 30_000}, {"for_ms": 29_995}], ids=str)
def test_a_pause_ends_at_an_instant_or_counts_from_the_brokers_stamp(
    maker: LogMaker, until: dict[str, int]
) -> None:
    maker.command(declare("k", concurrency=3))
    events = maker.command(pause("k", reason="429", **until), stamp=T0 + 5)
    fact = ("acme", "k", 2, 3, -1, -1, T0 + 30_000, False)
    assert events == [
        facts.LimitDeclared(*fact, "p1", "", "429", T0 + 5),
        facts.LimitCopied(*fact),
    ]


def test_a_pause_outlasts_a_change_of_the_bounds_and_ends_when_resumed(maker: LogMaker) -> None:
    maker.command(declare("k", concurrency=3))
    maker.command(pause("k", until=T0 + 30_000), stamp=T0)
    assert maker.command(declare("k", "l2", concurrency=4))[1] == copied(
        "k", 3, 4, -1, -1, T0 + 30_000, False
    )
    assert maker.command(pause("k", "p2"))[1] == copied("k", 4, 4, -1, -1, -1, False)
    assert maker.command(pause("k", "p3")) == [
        facts.CommandAnswered("acme", "limit:k", "p3", "exists", "PauseLimit")
    ]


@pytest.mark.parametrize(
    "until",
    [
        {"until": T0},
        {"until": -1},
        {"for_ms": 0},
        {"until": T0 + 366 * DAY_MS + 1},
        {"until": T0 + 1, "for_ms": 1},
    ],
    ids=str,
)
def test_a_senseless_pause_is_refused(maker: LogMaker, until: dict[str, int]) -> None:
    maker.command(declare("k", concurrency=3))
    found = refusal(maker.command(pause("k", **until), stamp=T0))
    assert (found.reason, found.field) == ("invalid", "until")
    assert maker.book.limit("acme", "k") == Limit(1, 3)


@pytest.mark.parametrize("command", [pause("k"), pause("k", until=T0 + 1), delete("k")], ids=repr)
def test_only_a_limit_that_is_there_is_changed(maker: LogMaker, command: Command) -> None:
    found = refusal(maker.command(command, stamp=T0))
    assert (found.tenant, found.job_id, found.reason) == ("acme", "limit:k", "not_found")


def test_a_deleted_limit_holds_no_more_and_comes_back_as_a_later_version(maker: LogMaker) -> None:
    maker.command(declare("k", concurrency=3))
    maker.command(pause("k", until=T0 + 30_000), stamp=T0)
    assert maker.command(delete("k"))[1] == copied("k", 3, -1, -1, -1, -1, True)
    assert maker.book.limit("acme", "k") is None
    assert maker.command(delete("k", "d2")) == [
        facts.CommandAnswered("acme", "limit:k", "d2", "exists", "DeleteLimit")
    ]
    assert refusal(maker.command(pause("k", "p2"))).reason == "not_found"
    assert maker.command(declare("k", "l2", concurrency=3))[1] == copied("k", 4, 3, -1, -1, -1, False)


def test_a_limit_and_a_job_of_the_same_name_have_answers_of_their_own(maker: LogMaker) -> None:
    maker.command(submit("k", command_id="c"))
    assert maker.command(declare("k", "c", concurrency=1)) != []
    assert not ids.is_name(ids.limit_subject("k"))


# -- at every partition


def test_all_partitions_but_the_home_get_mail(maker: LogMaker) -> None:
    events = maker.command(declare("k", concurrency=3))
    found = outputs(maker.book, [(event, (7 << 16) + row) for row, event in enumerate(events)], 1, 3, T0)
    fact = LimitFact("acme", "k", 1, 3, -1, -1, -1, False)
    assert found == [ToPartition(other, Mail(1, 7, 0, fact)) for other in (0, 2)]


def test_a_limit_that_came_by_mail_is_known() -> None:
    desk = Desk()
    mail = Mail(3, 5, 0, LimitFact("acme", "k", 2, 3, -1, -1, -1, False))
    for _ in range(2):
        desk.inputs[topics.MAIL].add(codec.encode(mail), desk.now)
    assert desk.cycle() == [facts.MailTaken(3, 5, 0), copied("k", 2, 3, -1, -1, -1, False)]
    assert desk.book.limit("acme", "k") == Limit(2, 3)


@pytest.mark.parametrize("version", [1, 2])
def test_a_copy_of_a_version_that_is_not_newer_changes_nothing(maker: LogMaker, version: int) -> None:
    maker.add(copied("k", 2, 3, -1, -1, -1, False))
    maker.add(copied("k", version, 9, -1, -1, -1, False))
    assert maker.book.limit("acme", "k") == Limit(2, 3)


def test_a_late_copy_does_not_bring_a_deleted_limit_back(maker: LogMaker) -> None:
    maker.add(copied("k", 2, -1, -1, -1, -1, True))
    maker.add(copied("k", 1, 3, -1, -1, -1, False))
    assert maker.book.limit("acme", "k") is None
    assert maker.book.limits_of("acme", "k") == ()


@pytest.mark.parametrize("name", ["", "k"])
def test_a_command_on_a_limit_goes_to_its_home(name: str) -> None:
    command = declare(name, concurrency=1)
    key = f"limit:acme:{name}"
    assert key_of(command) == key
    home = topics.partition_of(key, 4)
    for partition in range(4):
        desk = Desk(partition, 4)
        desk.inputs[topics.COMMANDS].add(codec.encode(command), desk.now, key.encode())
        found = [type(event) for event in desk.cycle()]
        expected = [facts.LimitDeclared, facts.LimitCopied] if partition == home else [facts.CommandForwarded]
        assert found == expected


@pytest.mark.parametrize("wrong", [{"tenant": "a b"}, {"name": "a:b"}], ids=str)
def test_a_command_without_the_names_of_a_limit_is_rejected(wrong: dict[str, str]) -> None:
    desk = Desk()
    desk.inputs[topics.COMMANDS].add(codec.encode(declare(**({"name": "k"} | wrong))), desk.now)
    assert [type(event) for event in desk.cycle()] == [facts.RecordRejected]


def test_a_key_that_names_another_limit_is_rejected() -> None:
    desk = Desk()
    desk.inputs[topics.COMMANDS].add(codec.encode(declare("k")), desk.now, b"limit:acme:j")
    assert [type(event) for event in desk.cycle()] == [facts.RecordRejected]


# -- which limits hold


def test_a_job_says_which_limit_holds(maker: LogMaker) -> None:
    (event,) = maker.command(submit("a", limit="k"))
    assert isinstance(event, facts.JobSubmitted)
    assert event.limit == "k"
    spec = maker.book.specs.get(keys.spec_row(keys.job_row("acme", "a"), 1))
    assert spec is not None
    assert spec.limit == "k"


def test_the_limit_of_the_key_comes_first_then_that_of_the_tenant(maker: LogMaker) -> None:
    book = maker.book
    assert book.limits_of("acme", "k") == ()
    maker.command(declare("k", "l1"))
    assert book.limits_of("acme", "k") == ("k",)
    maker.command(declare("", "l2"))
    assert book.limits_of("acme", "k") == ("k", "")
    assert book.limits_of("acme", "other") == ("",)
    assert book.limits_of("acme", "") == ("",)
    assert book.limits_of("blue", "k") == ()
    maker.command(delete("k"))
    assert book.limits_of("acme", "k") == ("",)
    assert Book(maker.rows).limits_of("acme", "k") == ("",)


def test_limits_of_a_draft_that_is_dropped_hold_for_nothing() -> None:
    book = Book(MemoryRows(FAMILIES))
    book.put_limit("acme", "k", Limit(1, 3))
    assert book.limits_of("acme", "k") == ("k",)
    book.discard()
    assert book.limits_of("acme", "k") == ()
    assert book.limit("acme", "k") is None
