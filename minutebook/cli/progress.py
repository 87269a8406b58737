"""How far a command is, on stderr where somebody looks; nothing off a terminal and with `--quiet`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from minutebook.cli.output import has_progress


class Advance(Protocol):
    """Shows that `done` of `total` are done; what is not given stays as it was said last."""

    def __call__(self, done: int, total: int | None = None, what: str | None = None) -> None:
        """Show it."""


@contextmanager
def progress(what: str, total: int | None = None) -> Iterator[Advance]:
    """A bar that goes when it is done, and what moves it. `total` None = not known yet."""
    if not has_progress():
        yield _nothing
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=total)

        def advance(done: int, total: int | None = None, what: str | None = None) -> None:
            bar.update(task, completed=done, total=total, description=what)

        yield advance


def _nothing(done: int, total: int | None = None, what: str | None = None) -> None:
    pass
