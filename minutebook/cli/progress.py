"""How far a command is, on stderr where somebody looks; nothing off a terminal and with `--quiet`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from minutebook.cli.output import has_progress


@contextmanager
def progress(what: str, total: int) -> Iterator[Callable[[], None]]:
    """A bar for `total` steps; what it yields is called after each."""
    if not has_progress():
        yield lambda: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=total)
        yield lambda: bar.advance(task)
