"""Tasks of the crash tests. Each says on disk that it starts before it does anything, and that it ends when all is done.

The witness files, one a process, know nothing of the log, so they can contradict it.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import threading
import time
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any, Final

from minutebook import App, Context
from minutebook.worker import Fail

FOLDER: Final = "CRASH_WITNESS_DIR"

app = App()


@cache
def _file() -> int:
    folder = Path(os.environ[FOLDER])
    folder.mkdir(parents=True, exist_ok=True)
    return os.open(folder / f"{os.getpid()}.jsonl", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)


def _witness(moment: str, ctx: Context) -> None:
    line = {
        "moment": moment,
        "tenant": ctx.tenant,
        "execution": ctx.execution_id,
        "attempt": ctx.attempt,
        "token": ctx.token,
        "due_at": round(ctx.due_at.timestamp() * 1000),
        "at": time.time() * 1000,
        "pid": os.getpid(),
    }
    os.write(_file(), f"{json.dumps(line)}\n".encode())
    os.fsync(_file())


def mark_of(folder: Path, execution: str) -> Path:
    """The file that says that a process fell over an execution, and when: ms since the epoch."""
    return folder / f"{execution}.mark"


def is_first(execution: str) -> bool:
    """Whether no process has asked this of an execution before."""
    mark = mark_of(Path(os.environ[FOLDER]), execution)
    mark.parent.mkdir(parents=True, exist_ok=True)
    try:
        with mark.open("x") as file:
            file.write(str(time.time() * 1000))
    except FileExistsError:
        return False
    return True


def falls_at(step: str, executions: Iterable[str]) -> bool:
    """Whether one of `executions` is of a job named `<step>-<anything>`, and the first process comes to that step with it."""
    return any(is_first(execution) for execution in executions if execution.startswith(f"{step}-"))


def die() -> None:
    """End this process as a power cut would."""
    os.kill(os.getpid(), signal.SIGKILL)


def freeze() -> None:
    """Stop this process until somebody wakes it, as a machine out of memory or a paused guest would.

    The signal goes to this very thread: sent to the process, another thread may take it, and this one goes on for a while.
    """
    signal.pthread_kill(threading.get_ident(), signal.SIGSTOP)


@app.task("crash.note")
async def note(payload: Any, ctx: Context) -> None:
    _witness("start", ctx)
    await asyncio.sleep(0.02)
    _witness("end", ctx)


@app.task("crash.slow")
async def slow(payload: Any, ctx: Context) -> None:
    """Takes as many seconds as its payload says."""
    _witness("start", ctx)
    await asyncio.sleep(payload)
    _witness("end", ctx)


@app.task("crash.cured")
async def cured(payload: Any, ctx: Context) -> Fail | None:
    """Is given up at first, and works once it is redriven."""
    _witness("start", ctx)
    if ctx.attempt == 1:
        return Fail("not yet, as planned")
    _witness("end", ctx)
    return None


@app.task("crash.flaky")
async def flaky(payload: Any, ctx: Context) -> None:
    """Fails once, then works."""
    _witness("start", ctx)
    if ctx.attempt == 1:
        raise OSError("the first attempt fails, as planned")
    _witness("end", ctx)


@app.task("crash.refused")
async def refused(payload: Any, ctx: Context) -> Fail:
    """Fails for good."""
    _witness("start", ctx)
    return Fail("permanent, as planned")


@app.task("crash.die-inside")
async def die_inside(payload: Any, ctx: Context) -> None:
    """Takes its worker with it in the middle of the first run."""
    _witness("start", ctx)
    if is_first(ctx.execution_id):
        die()
    _witness("end", ctx)


@app.task("crash.hang")
async def hang(payload: Any, ctx: Context) -> None:
    """Hangs in the first run."""
    _witness("start", ctx)
    if is_first(ctx.execution_id):
        await asyncio.sleep(600)
    _witness("end", ctx)


@app.task("crash.linger")
async def linger(payload: Any, ctx: Context) -> None:
    """Takes as many seconds as its payload says in the first run, and no time later."""
    _witness("start", ctx)
    if is_first(ctx.execution_id):
        await asyncio.sleep(payload)
    _witness("end", ctx)


@app.task("crash.die-unreported")
async def die_unreported(payload: Any, ctx: Context) -> None:
    """Takes its worker with it when the work of the first run is done and nobody knows: as many seconds later as its
    payload says."""
    _witness("start", ctx)
    _witness("end", ctx)
    await asyncio.sleep(payload or 0)
    if is_first(ctx.execution_id):
        die()
