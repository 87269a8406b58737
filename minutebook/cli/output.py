"""What commands write: results to stdout, everything else to stderr.

`json` and `jsonl` write JSON and nothing else, in the shape of the API. Tables show control characters escaped, so that
no text from outside can move the cursor or look like another line.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec
import typer

from minutebook.cli.presentation import ASKED
from minutebook.cli.shown_times import INSTANT, shown_instant

if TYPE_CHECKING:
    from rich.console import Console

_UNSAFE: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")


class Format(StrEnum):
    """How results are written."""

    TABLE = "table"
    JSON = "json"
    JSONL = "jsonl"


Output = Annotated[
    Format, typer.Option("--output", "-o", envvar="MINUTEBOOK_OUTPUT", help="How results are written.")
]


def shown(value: object) -> str:
    """`value` as text that is safe on a terminal, an instant of the API as `--time-format` says; nothing for None."""
    if value is None:
        return ""
    text = str(value)
    if INSTANT.fullmatch(text):
        return shown_instant(text, ASKED.time_format)
    return _UNSAFE.sub(lambda found: found.group().encode("unicode_escape").decode(), text)


def write_one(item: msgspec.Struct, output: Format, fields: dict[str, Any]) -> None:
    """One result: as it is, or as a table of `fields`."""
    if output is not Format.TABLE:
        _write_json(msgspec.json.encode(item))
        return
    # Loaded for tables alone: they cost a third of the start.
    from rich.table import Table
    from rich.text import Text

    table = Table(show_header=False, box=None, pad_edge=False)
    for name, value in fields.items():
        table.add_row(Text(name, "bold"), Text(shown(value)))
    _console().print(table)


def write_many(
    items: Iterable[msgspec.Struct], output: Format, columns: Sequence[str], rows: Iterable[Sequence[object]]
) -> None:
    """A list of results: `items` as they are, or a table of `rows` under `columns`."""
    if output is Format.JSON:
        _write_json(msgspec.json.encode(list(items)))
    elif output is Format.JSONL:
        for item in items:
            _write_json(msgspec.json.encode(item))
    else:
        from rich.table import Table
        from rich.text import Text

        table = Table(*columns, box=None, pad_edge=False)
        for row in rows:
            table.add_row(*(Text(shown(value)) for value in row))
        _console().print(table)


def write_item(item: msgspec.Struct) -> None:
    """One of a stream of results, as a line of JSON."""
    _write_json(msgspec.json.encode(item))


def write_line(cells: Iterable[object]) -> None:
    """One of a stream of results, for people: the cells that say something."""
    told = [text for cell in cells if (text := shown(cell))]
    sys.stdout.write("  ".join(told) + "\n")
    sys.stdout.flush()


def note(text: str) -> None:
    """A hint, on stderr; nothing where `--quiet` is given."""
    if not ASKED.is_quiet:
        _tell(text)


def fault(text: str) -> None:
    """What is wrong, on stderr."""
    _tell(f"error: {text}")


def has_progress() -> bool:
    """Whether somebody looks at stderr, who would like to see how far it is."""
    return sys.stderr.isatty() and not ASKED.is_quiet


def _tell(text: str) -> None:
    for line in text.split("\n"):
        sys.stderr.write(shown(line) + "\n")


def _write_json(data: bytes) -> None:
    sys.stdout.write(data.decode() + "\n")
    sys.stdout.flush()  # whoever reads it in a pipe may wait for this line


def _console() -> Console:
    from rich.console import Console

    # Off a terminal Rich would fold lines at 80 columns, and a script would read half an id.
    return Console() if sys.stdout.isatty() else Console(width=10_000)
