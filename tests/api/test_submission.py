"""Create bodies read together are taken and refused as if each came alone."""

from __future__ import annotations

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from api.problems import Refused
from api.submission import Submission, SubmissionReader, read_submission

NOW = 1_767_225_600_000
PARTS = {
    "id": ['"a"', '"b"', '"no name"', "1", "null"],
    "payload": ["1", "null", '{"x":{"y":[1]}}', '{"x":1,"x":2}', "[" * 70 + "]" * 70, str(1 << 64), "{"],
    "task": ['"t"', '"t"', '"t"', '"no task"'],
    "queue": ['"q"', '"q"', '"unknown"'],
    "run_at": ['"2030-01-01T00:00:00Z"', '"2030-01-01T00:00:00Z"', '"soon"'],
    "retry": ['{"max_attempts":3}', '{"max_attempts":3,"max_attempts":3}'],
    "tags": ['["x"]', '["x","x"]'],
    "other": ["1"],
}


@st.composite
def bodies(draw: st.DrawFn) -> bytes:
    names = draw(st.lists(st.sampled_from([*PARTS, "id", "payload", "task", "task"]), max_size=6))
    members = [f"{json.dumps(name)}:{draw(st.sampled_from(PARTS[name]))}" for name in names]
    return f"{{{','.join(members)}}}".encode()


def outcome(reader: SubmissionReader, data: bytes) -> Submission | tuple[object, ...]:
    try:
        return reader.read(data)
    except Refused as refused:
        return refused.code, refused.detail, [(error.pointer, error.detail) for error in refused.errors]


def new_reader() -> SubmissionReader:
    return SubmissionReader(NOW, lambda queue: queue != "unknown", lambda url: "")


@given(st.lists(bodies(), max_size=8).map(lambda found: found * 2))
@settings(max_examples=150, deadline=None)
def test_bodies_together_are_read_as_alone(found: list[bytes]) -> None:
    together = new_reader()
    for data in found:
        assert outcome(together, data) == outcome(new_reader(), data)


def test_names_inside_of_what_is_alike_are_counted() -> None:
    reader = new_reader()
    body = b'{"task":"t","retry":{"max_attempts":3},"payload":{"a":{"b":1}}}'
    again = b'{"task":"t","retry":{"max_attempts":3},"payload":{"a":{"a":1,"b":2}}}'
    twice = b'{"task":"t","retry":{"max_attempts":3},"payload":{"a":1,"a":2}}'
    assert [type(outcome(reader, data)) for data in (body, again, twice)] == [Submission, Submission, tuple]


def test_what_is_alike_is_checked_once() -> None:
    asked: list[str] = []
    reader = SubmissionReader(NOW, lambda queue: not asked.append(queue), lambda url: "")
    read = [reader.read(b'{"task":"t","id":"%d","payload":{"n":%d}}' % (n, n)) for n in range(3)]
    assert [(one.id, one.payload) for one in read] == [(str(n), b'{"n":%d}' % n) for n in range(3)]
    assert asked == ["default"]
    assert read_submission(b'{"task":"t","id":"0","payload":{"n":0}}', NOW, bool, str) == read[0]
