"""On SIGUSR1 a process says what each of its asyncio tasks waits for: the answer to "why does it not go on?"."""

from __future__ import annotations

import asyncio
import io
import signal

import structlog

log = structlog.get_logger()


def show_tasks_on_signal() -> None:
    """From now on, in the running loop, SIGUSR1 writes every task's stack to the log."""
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGUSR1, _show, loop)


def _show(loop: asyncio.AbstractEventLoop) -> None:
    for task in sorted(asyncio.all_tasks(loop), key=lambda task: task.get_name()):
        stack = io.StringIO()
        task.print_stack(file=stack)
        log.info("stack", name=task.get_name(), stack=stack.getvalue())
