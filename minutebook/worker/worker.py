"""A worker: takes grants of an app's tasks, runs them, reports, and leaves in order."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from minutebook import __version__
from minutebook.clock import Clock, SystemClock
from minutebook.domain.commands import DeclareTask
from minutebook.errors import SettingsError
from minutebook.loop_lag import LoopLag
from minutebook.mint import mint_id
from minutebook.worker.app import App
from minutebook.worker.channel import Channel
from minutebook.worker.exchange import Profile
from minutebook.worker.link import Link
from minutebook.worker.run import Orders
from minutebook.worker.runner import Runner
from minutebook.worker.settings import WorkerSettings

if TYPE_CHECKING:
    from minutebook.worker.monitor import Monitor

CANCEL_S: Final = 2.0
FORCED_CANCEL_S: Final = 0.2
FLUSH_S: Final = 5.0


class Drained(NamedTuple):
    """How a worker left: attempts that ended since it was asked to, those handed back, whether it was forced, and whether
    a function still runs on a thread that nothing can stop.
    """

    drained: int
    handed_back: int
    is_forced: bool = False
    is_stuck: bool = False

    def __str__(self) -> str:
        return f"drained {self.drained}, handed back {self.handed_back}"


class Worker:
    """One life of a worker. `run` it once, on the loop that the tasks shall run on."""

    def __init__(
        self, app: App, settings: WorkerSettings, channel: Channel, clock: Clock | None = None
    ) -> None:
        self.id = mint_id()
        self._app = app
        self._settings = settings
        self._channel = channel
        self._clock = clock or SystemClock()
        self.metrics_port: int | None = None
        """Where it can be watched, while it runs with such a port."""
        self._asked = asyncio.Event()
        self._forced = asyncio.Event()

    def drain(self) -> None:
        """Leave: start nothing more, finish within the grace, hand back the rest. Called again: at once. On the loop only."""
        (self._forced if self._asked.is_set() else self._asked).set()

    async def run(self) -> Drained:
        """Work until `drain`, or until it is asked from outside to stop. Cancelled, it hands everything back at once.

        Raises what breaks the link.
        """
        link = Link(
            self._channel, self._profile(), self._clock, self._declared(), self._settings.clock_bound_ms
        )
        with self._watched(link):
            return await self._work(link)

    async def _work(self, link: Link) -> Drained:
        runner = Runner(
            self._app.tasks, self._settings.concurrency, self._clock, link.finish, link.board.note
        )
        link.start(partial(_obey, runner))
        try:
            await _first(None, self._asked.wait(), link.stop_asked.wait(), link.failed)
            await self._leave(runner, link)
        except asyncio.CancelledError:
            self._forced.set()
            await self._leave(runner, link)
            raise
        except BaseException:
            await runner.abort(FORCED_CANCEL_S)
            raise
        finally:
            is_stuck = runner.close()
            counts = await link.stop()
        return Drained(*counts, is_forced=self._forced.is_set(), is_stuck=is_stuck)

    async def _leave(self, runner: Runner, link: Link) -> None:
        runner.leave()
        link.leave()
        await _first(self._settings.grace_s, link.quiet.wait(), self._forced.wait(), link.failed)
        if not link.quiet.is_set():
            await runner.abort(FORCED_CANCEL_S if self._forced.is_set() else CANCEL_S)
            await _first(FLUSH_S, link.quiet.wait(), link.failed)

    @contextmanager
    def _watched(self, link: Link) -> Iterator[None]:
        """With a port for whoever watches, where one is asked for. Raises SettingsError where it cannot be had."""
        it = self._settings
        if it.metrics_port is None:
            yield
            return
        lag = LoopLag(self._clock)
        monitor = _monitor(link, lag)
        try:
            self.metrics_port = monitor.start(it.metrics_host, it.metrics_port)
        except OSError as error:
            raise SettingsError(f"metrics_port {it.metrics_port} cannot be had: {error}") from error
        watching = asyncio.create_task(lag.run(), name="loop lag")
        try:
            yield
        finally:
            watching.cancel()
            monitor.stop()

    def _declared(self) -> list[DeclareTask]:
        """What payloads the tasks take."""
        now, actor = self._clock.now(), f"worker:{self._settings.name}"
        return [
            DeclareTask(
                name=name,
                command_id=mint_id(),
                issued_at=now,
                actor=actor,
                payload_schema=task.payload_schema,
            )
            for name, task in self._app.tasks.items()
        ]

    def _profile(self) -> Profile:
        it = self._settings
        return Profile(
            worker_id=self.id,
            name=it.name,
            version=__version__,
            tasks=frozenset(self._app.tasks),
            queues=it.queues or self._app.queues,
            slots=it.concurrency,
            lease_ms=it.lease_ms,
            pulse_ms=it.pulse_ms,
        )


def _monitor(link: Link, lag: LoopLag) -> Monitor:
    try:
        from minutebook.worker.monitor import Monitor
    except ModuleNotFoundError as error:
        raise SettingsError(
            f"metrics_port needs {error.name!r}: install it with `pip install 'minutebook[prometheus]'`"
        ) from error
    return Monitor(link, lag)


def _obey(runner: Runner, orders: Orders) -> None:
    runner.start(orders.starts)
    runner.stop(orders.stops)


async def _first(timeout: float | None, *awaited: Awaitable[object]) -> None:
    """Wait until one of `awaited` is done or `timeout` (seconds) is over. Raises what a done one raised."""
    tasks = [asyncio.ensure_future(one) for one in awaited]
    done, rest = await asyncio.wait(tasks, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
    for task in rest:
        if isinstance(task, asyncio.Task):
            task.cancel()
    for task in done:
        task.result()
