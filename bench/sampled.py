"""`python -m bench.sampled -m module …`: run a module as `python -m` would, and note where its CPU time goes.

Each millisecond of CPU time the stack of the thread that used it is noted. The file is named by the environment; without it the
module just runs. Python handles the signal in the main thread: another thread is seen where it next lets go of the interpreter,
so calls of the system are over-represented there.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import runpy
import signal
import sys
import threading
import time
from pathlib import Path
from types import FrameType
from typing import Final

FOLDER: Final = "BENCH_PROFILE_DIR"
"""Environment name of the folder of the samples: a file a process, a JSON line each: [ns, thread, functions from the leaf on]."""

EVERY_S: Final = 0.001
NATIVE: Final = "(native threads)"
_DEPTH_MAX: Final = 60
_WRITE_AFTER: Final = 500


class Sampler:
    """Samples by the timer of the process's CPU time. Python handles the signal in the main thread."""

    def __init__(self, file: Path) -> None:
        self._file = file.open("w")
        self._used_ns: dict[int, int] = {}
        self._lines: list[str] = []
        self._is_taking = False

    def start(self) -> None:
        """From now on, until the process ends."""
        signal.signal(signal.SIGPROF, self._take)
        signal.setitimer(signal.ITIMER_PROF, EVERY_S, EVERY_S)
        atexit.register(self._end)

    def _take(self, _number: int, frame: FrameType | None) -> None:
        """An error here would come up in whatever was interrupted, and so would a sample within a sample."""
        if self._is_taking:
            return
        self._is_taking = True
        with contextlib.suppress(Exception):
            self._note(frame)
        self._is_taking = False

    def _note(self, frame: FrameType | None) -> None:
        thread = self._busiest()
        if thread is not None and thread is not threading.main_thread():
            frame = sys._current_frames().get(thread.ident or 0)
        functions = _functions(frame) if thread else []
        self._lines.append(json.dumps([time.time_ns(), thread.name if thread else NATIVE, functions]))
        if len(self._lines) >= _WRITE_AFTER:
            self._write()

    def _busiest(self) -> threading.Thread | None:
        """The thread that used the most CPU time since the last sample; None where none of Python's did."""
        most, found = 0, None
        for thread in threading.enumerate():
            if thread.ident is None:
                continue
            try:
                used = time.clock_gettime_ns(time.pthread_getcpuclockid(thread.ident))
            except OSError:
                continue
            delta = used - self._used_ns.get(thread.ident, 0)
            self._used_ns[thread.ident] = used
            if delta > most:
                most, found = delta, thread
        return found if most > EVERY_S * 1e9 / 4 else None

    def _write(self) -> None:
        self._file.write("\n".join(self._lines) + "\n")
        self._file.flush()
        self._lines.clear()

    def _end(self) -> None:
        signal.setitimer(signal.ITIMER_PROF, 0)
        self._write()


def _functions(frame: FrameType | None) -> list[str]:
    found: list[str] = []
    while frame is not None and len(found) < _DEPTH_MAX:
        found.append(f"{frame.f_globals.get('__name__', '?')}:{frame.f_code.co_qualname}")
        frame = frame.f_back
    return found


def main() -> None:
    """Start the sampler and become the module named behind `-m`."""
    if sys.argv[1:2] != ["-m"]:
        sys.exit("usage: python -m bench.sampled -m module [argument …]")
    if FOLDER in os.environ:
        Sampler(Path(os.environ[FOLDER]) / f"{os.getpid()}.samples").start()
    name = sys.argv[2]
    sys.argv = sys.argv[2:]
    runpy.run_module(name, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
