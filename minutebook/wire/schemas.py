"""Schema files by name and by fingerprint.

A record starts with `C3 01` and the CRC-64-AVRO fingerprint of its writer's schema (Avro specification, single-object
encoding); no registry server is needed. A checkout reads `schemas/`, an installed wheel its copy `minutebook/_schemas/`.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from fastavro import parse_schema
from fastavro.schema import fingerprint, to_parsing_canonical_form

HEADER_BYTES = 10
_MAGIC = b"\xc3\x01"


class Schema(NamedTuple):
    """One released schema file."""

    name: str
    version: int
    header: bytes
    parsed: Any


def folder() -> Path:
    """Where the schema files lie."""
    package = Path(__file__).resolve().parent.parent
    shipped = package / "_schemas"
    return shipped if shipped.is_dir() else package.parent / "schemas"


def _load(path: Path) -> Schema:
    raw = json.loads(path.read_text())
    canonical = to_parsing_canonical_form(raw)
    header = _MAGIC + bytes.fromhex(fingerprint(canonical, "CRC-64-AVRO"))
    version = int(path.name.split(".")[1].removeprefix("v"))
    return Schema(raw["name"], version, header, parse_schema(raw))


@cache
def by_header() -> dict[bytes, Schema]:
    """Every released schema, by the ten bytes that its records start with."""
    schemas = [_load(path) for path in sorted(folder().glob("*.avsc"))]
    return {schema.header: schema for schema in schemas}


@cache
def newest() -> dict[str, Schema]:
    """The schema to write with, by record name."""
    found: dict[str, Schema] = {}
    for schema in by_header().values():
        if schema.name not in found or found[schema.name].version < schema.version:
            found[schema.name] = schema
    return found
