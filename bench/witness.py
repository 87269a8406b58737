"""What the handlers saw: when each run started, by the machine's wall clock.

A file a worker process, mapped into memory: a start costs one store there, and a killed worker leaves what it saw.
"""

from __future__ import annotations

import mmap
import os
import struct
from bisect import bisect_left
from collections.abc import Iterator
from pathlib import Path
from time import time_ns
from typing import Final, NamedTuple

FOLDER: Final = "BENCH_WITNESS_DIR"
"""Environment name of the folder of the witness files."""

TASK: Final = "bench.stamp"
"""The task whose handler writes them, and does nothing else."""

SHORT: Final = "bench.short"
LONG: Final = "bench.long"
"""Tasks that write them and then hold their slot for so many seconds."""
SHORT_S: Final = 0.05
LONG_S: Final = 25.0

_ROW: Final = struct.Struct("<qq")
_ROWS_MAX: Final = 1 << 24
_NO_TIME: Final = 0
_LOOK_BYTES: Final = _ROW.size << 12


class Start(NamedTuple):
    """Run `number` (the payload of its job) started at `at_ns`, nanoseconds since the epoch."""

    number: int
    at_ns: int


class Witness:
    """Writes the starts of this process to a file of its own in `folder`; up to 16 million of them."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        file = os.open(folder / f"{os.getpid()}.starts", os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o644)
        os.ftruncate(file, _ROWS_MAX * _ROW.size)
        self._rows = mmap.mmap(file, 0)
        os.close(file)
        self._place = 0

    def record(self, number: int) -> None:
        """Run `number` starts now."""
        _ROW.pack_into(self._rows, self._place, number, time_ns())
        self._place += _ROW.size


class WitnessFiles:
    """Reads what all workers wrote, while they write."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._read: dict[Path, int] = {}
        self._counted: dict[Path, int] = {}

    def count(self) -> int:
        """How many starts are written by now. Looks at a few of them only: who measures a burst must not slow it down."""
        for file in self._folder.glob("*.starts"):
            with file.open("rb") as rows:
                rows.seek(self._counted.get(file, 0))
                chunk = rows.read(_LOOK_BYTES)
                while filled := _filled(chunk):
                    self._counted[file] = self._counted.get(file, 0) + filled
                    chunk = rows.read(_LOOK_BYTES) if filled == len(chunk) else b""
        return sum(self._counted.values()) // _ROW.size

    def news(self) -> Iterator[Start]:
        """Starts not given before, file by file."""
        for file in sorted(self._folder.glob("*.starts")):
            with file.open("rb") as rows:
                rows.seek(self._read.get(file, 0))
                while chunk := rows.read(_ROW.size << 12):
                    for number, at_ns in _ROW.iter_unpack(chunk):
                        if at_ns == _NO_TIME:
                            break
                        self._read[file] = self._read.get(file, 0) + _ROW.size
                        yield Start(number, at_ns)
                    else:
                        continue
                    break


def _filled(rows: bytes) -> int:
    """Bytes of `rows` that are written: they are filled from the front."""
    places = range(0, len(rows), _ROW.size)
    return _ROW.size * bisect_left(places, True, key=lambda at: _ROW.unpack_from(rows, at)[1] == _NO_TIME)
