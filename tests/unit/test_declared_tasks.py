"""What workers declare of their tasks, and what they are asked from outside: decided at home, remembered by fold."""

from __future__ import annotations

import dataclasses
from typing import Any

import msgspec
import pytest
from pydantic import BaseModel

from minutebook import App
from minutebook.domain import events as facts
from minutebook.domain.book import FAMILIES, Book
from minutebook.domain.commands import AskWorker, DeclareTask
from minutebook.domain.decide import decide
from minutebook.domain.events import Event
from minutebook.domain.fold import fold
from minutebook.domain.records import Pulse
from minutebook.domain.tasks import SCHEMA_BYTES_MAX
from minutebook.domain.workers import is_heard
from minutebook.store.memory import MemoryRows
from minutebook.worker.outcomes import bad_payload
from minutebook.worker.payload import reader_of, schema_of

T0 = 1_767_225_600_000


@pytest.fixture
def book() -> Book:
    return Book(MemoryRows(FAMILIES))


def declare(schema: str, command_id: str = "d1", name: str = "mail.send") -> DeclareTask:
    return DeclareTask(name=name, command_id=command_id, issued_at=T0, actor="me", payload_schema=schema)


def ask(what: str, command_id: str) -> AskWorker:
    return AskWorker(name="w1", command_id=command_id, issued_at=T0, actor="me", reason="why", what=what)


def take(book: Book, command: DeclareTask | AskWorker, at: int = T0) -> list[Event]:
    events = decide(book, command, at)
    for event in events:
        fold(book, event, 0, at)
    return events


# -- tasks


def test_same_type_makes_no_new_version(book: Book) -> None:
    assert take(book, declare('{"type":"object"}')) == [
        facts.TaskDeclared("mail.send", 1, '{"type":"object"}', "d1", "me", T0)
    ]
    assert take(book, declare('{"type":"object"}', "d2")) == [
        facts.CommandAnswered("", "mail.send", "d2", "exists", "DeclareTask", "me")
    ]
    assert take(book, declare("", "d3")) == [facts.TaskDeclared("mail.send", 2, "", "d3", "me", T0)]
    assert take(book, declare('{"type":"object"}', "d4"))[0].version == 3  # type: ignore[union-attr]
    assert take(book, declare("{}", "d4")) == []


