"""Data made from the schemas themselves: one sample that uses every field and branch, and strategies for any datum.

`python -m tests.unit.avro_samples` writes the golden records that are not there yet; it never touches one that is.
"""

from __future__ import annotations

import io
from typing import Any

import msgspec
from fastavro import schemaless_writer
from hypothesis import strategies as st

from minutebook.wire import codec, schemas
from minutebook.wire.schemas import Schema

GOLDEN = schemas.folder() / "golden"


def resolved(schema: Any, names: dict[str, Any]) -> Any:
    """`schema` with a name replaced by what it names."""
    return names[schema] if isinstance(schema, str) and schema in names else schema


def collect(schema: Any, names: dict[str, Any]) -> dict[str, Any]:
    """Every named type in a parsed schema, by full name."""
    if isinstance(schema, list):
        for branch in schema:
            collect(branch, names)
    elif isinstance(schema, dict):
        if schema["type"] in ("record", "fixed", "enum"):
            names[schema["name"]] = schema
        for part in ([field["type"] for field in schema.get("fields", ())], schema.get("items")):
            if part is not None:
                collect(part, names)
        if isinstance(schema["type"], dict | list):
            collect(schema["type"], names)
    return names


class Sampler:
    """Counts while it samples, so that no two values of a record are alike. `turn` chooses where a field has a choice
    of records.
    """

    def __init__(self, schema: Schema, turn: int = 0) -> None:
        self._names = collect(schema.parsed, {})
        self._turn = turn
        self._count = 0

    def sample(self, schema: Any) -> Any:
        """A datum that uses every field; of a list of a union, one of each branch; of an optional part, the part."""
        schema = resolved(schema, self._names)
        kind = schema["type"] if isinstance(schema, dict) else schema
        self._count += 1
        if isinstance(schema, list):
            branches = [branch for branch in schema if branch != "null"]
            return self._branch(branches[self._turn % len(branches)])
        if isinstance(kind, dict | list):
            return self.sample(kind)
        if kind == "record":
            return {field["name"]: self.sample(field["type"]) for field in schema["fields"]}
        if kind == "array":
            items = schema["items"]
            return (
                [self._branch(branch) for branch in items]
                if isinstance(items, list)
                else [self.sample(items)] * 2
            )
        if kind == "fixed":
            return bytes([self._count % 256]) * schema["size"]
        if kind == "enum":
            return schema["symbols"][-1]
        return self._scalar(kind)

    def _branch(self, branch: Any) -> Any:
        datum = self.sample(branch)
        branch = resolved(branch, self._names)
        is_record = isinstance(branch, dict) and branch["type"] == "record"
        return (branch["name"], datum) if is_record else datum

    def _scalar(self, kind: str) -> Any:
        number = self._count
        values = {
            "boolean": True,
            "int": -number,
            "long": 1_750_000_000_000 + number,
            "double": number / 8,
            "string": f"text {number} \u00fc\u20ac",
            "bytes": b"\x00\xff%d" % number,
        }
        return values[kind]


def strategy(schema: Any, names: dict[str, Any]) -> st.SearchStrategy[Any]:
    """Any datum that the schema allows."""
    schema = resolved(schema, names)
    if isinstance(schema, list):
        return st.one_of([_branch_strategy(branch, names) for branch in schema])
    kind = schema["type"] if isinstance(schema, dict) else schema
    if isinstance(kind, dict | list):
        return strategy(kind, names)
    if kind == "record":
        return st.fixed_dictionaries(
            {field["name"]: strategy(field["type"], names) for field in schema["fields"]}
        )
    if kind == "array":
        return st.lists(strategy(schema["items"], names), max_size=3)
    if kind == "fixed":
        return st.binary(min_size=schema["size"], max_size=schema["size"])
    if kind == "enum":
        return st.sampled_from(schema["symbols"])
    return SCALARS[kind]


def _branch_strategy(branch: Any, names: dict[str, Any]) -> st.SearchStrategy[Any]:
    found = strategy(branch, names)
    branch = resolved(branch, names)
    if isinstance(branch, dict) and branch["type"] == "record":
        name = branch["name"]
        return found.map(lambda datum: (name, datum))
    return found


SCALARS: dict[str, st.SearchStrategy[Any]] = {
    "null": st.none(),
    "boolean": st.booleans(),
    "int": st.integers(-(1 << 31), (1 << 31) - 1),
    "long": st.integers(-(1 << 63), (1 << 63) - 1),
    "double": st.floats(allow_nan=False),
    "string": st.text(max_size=8),
    "bytes": st.binary(max_size=8),
}


def written(schema: Schema, datum: Any) -> bytes:
    """`datum` in single-object encoding, by fastavro alone."""
    out = io.BytesIO()
    out.write(schema.header)
    schemaless_writer(out, schema.parsed, datum, strict=True)
    return out.getvalue()


def samples(schema: Schema) -> dict[str, Any]:
    """Sample data of a schema, by the name of their golden record."""
    words = "".join(f"-{letter.lower()}" if letter.isupper() else letter for letter in schema.name).lstrip(
        "-"
    )
    choices = [
        len(field["type"])
        for field in schema.parsed["fields"]
        if isinstance(field["type"], list) and "null" not in field["type"]
    ]
    return {
        f"{words}.v{schema.version}" + (f".{turn}" if turn else ""): Sampler(schema, turn).sample(
            schema.parsed
        )
        for turn in range(max(choices, default=1))
    }


def legible(datum: Any) -> bytes:
    """A datum as JSON, bytes in base64, a branch of a union as [name, datum]."""
    return msgspec.json.format(msgspec.json.encode(datum), indent=2) + b"\n"


def main() -> None:
    """Write what is missing."""
    lines = (GOLDEN / "fingerprints.txt").read_text().splitlines()
    for schema in sorted(schemas.by_header().values()):
        line = f"{schema.name}.v{schema.version} {schema.header[2:].hex()}"
        if line not in lines:
            lines.append(line)
        for name, datum in samples(schema).items():
            binary, text = GOLDEN / f"{name}.bin", GOLDEN / f"{name}.json"
            if not binary.exists():
                binary.write_bytes(written(schema, datum))
                text.write_bytes(legible(codec.read_datum(binary.read_bytes())[1]))
                print(binary)
    (GOLDEN / "fingerprints.txt").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
