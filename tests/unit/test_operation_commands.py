"""Commands on bulk operations: what is taken, what is refused and why, and that a repeat changes nothing."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from minutebook.domain import events as facts
from minutebook.domain import keys, operations
from minutebook.domain.events import Event
from minutebook.domain.operation import OperationFilter
from minutebook.wire import codec, topics
from tests.simulation.desk import T0
from tests.simulation.desks import Desks


@pytest.fixture
def desks() -> Desks:
    return Desks()


def of(events: list[Event], kind: type[Event]) -> list[Any]:
    return [event for event in events if isinstance(event, kind)]


def refusal(desks: Desks) -> tuple[str, str]:
    (event,) = of(desks.cycle(), facts.CommandRejected)
    return event.reason, event.field


def test_repeat_of_a_command_changes_nothing(desks: Desks) -> None:
    desks.start(rate_per_s=1)
    desks.dead("a")
    for _ in range(2):
        desks.start(rate_per_s=1)
        assert of(desks.cycle(), facts.OperationStarted) == []
    desks.cancel()
    assert len(of(desks.cycle(), facts.OperationCancelled)) == 1
    desks.cancel()
    assert of(desks.cycle(), facts.OperationCancelled) == []
    for _ in range(5):
        desks.cycle(100)
    assert len(desks.ended()) == 1
    desks.start(rate_per_s=1)
    desks.cancel()
    assert desks.cycle() == []


def test_second_cancel_is_answered(desks: Desks) -> None:
    desks.dead("a")
    desks.cycle(1)
    desks.start(rate_per_s=1)
    desks.home().now -= 1
    desks.cancel(command_id="one")
    desks.cancel(command_id="two")
    (answer,) = of(desks.cycle(), facts.CommandAnswered)
    assert (answer.command_id, answer.job_id, answer.reason) == ("two", "operation:op", "cancelled")


@pytest.mark.parametrize("ends", [False, True])
def test_id_is_not_given_out_again(desks: Desks, ends: bool) -> None:
    desks.start()
    if ends:
        desks.until_ended()
    home = desks.home()
    desks.start()
    record = home.inputs[topics.COMMANDS].waiting.pop()
    command = msgspec.structs.replace(codec.decode(record.value), command_id="another")
    home.command(command)  # type: ignore[arg-type]
    assert refusal(desks) == ("id_exists", "operation")


@pytest.mark.parametrize("ends", [False, True])
def test_what_is_not_open_cannot_be_cancelled(desks: Desks, ends: bool) -> None:
    if ends:
        desks.start()
        desks.until_ended()
    desks.cancel()
    assert refusal(desks) == ("operation_ended", "operation")


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"kind": "burn"}, "kind"),
        ({"rate_per_s": -1}, "rate_per_s"),
        ({"rate_per_s": 10_001}, "rate_per_s"),
        ({"filter": OperationFilter(task="no name")}, "filter/task"),
        ({"filter": OperationFilter(queue="ü")}, "filter/queue"),
        ({"filter": OperationFilter(job_prefix="a:")}, "filter/job_prefix"),
        ({"filter": OperationFilter(error_type="x" * 257)}, "filter/error_type"),
        ({"filter": OperationFilter(cause="bored")}, "filter/cause"),
        ({"filter": OperationFilter(from_at=5, until_at=5)}, "filter/until_at"),
        ({"operation": "no name"}, "operation"),
        ({"operation": "x" * 129}, "operation"),
        ({"tenant": ""}, "tenant"),
        ({"command_id": "x" * 65}, "command_id"),
        ({"issued_at": T0 - 8 * keys.DAY_MS}, "issued_at"),
    ],
)
def test_senseless_start_is_refused_by_field(fields: dict[str, Any], field: str) -> None:
    desks = Desks(1)
    desks.start()
    desk = desks.desks[0]
    record = desk.inputs[topics.COMMANDS].waiting.pop()
    desk.command(msgspec.structs.replace(codec.decode(record.value), **fields))  # type: ignore[arg-type]
    (event,) = of(desks.cycle(), facts.CommandRejected)
    assert event.field == field
    assert event.detail
    assert not list(desk.book.shares.scan(b""))


def test_there_is_an_end_to_how_many_are_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operations, "OPEN_MAX", 2)
    desks = Desks(1)
    for name in ("a", "b", "c"):
        desks.start(name, rate_per_s=1)
    assert refusal(desks) == ("too_many", "operation")


def test_command_for_another_partition_is_forwarded(desks: Desks) -> None:
    desks.start()
    home = desks.home()
    record = home.inputs[topics.COMMANDS].waiting.pop()
    stranger = next(desk for desk in desks.desks if desk is not home)
    stranger.inputs[topics.COMMANDS].add(record.value or b"", record.stamp)
    assert desks.until_ended().operation == "op"


def test_key_that_names_another_operation_is_rejected() -> None:
    desks = Desks(1)
    desk = desks.desks[0]
    desks.start()
    record = desk.inputs[topics.COMMANDS].waiting.pop()
    desk.inputs[topics.COMMANDS].add(record.value or b"", record.stamp, b"operation:acme:other")
    (event,) = of(desks.cycle(), facts.RecordRejected)
    assert "different" in event.reason
