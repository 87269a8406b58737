"""The broker is killed under light load and comes back; everything goes on by itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from minutebook.embedded import Broker
from tests.crash.checker import verdict
from tests.crash.stack import Stack, jobs_over

pytestmark = [pytest.mark.kafka, pytest.mark.slow]


def test_broker_killed_and_restarted_loses_nothing(tmp_path: Path) -> None:
    """Owners that cannot know the outcome of an append leave and are started again, as in every installation."""
    with Broker(tmp_path / "kafka") as broker:
        stack = Stack(broker.bootstrap_servers, tmp_path)
        try:
            owner, worker = stack.owner("o1", is_kept=True), stack.worker("w1", is_kept=True)
            stack.await_ready(owner, worker)
            stack.submit(jobs_over(100, 8))
            stack.until("some ran", lambda _: len(stack.witness()) > 20)
            broker.kill()
            broker.start()
            stack.submit(jobs_over(30, 2))
            stack.await_done()
            assert verdict(stack) == []
            assert worker.exits == []
        finally:
            stack.close()
