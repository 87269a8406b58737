"""`python -m docs.generate_schemas` writes `docs/reference/schemas.md` from the files in `schemas/`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any, Final

PAGE: Final = Path(__file__).parent / "reference" / "schemas.md"
SCHEMAS: Final = Path(__file__).parents[1] / "schemas"
_HEAD: Final = """# Records

What lies on the [topics](topics.md), field by field: the newest version of every schema, and the records inside it. Values are
Avro in single-object encoding; the [rules of change](../../schemas/README.md) say what a next version may do. A record that
several schemas hold is shown where it comes first. `?` after a type: may be null. This page is written by
`python -m docs.generate_schemas`.

| record | versions | what it is |
|---|---|---|
"""
Record = dict[str, Any]


def page() -> str:
    """The page as it must be."""
    shown: set[str] = set()
    newest = [(name, versions, _schema(name, versions[-1])) for name, versions in schemas()]
    rows = [
        f"| [`{schema['name']}`](#{schema['name'].lower()}) | {_versions(versions)} | {_said(schema)} |\n"
        for _, versions, schema in newest
    ]
    parts = [
        _section(record, f"`schemas/{name}.v{versions[-1]}.avsc`" if record is schema else "")
        for name, versions, schema in newest
        for record in _records(schema, shown)
    ]
    return _HEAD + "".join(rows) + "".join(parts)


def schemas() -> Iterator[tuple[str, list[int]]]:
    """Each schema's name with its versions, the newest last."""
    files = sorted(
        (path.name.split(".")[0], int(path.name.split(".v")[1][:-5])) for path in SCHEMAS.glob("*.avsc")
    )
    for name, found in groupby(files, key=lambda file: file[0]):
        yield name, [version for _, version in found]


def _schema(name: str, version: int) -> Record:
    found: Record = json.loads((SCHEMAS / f"{name}.v{version}.avsc").read_text())
    return found


def _versions(versions: list[int]) -> str:
    return "1" if versions == [1] else f"1 to {versions[-1]}"


def _records(schema: Any, shown: set[str]) -> Iterator[Record]:
    """Records of a schema that were not shown yet, itself first."""
    if isinstance(schema, list):
        for one in schema:
            yield from _records(one, shown)
    elif isinstance(schema, dict):
        if schema.get("type") == "record" and schema["name"] not in shown:
            shown.add(schema["name"])
            yield schema
            for field in schema["fields"]:
                yield from _records(field["type"], shown)
        elif schema.get("type") == "array":
            yield from _records(schema["items"], shown)


def _section(record: Record, file: str) -> str:
    said = " ".join(filter(None, (_said(record), f"File: {file}." if file else "")))
    rows = "".join(
        f"| `{field['name']}` | {_type(field['type'])} | {_default(field)} | {_said(field)} |\n"
        for field in record["fields"]
    )
    head = "| field | type | default | meaning |\n|---|---|---|---|\n"
    table = f"\n{head}{rows}" if rows else ""
    return f"\n## {record['name']}\n" + (f"\n{said}\n" if said else "") + table


def _said(what: Record) -> str:
    """Its doc, so that `<tenant>` stays a text."""
    return str(what.get("doc", "")).replace("<", "&lt;").replace(">", "&gt;").replace("|", "\\|")


def _type(schema: Any) -> str:
    """A type in one cell."""
    if isinstance(schema, str):
        return schema.removeprefix("minutebook.")
    if isinstance(schema, list):
        names = [_type(one) for one in schema if one != "null"]
        told = ", ".join(names) if len(names) < 9 else f"one of {len(names)} records"
        return told + ("?" if "null" in schema else "")
    if schema["type"] == "array":
        return f"array of {_type(schema['items'])}"
    if schema["type"] == "enum":
        return " ".join(f"`{symbol}`" for symbol in schema["symbols"])
    if schema["type"] == "fixed":
        return f"{schema['size']} bytes"
    return str(schema.get("name", schema["type"]))


def _default(field: Record) -> str:
    return f"`{json.dumps(field['default'])}`" if "default" in field else ""


if __name__ == "__main__":
    PAGE.write_text(page())
