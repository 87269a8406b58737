"""An execution that a test brings to its end by hand, right or wrong."""

from __future__ import annotations

from typing import Any

from minutebook.domain import events as facts
from minutebook.domain.commands import SubmitJob
from tests.crash.ledger import Ledger
from tests.crash.raw_worker import RawWorker, succeeded
from tests.crash.stack import TENANT, Stack, home_of, job, now_ms


class Case:
    """A job of a task of its own, due now, and who may run it."""

    def __init__(self, stack: Stack) -> None:
        at = now_ms()
        self.command: SubmitJob = job(run_at=at)
        self.task = f"only.{self.command.job_id}"
        self.command = job(run_at=at, job_id=self.command.job_id, task=self.task)
        self.execution = f"{self.command.job_id}:{at}"
        self.partition = home_of(self.command)
        self.worker = RawWorker(stack, self.task)
        self._stack = stack
        stack.send(self.command)

    def running(self) -> int:
        """Token, once it is granted to the worker and held."""
        return self.worker.take(self.partition, self.execution)

    def report(self, **parts: Any) -> None:
        self.worker.report(self.partition, **parts)

    def outcome(self) -> str:
        return Ledger(self._stack.log).outcome((TENANT, self.execution))

    def refusals(self) -> list[facts.ReportRefused]:
        return [e for e in self._stack.log.events(facts.ReportRefused) if e.execution == self.execution]

    def await_refusals(self, count: int = 1) -> list[facts.ReportRefused]:
        self._stack.until("refused", lambda _: len(self.refusals()) >= count)
        return self.refusals()

    def finish(self, token: int | None = None) -> None:
        """Bring it to a good end, which shows that all before has changed nothing."""
        if token is None:
            token = self.running()
        self.report(last_token=token, succeeded=succeeded(self.execution, token))
        self._stack.until("succeeded", lambda _: self.outcome() == "succeeded")
