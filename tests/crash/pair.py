"""Two workers of one installation: whoever takes the execution of a round falls, and the other one runs it.

Who is there, and what is held, is read from `worker-reports`.
"""

from __future__ import annotations

import signal
from collections.abc import Callable
from typing import Final

from minutebook import ids
from minutebook.domain import events as facts
from minutebook.domain.records import Report
from minutebook.errors import DecodeError
from minutebook.wire import codec, topics
from tests.crash.joblog import Tail
from tests.crash.process import Process
from tests.crash.raw_worker import grants_of
from tests.crash.stack import TENANT, Sighting, Stack, job, jobs_over, now_ms
from tests.crash.tasks import mark_of

OTHERS: Final = 8
"""Further jobs of a round, due over a second: both workers are busy while one falls."""


class Reports:
    """`worker-reports`, followed: the last pulse that offered anything, and the tokens that were held."""

    def __init__(self, stack: Stack) -> None:
        self.held: set[tuple[int, int]] = set()
        self._partitions = stack.partitions
        self._offered_at: dict[tuple[str, int], int] = {}
        self._names: dict[str, str] = {}
        self._tail = Tail(stack.kafka, topics.REPORTS, stack.partitions)

    def look(self) -> None:
        """Read what has come."""
        for partition, record in self._tail.read():
            try:
                report = codec.decode(record.value)
            except DecodeError:
                continue
            if isinstance(report, Report):
                self._take(partition, record.stamp, report)

    def _take(self, partition: int, stamp: int, report: Report) -> None:
        worker = ids.worker_of(report.session)
        if report.full is not None:
            self._names[worker] = report.full.worker
            self.held.update((partition, token) for token in report.full.held)
        if report.pulse is not None and report.pulse.offer > 0:
            self._offered_at[self._names.get(worker, worker), partition] = stamp

    def has_offered(self, name: str, since: int) -> bool:
        """Whether worker `name` has offered slots to every partition since a moment, ms."""
        return all(
            self._offered_at.get((name, partition), -1) >= since for partition in range(self._partitions)
        )

    def close(self) -> None:
        self._tail.close()


class Pair:
    """Two workers under names of their own. `since` says from when on the present life of each counts, ms."""

    def __init__(self, stack: Stack) -> None:
        self._stack = stack
        self._workers = {name: self._start(name) for name in ("w1", "w2")}
        self._since = dict.fromkeys(self._workers, 0)
        self._reports = Reports(stack)

    def _start(self, name: str) -> Process:
        return self._stack.worker(name, ("-m", "tests.crash.dying_worker"))

    def close(self) -> None:
        self._reports.close()

    # -- a round

    def submit(self, name: str, task: str, payload: bytes = b"null") -> str:
        """Once both workers offer: a job `name` due at once, and others beside it. Its execution."""
        self._until("both workers offer", self._both_offer)
        command = job(job_id=name, task=task, payload=payload, run_at=now_ms() + 200)
        self._stack.submit([command, *jobs_over(OTHERS, 1)])
        return f"{name}:{command.run_at}"

    def acknowledged(self, execution: str) -> Process:
        """The worker that runs an execution, once it has said so to its owner."""
        self._until(f"{execution} acknowledged", lambda: self._is_held(execution))
        _, session = grants_of(self._stack.log, execution)[-1]
        started = self._stack.log.events(facts.SessionStarted)
        return self._workers[next(one.worker for one in started if one.session == session)]

    def fallen(self) -> Process:
        """The worker that has killed itself."""
        self._until("one dies", lambda: self._find(lambda process: not process.is_running))
        found = self._find(lambda process: not process.is_running)
        assert found is not None
        assert found.wait() == -signal.SIGKILL
        return found

    def frozen(self) -> Process:
        """The worker that has stopped itself, or was stopped."""
        self._until("one is frozen", lambda: self._find(lambda process: process.is_frozen))
        found = self._find(lambda process: process.is_frozen)
        assert found is not None
        return found

    def revive(self, process: Process) -> None:
        """Start the one that was killed, or wake the one that sleeps."""
        self._since[process.name] = now_ms()
        if process.is_running:
            process.thaw()
        else:
            process.start()

    def await_success(self, execution: str) -> None:
        """Until the log says that somebody has done it."""
        self._until(f"{execution} done", lambda: self._is_done(execution))

    def await_refusal(self, execution: str) -> None:
        """Until the log says that a late result of it was refused."""
        self._until(f"a result of {execution} refused", lambda: refusals(self._stack, execution))

    def restarted_s(self, execution: str, fell_at: float) -> float:
        """From the fall, ms, to the next start of the execution."""
        starts = (one.at for one in starts_of(self._stack, execution) if one.at > fell_at)
        return (min(starts) - fell_at) / 1000

    def fell_at(self, execution: str) -> float:
        """When a process fell over the execution by itself, ms."""
        return float(mark_of(self._stack.witness_dir, execution).read_text())

    # -- inside

    def _both_offer(self) -> bool:
        return all(self._reports.has_offered(name, since) for name, since in self._since.items())

    def _find(self, condition: Callable[[Process], bool]) -> Process | None:
        return next((process for process in self._workers.values() if condition(process)), None)

    def _is_held(self, execution: str) -> bool:
        home = topics.partition_of(ids.job_key(TENANT, ids.job_of(execution)), self._stack.partitions)
        grants = grants_of(self._stack.log, execution)
        return bool(grants) and (home, grants[-1][0]) in self._reports.held

    def _is_done(self, execution: str) -> bool:
        return any(execution in one.executions for one in self._stack.log.events(facts.AttemptsSucceeded))

    def _until(self, what: str, condition: Callable[[], object]) -> None:
        def holds(_: object) -> object:
            self._reports.look()
            return condition()

        self._stack.until(what, holds)


def starts_of(stack: Stack, execution: str) -> list[Sighting]:
    """Starts of an execution, as the handlers saw them."""
    return [one for one in stack.witness() if (one.moment, one.execution) == ("start", execution)]


def refusals(stack: Stack, execution: str = "") -> int:
    """Late results that the log says were refused: of one execution, or of all."""
    found = stack.log.events(facts.ReportRefused)
    return sum(one.kind == "result" and execution in (one.execution, "") for one in found)
