"""Records of one kind that have most in common, byte for byte as fastavro writes them, but faster.

Jobs that are created together differ in their ids, payloads and instants. What is alike is encoded once, and read once: a
stretch of bytes that is the same as that of the record before stands for the same values.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from functools import lru_cache
from operator import attrgetter
from typing import Any, Final, Protocol

from minutebook.wire.numbers import as_varint, varint
from minutebook.wire.plain import Names, Plain

OWN: Final[dict[str, frozenset[str]]] = {
    "SubmitJob": frozenset({"job_id", "command_id", "issued_at", "payload"}),
    "JobSubmitted": frozenset(
        {"job_id", "command_id", "issued_at", "fingerprint", "payload", "payload_sha256", "next_at"}
    ),
}
"""Kinds of records that are alike, and the fields that each of them has for itself."""
_RARE: Final[dict[str, Any]] = {"policy": None, "timing": None, "tags": []}
"""Fields that few jobs have, as they are where a job has none. Their values are no keys of a cache."""
_NUMBER_BYTES_MAX: Final = 9
"""So long a number fits into 63 bits: what is longer is left to fastavro."""

_TWO_BYTES: Final = 0x80
"""From here on a number takes two bytes; an odd one is negative."""

_size = lru_cache(maxsize=1_024)(as_varint)


def is_plain(record: Any) -> bool:
    """Whether it is a job, as submitted or on record, that has nothing of what few jobs have: `Alike` writes it as it is."""
    return (
        type(record).__name__ in OWN and record.policy is None and record.timing is None and not record.tags
    )


def is_alike(schema: Any) -> bool:
    """Whether a record's schema is one of those that `Alike` is for."""
    return str(schema["name"]).rpartition(".")[2] in OWN


class _Part(Protocol):
    def written(self, record: Any) -> bytes: ...

    def read(self, data: bytes, at: int, source: io.BytesIO, found: dict[str, Any]) -> int:
        """Read from `at` on into `found`; where it ends."""
        ...


class _Bytes:
    """A field of bytes, or of text in UTF-8."""

    def __init__(self, name: str, *, is_text: bool) -> None:
        self._name = name
        self._is_text = is_text
        self._get: Callable[[Any], Any] = attrgetter(name)

    def written(self, record: Any) -> bytes:
        value = self._get(record)
        data: bytes = value.encode() if self._is_text else value
        return _size(len(data)) + data

    def read(self, data: bytes, at: int, source: io.BytesIO, found: dict[str, Any]) -> int:
        first = data[at]
        if first < _TWO_BYTES and not first & 1:
            length, at = first >> 1, at + 1
        else:
            length, at = varint(data, at)
        end = at + length
        if not at <= end <= len(data):
            raise EOFError
        value = data[at:end]
        found[self._name] = value.decode() if self._is_text else value
        return end


class _Number:
    """A field that is a number."""

    def __init__(self, name: str) -> None:
        self._plain = Plain("long", {})
        self._name = name
        self._get: Callable[[Any], int] = attrgetter(name)

    def written(self, record: Any) -> bytes:
        return _size(self._get(record))

    def read(self, data: bytes, at: int, source: io.BytesIO, found: dict[str, Any]) -> int:
        number, end = varint(data, at)
        if end - at > _NUMBER_BYTES_MAX:
            source.seek(at)
            number, end = self._plain.read(data, source), source.tell()
        found[self._name] = number
        return end


class _Stretch:
    """Fields one after the other that many records have alike."""

    def __init__(self, fields: list[Any], names: Names) -> None:
        schema = {"type": "record", "name": f"Alike{len(names)}", "fields": fields.copy()}
        self._plain = Plain(schema, names)
        self._names = [field["name"] for field in fields if field["name"] not in _RARE]
        self._lists = [field["name"] for field in fields if isinstance(_RARE.get(field["name"]), list)]
        self._get: Callable[[Any], Any] = attrgetter(*self._names)
        self._encoded = lru_cache(maxsize=1_024)(self._encode)
        self._last: tuple[bytes, dict[str, Any]] | None = None

    def written(self, record: Any) -> bytes:
        return self._encoded(self._get(record))

    def _encode(self, values: Any) -> bytes:
        out = io.BytesIO()
        held = values if len(self._names) > 1 else (values,)
        self._plain.write(out, _RARE | dict(zip(self._names, held, strict=True)))
        return out.getvalue()

    def read(self, data: bytes, at: int, source: io.BytesIO, found: dict[str, Any]) -> int:
        if self._last is None or not data.startswith(self._last[0], at):
            source.seek(at)
            values = self._plain.read(data, source)
            self._last = data[at : source.tell()], values
        stretch, values = self._last
        found |= values
        for name in self._lists:
            found[name] = values[name].copy()
        return at + len(stretch)


class Alike(Plain):
    """Records of such a kind. Written are dicts, by fastavro, or what `is_plain`; read are dicts."""

    def __init__(self, schema: Any, names: Names) -> None:
        own = OWN[str(schema["name"]).rpartition(".")[2]]
        known = names.copy()
        self._parts: list[_Part] = []
        stretch: list[Any] = []
        for field in schema["fields"]:
            if field["name"] not in own:
                stretch.append(field)
                continue
            self._take(stretch, known)
            self._parts.append(_own(field))
        self._take(stretch, known)
        super().__init__(schema, names)

    def _take(self, stretch: list[Any], known: Names) -> None:
        if stretch:
            self._parts.append(_Stretch(stretch, known))
            stretch.clear()

    def write(self, out: io.BytesIO, value: Any) -> None:
        """See `Node.write`."""
        if isinstance(value, dict):
            super().write(out, value)
        else:
            out.write(b"".join([part.written(value) for part in self._parts]))

    def read(self, data: bytes, source: io.BytesIO) -> Any:
        """See `Node.read`."""
        found: dict[str, Any] = {}
        at = source.tell()
        for part in self._parts:
            at = part.read(data, at, source, found)
        source.seek(at)
        return found


def _own(field: Any) -> _Part:
    if field["type"] == "long":
        return _Number(field["name"])
    return _Bytes(field["name"], is_text=field["type"] == "string")
