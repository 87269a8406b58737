"""`minutebook apply`: the jobs that files declare, put as they are declared, at deploy time.

Everything is checked by the API before anything is written, so a bad entry leaves all as it was. Applied twice, the second
time changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import msgspec
import typer
from msgspec import UNSET, Raw

from minutebook.cli.declared import Declared, Fault, FaultyFilesError, declared_jobs
from minutebook.cli.exits import ExitCode
from minutebook.cli.output import Format, Output, fault, note, write_many
from minutebook.cli.progress import progress
from minutebook.client import Command, PutEffect, RefusedError, SyncClient, UnavailableError

_COLUMNS: Final = ("job", "effect", "field", "now", "then")
_SHOWN_CHARS_MAX: Final = 60
_EFFECTS: Final = ("created", "changed", "unchanged", "pending", "refused", "unreached")
_CLOSED: Final = ("completed", "dead", "cancelled")


class FieldChange(msgspec.Struct):
    """A field of a job, as it is and as it is to be; null = it is not given."""

    field: str
    before: Raw
    after: Raw


class AppliedJob(msgspec.Struct):
    """What was done, or would be: `pending` is durable, but not decided yet; what is `refused` or `unreached` says
    why in `detail`.
    """

    id: str
    place: str
    effect: Literal["created", "changed", "unchanged", "pending", "refused", "unreached"]
    changes: list[FieldChange]
    detail: str = ""


def apply(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="YAML or JSON; - reads from stdin.")],
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run", help="Say what would change, change nothing; exit code 1 if anything would."
        ),
    ] = False,
    output: Output = Format.TABLE,
) -> None:
    """Create or replace the jobs that files declare. Nothing is written if any entry is bad; jobs that no file names stay.

    An entry is the create body of a job with its `id`, durations such as 2m too. A file holds a list of entries, an object
    with `jobs`, or one entry.

    Exit code 0: all are as declared. 1: with --dry-run, something would change. 2: a bad entry or file. 4: an entry that
    the API refuses. 5: the API is away. 6: some were written, others not.
    """
    try:
        jobs = declared_jobs(files)
    except FaultyFilesError as error:
        for found in error.faults:
            fault(str(found))
        raise typer.Exit(ExitCode.USAGE) from None
    with SyncClient() as client:
        effects = _effects(client, jobs)
        if dry_run:
            done = [_applied(job, effect, effect.effect) for job, effect in zip(jobs, effects, strict=True)]
        else:
            done = list(_put_all(client, jobs, effects))
    write_many(done, output, _COLUMNS, (row for one in done for row in _rows(one)))
    for job, effect in zip(jobs, effects, strict=True):
        if dry_run and effect.effect == "changed" and effect.status in _CLOSED:
            note(f"{job.id} is {effect.status}: for 8 days after its end no change of it is taken.")
    _tell(done, dry_run)


def _effects(client: SyncClient, jobs: list[Declared]) -> list[PutEffect]:
    """What each would do. Exits with 4, every refusal told, where the API would not take them all."""
    faults: list[Fault] = []
    effects: list[PutEffect] = []
    with progress("checking", len(jobs)) as advance:
        for number, job in enumerate(jobs, 1):
            try:
                effects.append(client.would_put(job.id, job.body))
            except RefusedError as error:
                faults += _faults(job, error)
            advance(number)
    for found in faults:
        fault(str(found))
    if faults:
        note("Nothing was written.")
        raise typer.Exit(ExitCode.REFUSED)
    return effects


def _faults(job: Declared, error: RefusedError) -> Iterator[Fault]:
    errors = error.problem.errors if error.problem is not None else []
    for one in errors:
        field = one.pointer.removeprefix("/").replace("/", ".")
        yield Fault(job.place.of(field), field, one.detail)
    if not errors:
        yield Fault(job.place.of(), job.id, str(error))


def _put_all(client: SyncClient, jobs: list[Declared], effects: list[PutEffect]) -> Iterator[AppliedJob]:
    is_away = ""
    with progress("writing", len(jobs)) as advance:
        for number, (job, effect) in enumerate(zip(jobs, effects, strict=True), 1):
            if is_away:
                yield _applied(job, effect, "unreached", is_away)
                continue
            try:
                yield _put(client, job, effect)
            except UnavailableError as error:
                is_away = str(error)
                yield _applied(job, effect, "unreached", is_away)
            advance(number)


def _put(client: SyncClient, job: Declared, effect: PutEffect) -> AppliedJob:
    """Write one, at the version that was compared with. Raises UnavailableError."""
    if effect.effect == "unchanged":
        return _applied(job, effect, effect.effect)
    try:
        answer = client.put(job.id, job.body, version=effect.version)
    except RefusedError as error:
        fault(f"{job.place.of()}: {job.id}: {error}")
        return _applied(job, effect, "refused", str(error))
    return _applied(job, effect, "pending" if isinstance(answer, Command) else effect.effect)


def _applied(job: Declared, effect: PutEffect, what: Any, detail: str = "") -> AppliedJob:
    changes = list(_changes(effect)) if effect.effect == "changed" else []
    return AppliedJob(job.id, job.place.of(), what, changes, detail)


def _changes(effect: PutEffect) -> Iterator[FieldChange]:
    before = {} if effect.before is None else _flat(effect.before)
    after = _flat(effect.after)
    for name in before | after:
        pair = before.get(name, Raw(b"null")), after.get(name, Raw(b"null"))
        if pair[0] != pair[1]:
            yield FieldChange(name, *pair)


def _flat(body: msgspec.Struct, prefix: str = "") -> dict[str, Raw]:
    """Every field that says something by its name, such as `retry.first`, as JSON."""
    found: dict[str, Raw] = {}
    for name in body.__struct_fields__:
        value = getattr(body, name)
        if isinstance(value, msgspec.Struct):
            found |= _flat(value, f"{prefix}{name}.")
        elif value is not UNSET:
            found[prefix + name] = value if isinstance(value, Raw) else Raw(msgspec.json.encode(value))
    return found


def _rows(one: AppliedJob) -> Iterator[tuple[object, ...]]:
    if not one.changes:
        yield one.id, one.effect, "", "", ""
    for number, change in enumerate(one.changes):
        name = (one.id, one.effect) if number == 0 else ("", "")
        yield *name, change.field, _short(change.before), _short(change.after)


def _short(raw: Raw) -> str:
    text = bytes(raw).decode().removeprefix('"').removesuffix('"')
    return text if len(text) <= _SHOWN_CHARS_MAX else f"{text[:_SHOWN_CHARS_MAX]}…"


def _tell(done: list[AppliedJob], dry_run: bool) -> None:
    """The sum, and the exit code that says it."""
    counts = {name: sum(one.effect == name for one in done) for name in _EFFECTS}
    told = ", ".join(f"{count} {name}" for name, count in counts.items() if count) or "no jobs"
    note(f"{told}; nothing was written." if dry_run else f"{told}.")
    written = counts["created"] + counts["changed"] + counts["pending"]
    failed = counts["refused"] + counts["unreached"]
    if dry_run:
        raise typer.Exit(ExitCode.NO if written else ExitCode.DONE)
    if counts["pending"] or (failed and written):
        raise typer.Exit(ExitCode.PARTLY_DONE)
    if failed:
        raise typer.Exit(ExitCode.REFUSED if counts["refused"] else ExitCode.UNREACHABLE)
