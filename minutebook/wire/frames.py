"""Frames: the records of `job-events`.

Token of a row = frame offset x 65,536 + running number of the row among all rows of all events of the frame; it is
computed from the position and stored nowhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from minutebook.domain.events import Event, JobSubmitted
from minutebook.domain.operation import OperationFact
from minutebook.domain.policy import Policy
from minutebook.domain.rows import rows_of
from minutebook.domain.timing import Timing
from minutebook.errors import DecodeError
from minutebook.wire import codec
from minutebook.wire.alike import is_plain

FRAME_BYTES_MAX: Final = 1 << 20
FRAME_ROWS_MAX: Final = 1 << 16
FORMAT_VERSION: Final = 1


class InputPosition(msgspec.Struct, frozen=True, gc=False):
    """Last record of an input topic that this partition has consumed."""

    topic: str
    topic_id: str
    offset: int


class Slice(msgspec.Struct, frozen=True, gc=False):
    """Part of a cycle, in order. `topic` empty: what was due through index key `key`; else input through `offset`.

    One of reports beyond the header's offset: only their pulses were heard so far, for the grants.
    """

    topic: str
    offset: int
    key: bytes
    events: int


class Frame(msgspec.Struct, frozen=True, gc=False):
    """What was decided together, and the header that says where and by whom. `now` is ms since the epoch, UTC."""

    offset: int
    head: bytes
    owner: str
    epoch: int
    now: int
    rules: int
    tzdata: str
    settings: bytes
    inputs: list[InputPosition]
    slices: list[Slice]
    outputs_sent_through: int
    events: list[Event]


_EVENTS: dict[str, Any] = {f"{codec.NAMESPACE}.{kind.__name__}": kind for kind in Event.__args__}
_SUBMITTED: Final = f"{codec.NAMESPACE}.JobSubmitted"
_PARTS: dict[str, dict[str, type[msgspec.Struct]]] = {
    _SUBMITTED: {"policy": Policy, "timing": Timing},
    f"{codec.NAMESPACE}.JobEdited": {"job": JobSubmitted},
    f"{codec.NAMESPACE}.OperationStarted": {"fact": OperationFact},
    f"{codec.NAMESPACE}.OperationCancelled": {"fact": OperationFact},
    f"{codec.NAMESPACE}.OperationCopied": {"fact": OperationFact},
}
"""Events of which fields are records of their own, or null."""


def encode_frame(frame: Frame) -> bytes:
    """`frame` in single-object encoding."""
    datum: dict[str, Any] = {name: getattr(frame, name) for name in Frame.__struct_fields__}
    datum["inputs"] = [msgspec.structs.asdict(item) for item in frame.inputs]
    datum["slices"] = [msgspec.structs.asdict(item) for item in frame.slices]
    datum["events"] = list(map(_branch, frame.events))
    is_wide = any(
        is_plain(event) or len(getattr(event, "executions", ())) >= codec.WIDE_ROWS for event in frame.events
    )
    return codec.write_datum("Frame", datum, is_wide=is_wide)


def _branch(event: Event) -> tuple[str, Any]:
    if is_plain(event):
        return _SUBMITTED, event
    kind, fields = f"{codec.NAMESPACE}.{type(event).__name__}", msgspec.structs.asdict(event)
    for name in _PARTS.get(kind, ()):
        if fields[name] is not None:
            fields[name] = codec.builtins(fields[name])
    return kind, fields


def _event(kind: str, fields: dict[str, Any]) -> Event:
    for name, part in _PARTS.get(kind, {}).items():
        if fields.get(name) is not None:
            fields[name] = msgspec.convert(fields[name], part)
    event: Event = _EVENTS[kind](**fields)
    return event


def decode_frame(data: bytes | None) -> Frame:
    """The frame in `data`. Raises DecodeError: on `job-events` that halts the partition, nothing is skipped."""
    if data is None:
        raise DecodeError("null value")
    name, datum = codec.read_datum(data)
    if name != "Frame":
        raise DecodeError(f"a {name} on the event log")
    datum["inputs"] = [InputPosition(**item) for item in datum["inputs"]]
    datum["slices"] = [Slice(**item) for item in datum["slices"]]
    datum["events"] = [_event(kind, fields) for kind, fields in datum["events"]]
    return Frame(**datum)


def placed(frame: Frame) -> Iterator[tuple[Event, int]]:
    """Each event of `frame` with the token of its first row. Raises DecodeError for columns of unequal length."""
    row = 0
    for event in frame.events:
        yield event, (frame.offset << 16) + row
        row += rows_of(event)


__all__ = ["Frame", "InputPosition", "Slice", "decode_frame", "encode_frame", "placed"]
