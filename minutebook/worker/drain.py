"""Signals to a worker: the first SIGTERM or SIGINT makes it leave in order, the second one at once."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterator
from contextlib import contextmanager

from minutebook.worker.worker import Worker

_SIGNALS = (signal.SIGTERM, signal.SIGINT)


@contextmanager
def signals_drain(worker: Worker) -> Iterator[None]:
    """While open, signals of this process go to `worker`. On the main thread's loop only."""
    loop = asyncio.get_running_loop()
    for number in _SIGNALS:
        loop.add_signal_handler(number, worker.drain)
    try:
        yield
    finally:
        for number in _SIGNALS:
            loop.remove_signal_handler(number)
