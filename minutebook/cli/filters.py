"""What a list is asked for: words such as `status:paused tag:nightly`, the same as in the filter bar of the pages, or options."""

from __future__ import annotations

from typing import Annotated, Final

import typer

ALL_LIMIT: Final = 100
"""Items that a list shows unless it is asked for more."""
_CLIENT_NAMES: Final = {
    "job": {"from": "created_from", "until": "created_until"},
    "execution": {"from": "scheduled_from", "until": "scheduled_until"},
}
"""List -> names of the grammar that its call has otherwise."""
JOB_NAMES: Final = ("status", "task", "queue", "tag", "from", "until", "due_from", "due_until", "order")
EXECUTION_NAMES: Final = ("status", "task", "queue", "job_id", "error_type", "from", "until", "order")

Words = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[NAME:VALUE]...", help="Filter, such as status:paused tag:nightly; all must fit."
    ),
]
Limit = Annotated[int, typer.Option(min=1, help="At most so many.")]
All = Annotated[bool, typer.Option("--all", help="All that fit, page after page.")]
From = Annotated[
    str | None, typer.Option("--from", help="Only those then or later; RFC 3339 with an offset.")
]
Until = Annotated[str | None, typer.Option("--until", help="Only those before.")]


def asked(kind: str, words: list[str] | None, **options: str | None) -> dict[str, str]:
    """Arguments for the client's call of a list, from words and options. Raises BadParameter."""
    renamed = _CLIENT_NAMES[kind]
    found = read_words(JOB_NAMES if kind == "job" else EXECUTION_NAMES, words, **options)
    return {renamed.get(name, name): value for name, value in found.items()}


def read_words(names: tuple[str, ...], words: list[str] | None, **options: str | None) -> dict[str, str]:
    """What words and options ask for, by the `names` of the grammar. Raises BadParameter."""
    found = {name.rstrip("_"): value for name, value in options.items() if value is not None}
    for word in words or ():
        name, colon, value = word.partition(":")
        if not colon or not value or name not in names:
            raise typer.BadParameter(f"{word!r}: give NAME:VALUE with one of {', '.join(names)}")
        if name in found:
            raise typer.BadParameter(f"{name} is given twice")
        found[name] = value
    return found
