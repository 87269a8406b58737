"""The user's side: starts granted runs on the event loop or on threads, and says how each ended.

Everything here happens on the loop on which the `Runner` was made; functions on threads come back to it. Results leave in
batches, through `finish`.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from minutebook import tracing
from minutebook.clock import Clock
from minutebook.tracing import Made
from minutebook.worker import outcomes, spans
from minutebook.worker.app import Task
from minutebook.worker.context import Context, Phase
from minutebook.worker.outcomes import Outcome, Verdict, failure_of, outcome_of
from minutebook.worker.progress import Note
from minutebook.worker.run import Ended, Run, Stop, StopReason

SLICE_S: Final = 0.01
"""Other callbacks of the loop get their turn after so long a stretch of runs."""

Finish = Callable[[list[Ended]], None]
_Key = tuple[int, int]


class _Live:
    """A run that is under way. `stop` says why it is being stopped."""

    __slots__ = ("context", "future", "run", "span", "started", "stop", "task", "timeout_ms", "timer")

    def __init__(
        self,
        run: Run,
        task: Task[Any, Any],
        started: float,
        context: Context | None,
        timeout_ms: int,
        span: Made | None,
    ) -> None:
        self.run = run
        self.span = span
        self.task = task
        self.started = started
        self.context = context
        self.timeout_ms = timeout_ms
        self.stop: StopReason | None = None
        self.future: asyncio.Task[None] | None = None
        self.timer: asyncio.TimerHandle | None = None


class Runner:
    """Runs granted attempts of `tasks`; `note` hears how far they are. At most `slots` threads; how many runs come in is
    the caller's business.
    """

    def __init__(
        self, tasks: Mapping[str, Task[Any, Any]], slots: int, clock: Clock, finish: Finish, note: Note
    ) -> None:
        self._note = note
        self._tasks = tasks
        self._clock = clock
        self._finish = finish
        self._loop = asyncio.get_running_loop()
        self._threads = ThreadPoolExecutor(slots, thread_name_prefix="minutebook-task")
        self._phase = Phase()
        self._context_vars = contextvars.copy_context()
        self._waiting: deque[Run] = deque()
        self._live: dict[_Key, _Live] = {}
        self._ends: list[Ended] = []
        self._is_scheduled = False
        self._is_flushing = False
        self._is_closed = False
        self._wall_ms = 0.0
        self._has_spans = False
        """Whether spans go anywhere, as of the slice under way: to ask costs as much as a short run."""

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
            spans.end(live.span, Verdict.HANDED_BACK)
            self._tell(Ended(live.run, Verdict.HANDED_BACK))
        self._flush()
        self._is_closed = True

    def close(self) -> bool:
        """Take no more results; whether a thread is still busy."""
        self._is_closed = True
        self._threads.shutdown(wait=False, cancel_futures=True)
        return any(not live.task.is_coroutine for live in self._live.values())

    # -- starting

    def _work(self) -> None:
        """Start what waits, for one slice of time. The hot path of short tasks: one clock reading a run."""
        self._is_scheduled = False
        if self._phase.is_draining:
            self._hand_back_waiting()
        waiting, tasks, ends, monotonic = self._waiting, self._tasks, self._ends, self._clock.monotonic
        started = monotonic()
        self._wall_ms = self._clock.now() - started * 1_000
        self._has_spans = tracing.is_on()
        slice_ends = started + SLICE_S
        while waiting and started < slice_ends:
            run = waiting.popleft()
            task = tasks[run.task]
            if started > run.start_by or self._is_past_deadline(run, started):
                ends.append(Ended(run, Verdict.HANDED_BACK))
            elif task.is_instant:
                outcome = self._call(run, task, started)
                ended = monotonic()
                run_ms = int((ended - started) * 1_000)
                if run_ms and run_ms > (timeout_ms := self._timeout_ms(run, task, started)):
                    outcome = outcomes.timed_out(timeout_ms)
                ends.append(Ended(run, outcome, int(self._wall_ms + started * 1_000) - run.due_at, run_ms))
                started = ended
            else:
                self._launch(run, task, started)
                started = monotonic()
        self._flush()
        if waiting:
            self.start(())

    def _call(self, run: Run, task: Task[Any, Any], started: float) -> Outcome:
        """Run a task that cannot suspend, here and now."""
        span = self._span(run)
        outcome = self._outcome(run, task, started, span)
        if span is not None:
            spans.end(span, outcome)
        return outcome

    def _span(self, run: Run) -> Made | None:
        return spans.span_of(run) if self._has_spans or run.traceparent else None

    def _outcome(self, run: Run, task: Task[Any, Any], started: float, span: Made | None) -> Outcome:
        try:
            payload = task.read(run.payload)
        except Exception as error:  # whatever the payload's library raises, the payload is at fault
            return outcomes.bad_payload(error)
        arguments = (payload, self._context(run, task, started)) if task.takes_context else (payload,)
        context = self._variables(span)
        try:
            return (
                _step(context, task.function, arguments)
                if task.is_coroutine
                else _plain(context, task.function, arguments)
            )
        except (Exception, SystemExit, asyncio.CancelledError) as error:  # a task's exception is its result
            return failure_of(error)

    def _variables(self, span: Made | None) -> contextvars.Context:
        """What a task sees: the variables that the worker started with, and its span as the current one."""
        copy = self._context_vars.copy()
        return copy if span is None else span.enter(copy)

    def _context(self, run: Run, task: Task[Any, Any], started: float) -> Context:
        timeout_ms = self._timeout_ms(run, task, started)
        return Context(run, timeout_ms, int(self._wall_ms + started * 1_000), self._phase, self._note)

    def _timeout_ms(self, run: Run, task: Task[Any, Any], started: float) -> int:
        """The shortest of the job's and the task's timeout, and what is left until the deadline."""
        timeout_ms = run.timeout_ms if task.timeout_ms is None else min(run.timeout_ms, task.timeout_ms)
        if run.deadline_at < 0:
            return timeout_ms
        return max(0, min(timeout_ms, run.deadline_at - int(self._wall_ms + started * 1_000)))

    def _is_past_deadline(self, run: Run, started: float) -> bool:
        return 0 <= run.deadline_at <= self._wall_ms + started * 1_000

    def _launch(self, run: Run, task: Task[Any, Any], started: float) -> None:
        try:
            payload = task.read(run.payload)
        except Exception as error:  # whatever the payload's library raises, the payload is at fault
            self._tell(Ended(run, outcomes.bad_payload(error)))
            return
        context = self._context(run, task, started) if task.takes_context else None
        span = self._span(run)
        arguments = (payload,) if context is None else (payload, context)
        live = _Live(run, task, started, context, self._timeout_ms(run, task, started), span)
        self._live[run.key] = live
        live.timer = self._loop.call_later(live.timeout_ms / 1_000, self._interrupt, live, StopReason.TIMEOUT)
        live.future = self._loop.create_task(self._attempt(live, arguments), context=self._variables(span))

    async def _attempt(self, live: _Live, arguments: tuple[Any, ...]) -> None:
        function = live.task.function
        try:
            if live.task.is_coroutine:
                outcome = outcome_of(await function(*arguments))
            else:
                outcome = await self._loop.run_in_executor(
                    self._threads, _plain, self._variables(live.span), function, arguments
                )
            if live.stop is StopReason.TIMEOUT:
                outcome = outcomes.timed_out(live.timeout_ms)
        except asyncio.CancelledError as error:
            outcome = _cancelled(live, error)
        except (Exception, SystemExit) as error:  # a task's exception is its result
            outcome = (
                outcomes.timed_out(live.timeout_ms) if live.stop is StopReason.TIMEOUT else failure_of(error)
            )
        self._over(live, outcome)

    # -- stopping

    def _interrupt(self, live: _Live, reason: StopReason) -> None:
        if live.stop is not None:
            return
        live.stop = reason
        if live.context is not None:
            live.context.request_cancel()
        if live.task.is_coroutine:
            assert live.future is not None
            live.future.cancel()
        elif reason is StopReason.TIMEOUT:
            self._tell_live(live, outcomes.timed_out(live.timeout_ms), frees_slot=False)

    # -- results

    def _over(self, live: _Live, outcome: Outcome) -> None:
        assert live.timer is not None
        live.timer.cancel()
        spans.end(live.span, outcome)
        self._live.pop(live.run.key, None)
        self._tell_live(live, outcome, frees_slot=True)

    def _tell_live(self, live: _Live, outcome: Outcome, *, frees_slot: bool) -> None:
        run_ms = int((self._clock.monotonic() - live.started) * 1_000)
        start_delay_ms = int(self._wall_ms + live.started * 1_000) - live.run.due_at
        self._tell(Ended(live.run, outcome, start_delay_ms, run_ms, frees_slot))

    def _tell(self, end: Ended) -> None:
        self._ends.append(end)
        if not self._is_flushing:
            self._is_flushing = True
            self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        self._is_flushing = False
        if self._ends and not self._is_closed:
            ends = self._ends.copy()
            self._ends.clear()
            self._finish(ends)

    def _hand_back_waiting(self) -> None:
        while self._waiting:
            self._tell(Ended(self._waiting.popleft(), Verdict.HANDED_BACK))


def _step(context: contextvars.Context, function: Callable[..., Any], arguments: tuple[Any, ...]) -> Outcome:
    """Run a coroutine function that has no place to suspend, in a context of its own."""
    try:
        context.run(function(*arguments).send, None)
    except StopIteration as end:
        return Verdict.SUCCEEDED if end.value is None else outcome_of(end.value)
    raise AssertionError("suspended, although it has no place for that")


def _plain(context: contextvars.Context, function: Callable[..., Any], arguments: tuple[Any, ...]) -> Outcome:
    """Run a function in a context of its own, on the present thread. StopIteration cannot pass through a future."""
    try:
        value = context.run(function, *arguments)
    except StopIteration as error:
        raise RuntimeError("the task raised StopIteration") from error
    if inspect.iscoroutine(value):
        value.close()
        raise TypeError("the task returned a coroutine: decorate a coroutine function, or await it")
    return outcome_of(value)


def _cancelled(live: _Live, error: asyncio.CancelledError) -> Outcome:
    if live.stop is StopReason.TIMEOUT:
        return outcomes.timed_out(live.timeout_ms)
    if live.stop is not None:
        return _stopped(live.stop)
    current = asyncio.current_task()
    is_from_outside = current is not None and current.cancelling() > 0
    return Verdict.HANDED_BACK if is_from_outside else failure_of(error)


def _stopped(reason: StopReason) -> Outcome:
    """Outcome of a run that obeyed. What is lost counts for nobody, whatever is said here."""
    if reason is StopReason.CANCELLED:
        return outcomes.Failure(outcomes.CANCELLED, "stopped on request")
    return Verdict.HANDED_BACK
