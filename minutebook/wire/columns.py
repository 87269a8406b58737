"""Records with columns, byte for byte as fastavro writes them, but faster.

fastavro goes through a column number by number, and reads it byte by byte; yet in most columns of a burst all numbers are the
same. Such a column is written and read here in one piece. Payloads, too, are written here: fastavro takes a view of each.
Everything else is left to fastavro, stretch by stretch.
"""

from __future__ import annotations

import io
from functools import cache, lru_cache
from typing import Any, Final

from minutebook.wire.alike import Alike, is_alike
from minutebook.wire.numbers import as_varint, varint
from minutebook.wire.plain import Names, Node, Plain
from minutebook.wire.schemas import by_header

_END: Final = b"\0"
"""What follows the last block of an array."""
_NUMBER_BYTES_MAX: Final = 9
"""So long a number fits into 63 bits: what is longer is left to fastavro."""


_size = lru_cache(maxsize=1_024)(as_varint)


def node(schema: Any, names: Names) -> Node:
    """The node of a schema; to be called in the order in which the schema defines its types."""
    if not has_parts(schema):
        return Plain(schema, names)
    if isinstance(schema, list):
        return Union(schema, names)
    if schema["type"] == "record":
        return Alike(schema, names) if is_alike(schema) else Record(schema, names)
    if isinstance(schema["items"], list):
        return Records(schema, names)
    return _COLUMNS[schema["items"]](schema, names)


def has_parts(schema: Any) -> bool:
    """Whether there are columns in it, or records that are mostly alike, other than in an array of one kind of records."""
    if isinstance(schema, list):
        return any(map(has_parts, schema))
    if not isinstance(schema, dict):
        return False
    if schema["type"] == "record":
        return is_alike(schema) or any(has_parts(field["type"]) for field in schema["fields"])
    items = schema.get("items")
    return has_parts(items) if isinstance(items, list) else isinstance(items, str) and items in _COLUMNS


@cache
def layouts() -> dict[bytes, Node]:
    """The node of each released schema, by the ten bytes that its records start with."""
    return {header: node(schema.parsed, {}) for header, schema in by_header().items()}


class Numbers(Plain):
    """A column of numbers."""

    def write(self, out: io.BytesIO, value: Any) -> None:
        """See `Node.write`."""
        if not value:
            out.write(_END)
        elif value.count(value[0]) == len(value):
            out.write(as_varint(len(value)) + as_varint(value[0]) * len(value) + _END)
        else:
            super().write(out, value)

    def read(self, data: bytes, source: io.BytesIO) -> Any:
        """See `Node.read`."""
        count, start = varint(data, source.tell())
        if 0 < count < len(data):
            number, end = varint(data, start)
            whole = data[start:end] * count + _END
            if end - start <= _NUMBER_BYTES_MAX and data.startswith(whole, start):
                source.seek(start + len(whole))
                return [number] * count
        return super().read(data, source)


class Blobs(Plain):
    """A column of bytes."""

    def write(self, out: io.BytesIO, value: Any) -> None:
        """See `Node.write`."""
        found = [as_varint(len(value))] if value else []
        for blob in value:
            found += _size(len(blob)), blob
        found.append(_END)
        out.write(b"".join(found))


_COLUMNS: Final[dict[str, type[Plain]]] = {"int": Numbers, "long": Numbers, "bytes": Blobs}


class Record:
    """A record with columns."""

    def __init__(self, schema: Any, names: Names) -> None:
        self._parts: list[tuple[str, Node]] = []
        """Field and node; a node without a field is one of several fields."""
        others: list[Any] = []
        for field in schema["fields"]:
            if has_parts(field["type"]):
                self._take(others, names)
                self._parts.append((field["name"], node(field["type"], names)))
            else:
                others.append(field)
        self._take(others, names)

    def _take(self, others: list[Any], names: Names) -> None:
        """Fields one after the other that have no columns."""
        if others:
            schema = {"type": "record", "name": f"Part{len(names)}", "fields": others.copy()}
            self._parts.append(("", Plain(schema, names)))
            others.clear()

    def write(self, out: io.BytesIO, value: Any) -> None:
        """See `Node.write`."""
        for name, part in self._parts:
            part.write(out, value[name] if name else value)

    def read(self, data: bytes, source: io.BytesIO) -> Any:
        """See `Node.read`."""
        found: dict[str, Any] = {}
        for name, part in self._parts:
            value = part.read(data, source)
            found |= {name: value} if name else value
        return found


class Union:
    """A union of records. With null there is one, and it is read without its name."""

    def __init__(self, schema: list[Any], names: Names) -> None:
        kinds = [branch if isinstance(branch, str) else branch["name"] for branch in schema]
        self._branches = [(kind, node(branch, names)) for kind, branch in zip(kinds, schema, strict=True)]
        self._numbers = {kind: number for number, kind in enumerate(kinds)}

    def write(self, out: io.BytesIO, value: Any) -> None:
        """See `Node.write`."""
        kind, record = ("null", None) if value is None else value
        number = self._numbers[kind]
        out.write(as_varint(number))
        self._branches[number][1].write(out, record)

    def read(self, data: bytes, source: io.BytesIO) -> Any:
        """See `Node.read`."""
        number, at = varint(data, source.tell())
        source.seek(at)
        kind, branch = self._branches[number]
        record = branch.read(data, source)
        return record if "null" in self._numbers else (kind, record)


class Records(Plain):
    """An array of a union of records. Unless the first one has parts, or one is no dict, fastavro has them all."""

    def __init__(self, schema: Any, names: Names) -> None:
        self._union = Union(schema["items"], names)
        self._wide = {
            key
            for number, branch in enumerate(schema["items"])
            if has_parts(branch)
            for key in (number, branch["name"])
        }
        whole = {"type": "record", "name": f"Whole{len(names)}", "fields": [{"name": "all", "type": schema}]}
        super().__init__(whole, names)

    def write(self, out: io.BytesIO, value: Any) -> None:
        """See `Node.write`."""
        by_parts = value and (
            value[0][0] in self._wide or any(not isinstance(record, dict) for _, record in value)
        )
        if not by_parts:
            super().write(out, {"all": value})
            return
        out.write(as_varint(len(value)))
        for item in value:
            self._union.write(out, item)
        out.write(_END)

    def read(self, data: bytes, source: io.BytesIO) -> Any:
        """See `Node.read`."""
        begin = source.tell()
        count, at = varint(data, begin)
        if count > 0 and varint(data, at)[0] in self._wide:
            source.seek(at)
            found = [self._union.read(data, source) for _ in range(count)]
            if source.read(len(_END)) == _END:
                return found
            source.seek(begin)
        return super().read(data, source)["all"]
