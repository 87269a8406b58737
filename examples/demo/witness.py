"""Witness files: what the handlers themselves saw, on disk before they go on.

One file a worker process, one JSON object a line. They know nothing of the log or the API, so they can
contradict both.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final, Literal, NamedTuple

from minutebook.clock import wall_ns

FOLDER: Final = "DEMO_WITNESS_DIR"
"""Environment name of the folder of the witness files."""

Moment = Literal["started", "finished", "raised"]


class Sighting(NamedTuple):
    """A handler at one moment. `at` and `due_at` are ms since the epoch, `at` with fractions, by the wall
    clock.
    """

    moment: Moment
    execution: str
    attempt: int
    due_at: int
    at: float
    pid: int


class Witness:
    """Writes the sightings of one worker process; each is synced to disk before `record` returns."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        self._file = os.open(folder / f"{os.getpid()}.jsonl", flags, 0o644)

    def record(self, moment: Moment, execution: str, attempt: int, due_at: int) -> None:
        """Put down one moment, stamped now."""
        sighting = Sighting(moment, execution, attempt, due_at, wall_ns() / 1e6, os.getpid())
        os.write(self._file, f"{json.dumps(sighting)}\n".encode())
        os.fsync(self._file)


class WitnessFiles:
    """Reads what all workers wrote; `news` gives each sighting once. The last line of a killed worker may be
    cut: it waits.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._read: dict[Path, int] = {}

    def news(self) -> Iterator[Sighting]:
        """Sightings not given before, file by file."""
        for file in sorted(self._folder.glob("*.jsonl")):
            with file.open("rb") as lines:
                lines.seek(self._read.get(file, 0))
                for line in lines:
                    if not line.endswith(b"\n"):
                        break
                    self._read[file] = self._read.get(file, 0) + len(line)
                    yield Sighting(*json.loads(line))
