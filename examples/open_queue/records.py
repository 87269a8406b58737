"""Records to bytes and back: Avro in single-object encoding, by the schema files. And the partition of a key."""

from __future__ import annotations

import io
import json
import struct
from pathlib import Path
from typing import Any

from fastavro import parse_schema, schemaless_reader, schemaless_writer
from fastavro.schema import fingerprint, to_parsing_canonical_form

SCHEMAS = Path(__file__).parents[2] / "schemas"
HEADER_BYTES = 10


class Records:
    """The records that a consumer reads and writes. A record starts with C3 01 and its schema's CRC-64-AVRO."""

    def __init__(self, folder: Path = SCHEMAS) -> None:
        self._by_header: dict[bytes, Any] = {}
        self._newest: dict[str, tuple[bytes, Any]] = {}
        versions = sorted(folder.glob("*.avsc"), key=lambda path: int(path.name.split(".")[1][1:]))
        for path in versions:
            raw = json.loads(path.read_text())
            crc = fingerprint(to_parsing_canonical_form(raw), "CRC-64-AVRO")
            header, parsed = b"\xc3\x01" + bytes.fromhex(crc), parse_schema(raw)
            self._by_header[header] = parsed
            self._newest[raw["name"]] = header, parsed

    def encode(self, name: str, datum: dict[str, Any]) -> bytes:
        """`datum` as a record of that name, by its newest schema."""
        header, schema = self._newest[name]
        out = io.BytesIO()
        out.write(header)
        schemaless_writer(out, schema, datum, strict_allow_default=True)
        return out.getvalue()

    def decode(self, value: bytes) -> dict[str, Any]:
        """The datum of a record. Raises KeyError for a schema that is not among the files."""
        schema = self._by_header[value[:HEADER_BYTES]]
        datum: dict[str, Any] = schemaless_reader(io.BytesIO(value[HEADER_BYTES:]), schema, None)
        return datum


def partition_of(key: str, partitions: int) -> int:
    """Where Kafka's default partitioner (murmur2) puts a record with that key."""
    data = key.encode()
    h = 0x9747B28C ^ len(data)
    whole = len(data) & ~3
    for (k,) in struct.iter_unpack("<I", data[:whole]):
        k = k * 0x5BD1E995 & 0xFFFFFFFF
        h = (h * 0x5BD1E995 & 0xFFFFFFFF) ^ ((k ^ k >> 24) * 0x5BD1E995 & 0xFFFFFFFF)
    if data[whole:]:
        h = (h ^ int.from_bytes(data[whole:], "little")) * 0x5BD1E995 & 0xFFFFFFFF
    h = (h ^ h >> 13) * 0x5BD1E995 & 0xFFFFFFFF
    return ((h ^ h >> 15) & 0x7FFFFFFF) % partitions
