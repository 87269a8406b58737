"""What options of several nouns share: durations, payloads, idempotency keys, and the question before what destroys."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer
from msgspec import UNSET, Raw

from minutebook.cli.output import shown
from minutebook.times import format_duration, parse_short_duration

Key = Annotated[
    str | None,
    typer.Option(help="Idempotency key: a repeat with the same key changes nothing; made if not given."),
]
Reason = Annotated[str, typer.Option(help="Why; it stays on record.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]


def milliseconds(text: str) -> int:
    """Milliseconds of `2m` or ISO 8601. Raises BadParameter."""
    try:
        return parse_short_duration(text)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


def seconds(text: str) -> int:
    """Whole seconds, rounded up, of `2m` or ISO 8601. Raises BadParameter."""
    return -(-milliseconds(text) // 1_000)


Wait = Annotated[
    int | None,
    typer.Option(
        help="Wait so long for the outcome, such as 30s or 10m; exit code 0 only where it succeeded.",
        parser=seconds,
        metavar="DURATION",
    ),
]


def duration(text: str) -> str:
    """ISO 8601 from `2m` or ISO 8601. Raises BadParameter."""
    try:
        return format_duration(parse_short_duration(text))
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


def read_payload(text: str | None) -> Raw | msgspec.UnsetType:
    """JSON as given: text, `@FILE`, or `-` for stdin. Raises BadParameter."""
    if text is None:
        return UNSET
    try:
        if text == "-":
            text = sys.stdin.read()
        elif text.startswith("@"):
            text = Path(text[1:]).read_text()
        msgspec.json.decode(text)
    except (OSError, UnicodeDecodeError) as error:
        raise typer.BadParameter(f"cannot be read: {error}", param_hint="--payload") from None
    except msgspec.DecodeError as error:
        raise typer.BadParameter(f"is no JSON: {error}", param_hint="--payload") from None
    return Raw(text.strip().encode())


def ask(question: str, *, yes: bool) -> None:
    """Go on only if somebody says so, or said so before by `yes`. Raises BadParameter where nobody can be asked."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise typer.BadParameter("is needed where nobody can be asked", param_hint="--yes")
    typer.confirm(shown(question), abort=True, err=True)


def given_options(options: dict[str, Any]) -> dict[str, Any]:
    """Those that are there; of the others nothing is said."""
    return {name: value for name, value in options.items() if value is not None}
