"""Both reference consumers of open queues against a real owner on Kafka: what the log says is what they ran."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from minutebook.domain import events as facts
from minutebook.log import admin
from minutebook.wire import topics
from tests.crash.open_queues import (
    QUEUE,
    TOPIC_SETTINGS,
    consumer,
    declare,
    due_records,
    granted,
    open_verdict,
)
from tests.crash.process import Process
from tests.crash.stack import TENANT, Stack, job

pytestmark = [pytest.mark.kafka, pytest.mark.slow]


@pytest.fixture
def stack(broker: Any, tmp_path: Path) -> Iterator[Stack]:
    made = Stack(broker.bootstrap_servers, tmp_path)
    yield made
    made.close()


@pytest.fixture
def owner(stack: Stack) -> Process:
    made = stack.owner("o1")
    stack.await_ready(made)
    return made


def held_back(owner: Process) -> set[str]:
    """Open queues of which the owner says that their due records do not go out."""
    with urllib.request.urlopen(f"http://127.0.0.1:{owner.health_port}/readyz") as answer:
        partitions = json.load(answer)["partitions"]
    return {queue for partition in partitions for queue in partition["due_records_held_back"]}


def test_both_consumers_share_an_open_queue_and_sdk_workers_leave_it(stack: Stack, owner: Process) -> None:
    declare(stack)
    consumer(stack, "c1", "share")
    consumer(stack, "c2", "classic")
    worker = stack.worker("w1")
    stack.await_ready(worker)
    stack.submit([job(queue=QUEUE, delay_ms=20 * number) for number in range(100)])
    stack.submit([job(delay_ms=100 * number) for number in range(20)])
    stack.await_done(110)
    assert open_verdict(stack) == []
    assert len({record.execution for record in due_records(stack)}) == 100
    names = {event.session: event.worker for event in stack.log.events(facts.SessionStarted)}
    ran: dict[str, int] = {}
    for _, _, session in granted(stack.log):
        ran[names[session]] = ran.get(names[session], 0) + 1
    assert ran["w1"] == 20
    assert sum(ran.values()) == 120


def test_a_due_topic_that_is_missing_holds_up_nothing_else(stack: Stack, owner: Process) -> None:
    declare(stack, has_topic=False)
    stack.worker("w1")
    stack.submit([job(queue=QUEUE, job_id="waits")])
    stack.until("it is held back", lambda _: QUEUE in held_back(owner))
    stack.submit([job(job_id="plain")])
    stack.until(
        "the others run",
        lambda log: any(
            "plain" in name for one in log.events(facts.AttemptsSucceeded) for name in one.executions
        ),
    )
    assert owner.is_ready()
    assert admin.create_due(stack.kafka, TOPIC_SETTINGS, QUEUE)
    consumer(stack, "c1", "classic")
    stack.await_done(110)
    stack.until("nothing is held back", lambda _: not held_back(owner))
    assert open_verdict(stack) == []
    assert {record.tenant for record in due_records(stack)} == {TENANT}
    assert topics.due_topic(QUEUE).partitions == 1
