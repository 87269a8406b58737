"""Work on partitions, spread over processes; what they say comes back to one place."""

from __future__ import annotations

import signal
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, Final, Protocol, TypeVar

from minutebook.errors import MinutebookError
from replay.reading import Advance

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

Stopped = Callable[[], bool]
"""Whether somebody wants the work to end early."""

_TOLD_AFTER: Final = 64
"""Records after which a process says how far it is, and listens."""
_WAIT_S: Final = 0.25


def never() -> bool:
    """Where nobody ends the work early."""
    return False


class Work(Protocol[T_co]):
    """What is done for a partition. To be handed to another process it must be picklable, as must what it gives."""

    def __call__(self, partition: int, advance: Advance, is_stopped: Stopped) -> T_co:
        """Do it."""
        ...


class ProcessDiedError(MinutebookError):
    """A process of the work ended before it was done."""


def spread(
    partitions: Sequence[int], work: Work[T], processes: int, advance: Advance, is_stopped: Stopped = never
) -> dict[int, T]:
    """What `work` gives, by partition, taken in the order of `partitions` by up to `processes` processes; in this one, where
    one is enough. After a stop, partitions that nobody has begun are left out.

    Raises whatever the work raises, and ProcessDiedError.
    """
    if min(processes, len(partitions)) <= 1:
        return {
            partition: work(partition, advance, is_stopped) for partition in partitions if not is_stopped()
        }
    crew = _Crew(partitions, work, advance)
    try:
        crew.start(min(processes, len(partitions)))
        while crew.is_busy():
            crew.hear()
            if is_stopped():
                crew.stop()
    finally:
        crew.end()
    return crew.found


class _Crew:
    """The processes, each behind a pipe. Down go partitions, then None; up come records done, results, errors."""

    def __init__(self, partitions: Sequence[int], work: Work[Any], advance: Advance) -> None:
        self.found: dict[int, Any] = {}
        self._waiting = deque(partitions)
        self._work = work
        self._advance = advance
        self._processes: dict[Connection, BaseProcess] = {}
        self._busy: dict[Connection, int] = {}
        self._is_stopping = False

    def start(self, count: int) -> None:
        context = get_context("spawn")
        for _ in range(count):
            ours, theirs = context.Pipe()
            process = context.Process(target=_serve, args=(self._work, theirs), daemon=True)
            process.start()
            theirs.close()
            self._processes[ours] = process
            self._next(ours)

    def is_busy(self) -> bool:
        return bool(self._busy)

    def hear(self) -> None:
        """What the processes say next, within a moment."""
        for pipe in wait(list(self._busy), _WAIT_S):
            assert isinstance(pipe, Connection)
            partition = self._busy[pipe]
            try:
                kind, said = pipe.recv()
            except (EOFError, ConnectionError) as error:
                raise self._death(pipe) from error
            if kind == "records":
                self._advance(partition, said)
            elif kind == "error":
                raise said
            else:
                self.found[partition] = said
                self._next(pipe)

    def stop(self) -> None:
        """Let each end where it is."""
        if not self._is_stopping:
            self._is_stopping = True
            self._waiting.clear()
            for pipe in self._busy:
                with suppress(ConnectionError):  # why it is gone is heard from it
                    pipe.send(None)

    def _next(self, pipe: Connection) -> None:
        self._busy.pop(pipe, None)
        if self._waiting:
            self._busy[pipe] = self._waiting.popleft()
            try:
                pipe.send(self._busy[pipe])
            except ConnectionError as error:
                raise self._death(pipe) from error

    def _death(self, pipe: Connection) -> ProcessDiedError:
        process, partition = self._processes[pipe], self._busy[pipe]
        process.join()
        return ProcessDiedError(f"the process that read partition {partition} ended with {process.exitcode}")

    def end(self) -> None:
        """All processes are gone: those with nothing to do leave when their pipe is closed, the others are ended."""
        busy = set(self._busy)
        for pipe, process in self._processes.items():
            pipe.close()
            if pipe in busy:
                process.terminate()
        for process in self._processes.values():
            process.join()


def _serve(work: Work[Any], pipe: Connection) -> None:
    """A process of the crew. It leaves when its pipe is closed, so it does not outlive who started it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the terminal sends it to all; who started this one decides
    voice = _Voice(pipe)
    try:
        while not voice.is_stopped() and (partition := pipe.recv()) is not None:
            found = work(partition, voice.advance, voice.is_stopped)
            voice.tell()
            pipe.send(("result", found))
    except (EOFError, ConnectionError):
        return
    except Exception as error:  # it is raised where the work was asked for
        pipe.send(("error", error))


class _Voice:
    """Says now and then how much was done, and hears then whether to stop."""

    def __init__(self, pipe: Connection) -> None:
        self._pipe = pipe
        self._untold = 0
        self._is_stopped = False

    def advance(self, partition: int, records: int) -> None:
        self._untold += records
        if self._untold >= _TOLD_AFTER:
            self.tell()
            if not self._is_stopped and self._pipe.poll():
                self._is_stopped = self._pipe.recv() is None

    def tell(self) -> None:
        """Say what was not said yet."""
        self._pipe.send(("records", self._untold))
        self._untold = 0

    def is_stopped(self) -> bool:
        return self._is_stopped
