"""The user's side: starts granted runs on the event loop or on threads, and says how each ended.

Everything here happens on the loop that called `Runner`. Results leave in batches through `finish`, which may be called from no
other place.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from minutebook.clock import Clock
from minutebook.worker import outcomes
from minutebook.worker.app import Task
from minutebook.worker.context import Context, Phase
from minutebook.worker.outcomes import Outcome, Verdict, failure_of, outcome_of
from minutebook.worker.run import Ended, Run, Stop, StopReason

SLICE_S: Final = 0.01
"""Other callbacks of the loop get their turn after so long a stretch of runs."""

Finish = Callable[[list[Ended]], None]
_Key = tuple[int, int]


class _Live:
    """A run that is under way. `stop` says why it is being stopped."""

    __slots__ = (
        "arguments",
        "context",
        "future",
        "run",
        "started",
        "started_at",
        "stop",
        "timeout_ms",
        "timer",
    )

    def __init__(self, run: Run, started: float, started_at: int, timeout_ms: int) -> None:
        self.run = run
        self.started = started
        self.started_at = started_at
        self.timeout_ms = timeout_ms
        self.stop: StopReason | None = None
        self.context: Context | None = None
        self.arguments: tuple[Any, ...] = ()
        self.future: asyncio.Task[None] | None = None
        self.timer: asyncio.TimerHandle | None = None


class Runner:
    """Runs granted attempts of `tasks`. At most `slots` threads; how many runs come in is the caller's business."""

    def __init__(self, tasks: Mapping[str, Task[Any, Any]], slots: int, clock: Clock, finish: Finish) -> None:
        self._tasks = tasks
        self._clock = clock
        self._finish = finish
        self._loop = asyncio.get_running_loop()
        self._threads = ThreadPoolExecutor(slots, thread_name_prefix="minutebook-task")
        self._phase = Phase()
        self._waiting: deque[Run] = deque()
        self._live: dict[_Key, _Live] = {}
        self._ends: list[Ended] = []
        self._is_scheduled = False
        self._is_flushing = False
        self._is_closed = False

    # -- orders

    def start(self, runs: Iterable[Run]) -> None:
        """Start `runs` soon, in their order."""
        self._waiting.extend(runs)
        if not self._is_scheduled:
            self._is_scheduled = True
            self._loop.call_soon(self._work)

    def stop(self, stops: Iterable[Stop]) -> None:
        """Stop runs that are waiting or under way; others are passed over."""
        wanted = dict(stops)
        for run in [run for run in self._waiting if run.key in wanted]:
            self._waiting.remove(run)
            self._tell(Ended(run, _stopped(wanted[run.key])))
        for key, reason in wanted.items():
            live = self._live.get(key)
            if live is not None:
                self._interrupt(live, reason)

    def leave(self) -> None:
        """Start nothing more; what waits, now or later, is handed back."""
        self._phase.is_draining = True
        self._hand_back_waiting()

    async def abort(self, patience_s: float) -> None:
        """Stop everything and hand it back; what does not stop within `patience_s` is left behind and counts as handed back."""
        self.leave()
        for live in list(self._live.values()):
            self._interrupt(live, StopReason.DRAIN)
        futures = [live.future for live in self._live.values() if live.future is not None]
        if futures:
            await asyncio.wait(futures, timeout=patience_s)
        for live in self._live.values():
            self._tell(Ended(live.run, Verdict.HANDED_BACK))
        self._flush()
        self._is_closed = True

    def close(self) -> bool:
        """Take no more results; whether a thread is still busy."""
        self._is_closed = True
        self._threads.shutdown(wait=False, cancel_futures=True)
        return any(self._is_on_thread(live) for live in self._live.values())

    # -- starting

    def _work(self) -> None:
        self._is_scheduled = False
        if self._phase.is_draining:
            self._hand_back_waiting()
        clock, waiting, tasks = self._clock, self._waiting, self._tasks
        started = began = clock.monotonic()
        wall_ms = clock.now() - began * 1_000
        while waiting and started - began < SLICE_S:
            run = waiting.popleft()
            task = tasks[run.task]
            started_at = int(wall_ms + started * 1_000)
            timeout_ms = min(run.timeout_ms, task.timeout_ms or run.timeout_ms)
            if started > run.start_by:
                self._tell(Ended(run, Verdict.HANDED_BACK))
            elif task.is_instant:
                outcome = self._call(run, task, started_at, timeout_ms)
                ended = clock.monotonic()
                run_ms = int((ended - started) * 1_000)
                if run_ms > timeout_ms:
                    outcome = outcomes.timed_out(timeout_ms)
                self._tell(Ended(run, outcome, started_at - run.due_at, run_ms))
                started = ended
            else:
                self._launch(_Live(run, started, started_at, timeout_ms), task)
                started = clock.monotonic()
        if waiting:
            self.start(())

    def _arguments(self, run: Run, task: Task[Any, Any], started_at: int, timeout_ms: int) -> tuple[Any, ...]:
        payload = task.read(run.payload)
        if not task.takes_context:
            return (payload,)
        return payload, Context(run, timeout_ms, started_at, self._phase)

    def _call(self, run: Run, task: Task[Any, Any], started_at: int, timeout_ms: int) -> Outcome:
        """Run a task that cannot suspend, here and now, in a context of its own."""
        try:
            arguments = self._arguments(run, task, started_at, timeout_ms)
        except Exception as error:  # whatever the payload's library raises, the payload is at fault
            return outcomes.bad_payload(error)
        try:
            context = contextvars.copy_context()
            if not task.is_coroutine:
                return outcome_of(context.run(task.function, *arguments))
            context.run(task.function(*arguments).send, None)
        except StopIteration as end:
            return Verdict.SUCCEEDED if end.value is None else outcome_of(end.value)
        except (Exception, SystemExit, asyncio.CancelledError) as error:  # a task's exception is its result
            return failure_of(error)
        raise AssertionError(f"{task.name} suspended, although it has no place for that")

    def _launch(self, live: _Live, task: Task[Any, Any]) -> None:
        try:
            live.arguments = self._arguments(live.run, task, live.started_at, live.timeout_ms)
        except Exception as error:  # whatever the payload's library raises, the payload is at fault
            self._tell(Ended(live.run, outcomes.bad_payload(error)))
            return
        live.context = live.arguments[1] if task.takes_context else None
        self._live[live.run.key] = live
        live.timer = self._loop.call_later(live.timeout_ms / 1_000, self._interrupt, live, StopReason.TIMEOUT)
        live.future = self._loop.create_task(self._attempt(live, task))

    async def _attempt(self, live: _Live, task: Task[Any, Any]) -> None:
        try:
            if task.is_coroutine:
                outcome = outcome_of(await task.function(*live.arguments))
            else:
                outcome = await self._on_thread(live, task)
            if live.stop is StopReason.TIMEOUT:
                outcome = outcomes.timed_out(live.timeout_ms)
        except asyncio.CancelledError as error:
            outcome = self._cancelled(live, error)
        except (Exception, SystemExit) as error:  # a task's exception is its result
            outcome = (
                outcomes.timed_out(live.timeout_ms) if live.stop is StopReason.TIMEOUT else failure_of(error)
            )
        self._over(live, outcome)

    async def _on_thread(self, live: _Live, task: Task[Any, Any]) -> Outcome:
        """Waits for the thread through cancellation: the slot is taken until the function returns."""
        context = contextvars.copy_context()
        return outcome_of(
            await self._loop.run_in_executor(self._threads, context.run, task.function, *live.arguments)
        )

    # -- stopping

    def _interrupt(self, live: _Live, reason: StopReason) -> None:
        if live.stop is not None:
            return
        live.stop = reason
        if live.context is not None:
            live.context.request_cancel()
        if not self._is_on_thread(live):
            assert live.future is not None
            live.future.cancel()
        elif reason is StopReason.TIMEOUT:
            self._tell_live(live, outcomes.timed_out(live.timeout_ms), frees_slot=False)

    def _is_on_thread(self, live: _Live) -> bool:
        return not self._tasks[live.run.task].is_coroutine

    def _cancelled(self, live: _Live, error: asyncio.CancelledError) -> Outcome:
        if live.stop is StopReason.TIMEOUT:
            return outcomes.timed_out(live.timeout_ms)
        if live.stop is not None:
            return _stopped(live.stop)
        current = asyncio.current_task()
        is_from_outside = current is not None and current.cancelling() > 0
        return Verdict.HANDED_BACK if is_from_outside else failure_of(error)

    # -- results

    def _over(self, live: _Live, outcome: Outcome) -> None:
        assert live.timer is not None
        live.timer.cancel()
        self._live.pop(live.run.key, None)
        self._tell_live(live, outcome, frees_slot=True)

    def _tell_live(self, live: _Live, outcome: Outcome, *, frees_slot: bool) -> None:
        run_ms = int((self._clock.monotonic() - live.started) * 1_000)
        self._tell(Ended(live.run, outcome, live.started_at - live.run.due_at, run_ms, frees_slot))

    def _tell(self, end: Ended) -> None:
        self._ends.append(end)
        if not self._is_flushing:
            self._is_flushing = True
            self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        self._is_flushing = False
        ends, self._ends = self._ends, []
        if ends and not self._is_closed:
            self._finish(ends)

    def _hand_back_waiting(self) -> None:
        while self._waiting:
            self._tell(Ended(self._waiting.popleft(), Verdict.HANDED_BACK))


def _stopped(reason: StopReason) -> Outcome:
    """Outcome of a run that obeyed. What is lost counts for nobody, whatever is said here."""
    if reason is StopReason.CANCELLED:
        return outcomes.Failure(outcomes.CANCELLED, "stopped on request")
    return Verdict.HANDED_BACK