@pytest.mark.parametrize(
    ("schema", "remedy"),
    [
        ("[]", "must be a JSON object"),
        ("{", "must be a JSON object"),
        ("[" * 50_000, "must be a JSON object"),
        ('{"$ref":"https://example.org/x"}', "nothing is fetched"),
        ('{"anyOf":[{"$dynamicRef":"x#y"}]}', "nothing is fetched"),
        ('{"a":' * 70 + "1" + "}" * 70, "nested deeper"),
        ('{"title":"' + "ü" * (SCHEMA_BYTES_MAX // 2) + '"}', "ends at 65536 bytes"),
    ],
)
def test_what_is_no_schema_is_refused(book: Book, schema: str, remedy: str) -> None:
    (refused,) = take(book, declare(schema))
    assert isinstance(refused, facts.CommandRejected)
    assert (refused.reason, refused.field) == ("invalid", "payload_schema")
    assert remedy in refused.detail
    assert book.tasks.get(b"mail.send") is None


def test_a_reference_inside_is_taken(book: Book) -> None:
    schema = '{"$ref":"#/$defs/A","$defs":{"A":{"properties":{"$ref":{"type":"string"}}}}}'
    assert isinstance(take(book, declare(schema))[0], facts.TaskDeclared)


@pytest.mark.parametrize("name", ["", "a b", "a/b", "..", "x" * 129])
def test_bad_name_of_a_task_is_refused(book: Book, name: str) -> None:
    (refused,) = take(book, declare("", name=name))
    assert isinstance(refused, facts.CommandRejected)
    assert refused.field == "name"


# -- workers


def test_wish_is_remembered_and_the_same_wish_changes_nothing(book: Book) -> None:
    assert take(book, ask("quiet", "a1")) == [facts.WorkerAsked("w1", "quiet", "a1", "me", "why", T0)]
    assert take(book, ask("quiet", "a2")) == [
        facts.CommandAnswered("", "w1", "a2", "exists", "AskWorker", "me", "why")
    ]
    assert isinstance(take(book, ask("resume", "a3"))[0], facts.WorkerAsked)
    assert isinstance(take(book, ask("stop", "a4"))[0], facts.WorkerAsked)
    assert book.remembered(book.asked, b"w1") == "stop"
    for what, command_id in (("quiet", "a5"), ("resume", "a6")):
        (refused,) = take(book, ask(what, command_id))
        assert isinstance(refused, facts.CommandRejected)
        assert (refused.reason, refused.field) == ("worker_stops", "what")
    assert isinstance(take(book, ask("stop", "a7"))[0], facts.CommandAnswered)


def test_unknown_wish_is_refused(book: Book) -> None:
    (refused,) = take(book, ask("explode", "a1"))
    assert isinstance(refused, facts.CommandRejected)
    assert (refused.field, refused.detail) == ("what", "must be one of quiet, resume, stop")


def test_wish_is_forgotten_with_its_day(book: Book) -> None:
    take(book, ask("quiet", "a1"))
    later = T0 + 86_400_000
    take(book, AskWorker(name="w1", command_id="a2", issued_at=later, what="resume"), later)
    assert book.remembered(book.asked, b"w1") == "resume"
    book.commit()
    fold(book, facts.DayForgotten(T0 // 86_400_000), 0, later)
    assert book.remembered(book.asked, b"w1") == "resume"
    fold(book, facts.DayForgotten(later // 86_400_000), 0, later)
    assert book.remembered(book.asked, b"w1") is None
    again = AskWorker(name="w1", command_id="a3", issued_at=later, what="resume")
    assert isinstance(take(book, again, later)[0], facts.WorkerAsked)


@pytest.mark.parametrize(
    ("what", "pulse", "expected"),
    [
        ("quiet", Pulse(1, -1), False),
        ("quiet", Pulse(0, -1, is_quiet=True), True),
        ("resume", Pulse(0, -1, is_quiet=True), False),
        ("resume", Pulse(1, -1), True),
        ("stop", Pulse(0, -1, is_quiet=True), False),
        ("stop", Pulse(0, -1, is_leaving=True), True),
        ("resume", Pulse(0, -1, is_leaving=True, is_quiet=True), True),
    ],
)
def test_pulse_shows_whether_a_wish_was_heard(what: str, pulse: Pulse, expected: bool) -> None:
    assert is_heard(what, pulse) is expected


# -- types


class Model(BaseModel):
    number: int
    tags: list[str] = []


class Record(msgspec.Struct):
    number: int


@dataclasses.dataclass
class Plain:
    number: int


class Odd(BaseModel, arbitrary_types_allowed=True):
    thing: App


class Wide(BaseModel):
    text: str = "x" * SCHEMA_BYTES_MAX


@pytest.mark.parametrize("kind", [Model, Record, Plain, list[Model], Record | None])
def test_type_has_a_schema(kind: Any) -> None:
    schema = msgspec.json.decode(schema_of(kind))
    assert isinstance(schema, dict)
    assert schema_of(kind) == schema_of(kind)


@pytest.mark.parametrize("kind", [Any, dict, int, list[str], Odd, Wide])
def test_type_without_a_usable_schema_takes_any_payload(kind: Any) -> None:
    assert schema_of(kind) == ""


def test_payload_type_stands_before_the_annotation() -> None:
    app = App()

    @app.task("t", payload=Record)
    def run(payload: dict[str, object]) -> None:
        """Takes what its decorator says."""

    @app.task("u")
    def other(payload: Model) -> None:
        """Takes what its annotation says."""

    assert run.read(b'{"number":1}') == Record(1)
    assert run.payload_schema == schema_of(Record)
    assert other.payload_schema == schema_of(Model)


@pytest.mark.parametrize(
    ("kind", "payload", "path"),
    [
        (Model, b'{"number":"hunter2","tags":[1]}', "$.number: "),
        (Model, b'{"number":1,"tags":["a",2]}', "$.tags[1]: "),
        (Record, b'{"number":"hunter2"}', "$.number"),
        (Plain, b"{}", "number"),
    ],
)
def test_bad_payload_is_told_by_path_and_not_repeated(kind: Any, payload: bytes, path: str) -> None:
    with pytest.raises(Exception) as raised:
        reader_of(kind)(payload)
    failure = bad_payload(raised.value)
    assert (failure.error_type, failure.is_permanent) == ("InvalidPayload", True)
    assert path in failure.message
    assert "hunter2" not in failure.message
