"""What is left to fastavro, and the port of what is not."""

from __future__ import annotations

import io
from typing import Any, Protocol

from fastavro import parse_schema, schemaless_reader, schemaless_writer

Names = dict[str, Any]
"""Named types that are defined so far."""


class Node(Protocol):
    """Writes and reads the values of one schema."""

    def write(self, out: io.BytesIO, value: Any) -> None:
        """Append a value."""
        ...

    def read(self, data: bytes, source: io.BytesIO) -> Any:
        """Read a value from `source`, which holds `data`. Raises many kinds of errors for damaged bytes."""
        ...


def read_plain(source: io.BytesIO, schema: Any) -> Any:
    """What fastavro reads: of a union of records also the name. Raises many kinds of errors for damaged bytes."""
    return schemaless_reader(source, schema, None, return_record_name=True, return_record_name_override=True)


class Plain:
    """What is left to fastavro."""

    def __init__(self, schema: Any, names: Names) -> None:
        # At each call fastavro copies all names that it was given.
        needed = names if any(repr(name) in str(schema) for name in names) else {}
        self._schema = parse_schema(schema, needed)
        names |= needed

    def write(self, out: io.BytesIO, value: Any) -> None:
        """See `Node.write`."""
        schemaless_writer(out, self._schema, value)

    def read(self, data: bytes, source: io.BytesIO) -> Any:
        """See `Node.read`."""
        return read_plain(source, self._schema)
