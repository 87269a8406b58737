"""Jobs that files declare: read from YAML or JSON, checked as far as no API is needed, each fault with its place.

An entry has the shape of the create body with an `id`; durations may be short (`2m`). A file holds a list of entries, an
object with `jobs`, or one entry; YAML may hold several documents. A payload in JSON is kept byte for byte.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Final, NamedTuple

import msgspec
from msgspec import Raw

from minutebook.cli.yaml_nodes import Entry, YamlFault, yaml_entries
from minutebook.client import JobRequest
from minutebook.ids import is_name
from minutebook.times import format_duration, parse_short_duration

FILE_BYTES_MAX: Final = 16 << 20
JOBS_MAX: Final = 10_000
FIELDS: Final = JobRequest.__struct_fields__
_DURATIONS: Final = ("delay", "every", "jitter", "timeout", "deadline", "start_deadline", "stuck_after")
_NESTED_DURATIONS: Final = {"retry": ("first", "max"), "misfire": ("window",)}
_PATH: Final = re.compile(r" - at `\$\.?(.*)`\Z")


class Fault(NamedTuple):
    """What is wrong where: a file with line or index, a field (empty = the entry), and the remedy."""

    place: str
    field: str
    detail: str

    def __str__(self) -> str:
        return ": ".join(filter(None, self))


class FaultyFilesError(Exception):
    """Files that declare no good jobs: every fault of all of them."""

    def __init__(self, faults: list[Fault]) -> None:
        super().__init__("\n".join(map(str, faults)))
        self.faults = faults


class DuplicateNameError(Exception):
    """JSON in which a name stands twice: readers would understand it differently."""


class Place(NamedTuple):
    """Where an entry is, and its fields where lines are known."""

    file: str
    entry: str
    lines: Mapping[str, int]

    def of(self, field: str = "") -> str:
        """Place of a field; of the entry where it has no line of its own."""
        line = self.lines.get(field.partition(".")[0])
        return f"{self.file}:{line}" if line else f"{self.file}{self.entry}"


class Declared(NamedTuple):
    """A job that a file declares, under its id."""

    id: str
    place: Place
    body: JobRequest


def declared_jobs(files: Iterable[Path]) -> list[Declared]:
    """The jobs in `files` in their order; `-` is stdin. Raises FaultyFilesError."""
    faults: list[Fault] = []
    found: dict[str, Declared] = {}
    for file in files:
        for place, members in _entries(file, faults):
            _lengthen(place, members, faults)
            job = _job(place, members, faults)
            if job is None:
                continue
            if job.id in found:
                first = found[job.id].place.of("id")
                faults.append(Fault(place.of("id"), "id", f"{job.id} is declared at {first} already"))
            found[job.id] = job
    if len(found) > JOBS_MAX:
        faults.append(Fault("", "", f"{len(found)} jobs; at most {JOBS_MAX} at once"))
    if faults:
        raise FaultyFilesError(faults)
    return list(found.values())


def _entries(file: Path, faults: list[Fault]) -> Iterator[tuple[Place, dict[str, Raw]]]:
    """Entries of a file, their values as JSON; what cannot be read is a fault."""
    name = "stdin" if str(file) == "-" else str(file)
    try:
        text = sys.stdin.read() if name == "stdin" else _read(file)
    except (OSError, UnicodeDecodeError, ValueError) as error:
        faults.append(Fault(name, "", f"cannot be read: {error}"))
        return
    try:
        yield from _json_entries(name, text)
        return
    except DuplicateNameError as error:
        faults.append(Fault(name, "", str(error)))
        return
    except (ValueError, RecursionError) as error:
        if name.endswith(".json"):
            faults.append(Fault(name, "", f"is no JSON with jobs: {error}"))
            return
    try:
        for entry in yaml_entries(text):
            yield Place(name, f":{entry.line}", entry.lines), _as_json(entry)
    except YamlFault as error:
        faults.append(Fault(f"{name}:{error.line}", "", error.detail))


def _read(file: Path) -> str:
    if file.stat().st_size > FILE_BYTES_MAX:
        raise ValueError(f"it has more than {FILE_BYTES_MAX >> 20} MiB")
    return file.read_text(encoding="utf-8")


def _json_entries(name: str, text: str) -> list[tuple[Place, dict[str, Raw]]]:
    """Raises DecodeError for what is no JSON or holds no objects, DuplicateNameError for a name that stands twice."""
    json.loads(text, object_pairs_hook=_distinct)
    found = msgspec.json.decode(text, type=dict[str, Raw] | list[dict[str, Raw]])
    if isinstance(found, list):
        return [(Place(name, f"[{number}]", {}), members) for number, members in enumerate(found)]
    if set(found) == {"jobs"}:
        members = msgspec.json.decode(found["jobs"], type=list[dict[str, Raw]])
        return [(Place(name, f".jobs[{number}]", {}), one) for number, one in enumerate(members)]
    return [(Place(name, "", {}), found)]


def _distinct(pairs: list[tuple[str, object]]) -> None:
    seen: set[str] = set()
    for name, _ in pairs:
        if name in seen:
            raise DuplicateNameError(f"{name} stands twice in one object")
        seen.add(name)


def _as_json(entry: Entry) -> dict[str, Raw]:
    return {name: Raw(msgspec.json.encode(value)) for name, value in entry.members.items()}


def _lengthen(place: Place, members: dict[str, Raw], faults: list[Fault]) -> None:
    """Make short durations ISO 8601; what is none is a fault."""
    for name in _DURATIONS:
        if name in members:
            members[name] = _long(place, name, members[name], faults)
    for name, parts in _NESTED_DURATIONS.items():
        inner = _object(members.get(name))
        if inner is not None:
            long = {
                part: _long(place, f"{name}.{part}", raw, faults) if part in parts else raw
                for part, raw in inner.items()
            }
            members[name] = Raw(msgspec.json.encode(long))


def _object(raw: Raw | None) -> dict[str, Raw] | None:
    try:
        return None if raw is None else msgspec.json.decode(raw, type=dict[str, Raw])
    except msgspec.ValidationError:
        return None


def _long(place: Place, field: str, raw: Raw, faults: list[Fault]) -> Raw:
    value = msgspec.json.decode(raw)
    try:
        return Raw(msgspec.json.encode(format_duration(parse_short_duration(str(value)))))
    except ValueError as error:
        faults.append(Fault(place.of(field), field, str(error)))
        return Raw(b'"PT1S"')  # so that one fault is not told twice


def _job(place: Place, members: dict[str, Raw], faults: list[Fault]) -> Declared | None:
    """The job of an entry; None, and what is wrong noted, where it is none."""
    before = len(faults)
    for name in members:
        if name not in FIELDS:
            near = get_close_matches(name, FIELDS, 1)
            remedy = f"did you mean {near[0]}?" if near else f"known are {', '.join(sorted(FIELDS))}"
            faults.append(Fault(place.of(name), name, f"unknown field; {remedy}"))
    for name in ("id", "task"):
        if name not in members:
            faults.append(Fault(place.of(), name, "is required"))
    if len(faults) > before:
        return None
    try:
        body = msgspec.json.decode(msgspec.json.encode(members), type=JobRequest)
    except msgspec.ValidationError as error:
        faults.append(_invalid(place, str(error)))
        return None
    if not is_name(str(body.id)):
        faults.append(Fault(place.of("id"), "id", "must be 1-128 ASCII letters, digits, ._-"))
        return None
    return Declared(str(body.id), place, body)


def _invalid(place: Place, text: str) -> Fault:
    found = _PATH.search(text)
    field = found.group(1) if found else ""
    return Fault(place.of(field), field, _PATH.sub("", text))
