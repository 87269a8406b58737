"""Three owner processes form a group: who gets what, and what a restart and a kill move."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from confluent_kafka.admin import AdminClient

from minutebook.domain import events as facts
from minutebook.wire import topics
from tests.crash.checker import verdict
from tests.crash.process import Process
from tests.crash.stack import Stack, jobs_over

pytestmark = [pytest.mark.kafka, pytest.mark.slow]
NAMES: Final = ("o1", "o2", "o3")
PATIENT_S: Final = "25"
"""Longer than a restart takes on a busy machine."""


@pytest.fixture
def stack(broker: Any, tmp_path: Path) -> Iterator[Stack]:
    made = Stack(broker.bootstrap_servers, tmp_path)
    yield made
    made.close()


def start(stack: Stack, **settings: str) -> list[Process]:
    """Three owners, each serving something, all partitions served."""
    owners = [stack.owner(name, group="owners", is_kept=False, **settings) for name in NAMES]
    stack.until("all own", lambda _: set(served(stack).values()) == set(NAMES), 60)
    stack.await_ready(*owners)
    return owners


def served(stack: Stack) -> dict[int, str]:
    """Instance that took each partition last."""
    taken = stack.log.of(facts.OwnershipTaken)
    return {fact.partition: fact.event.owner.partition("/")[0] for fact in taken}


def epochs(stack: Stack) -> dict[int, int]:
    return {fact.partition: fact.event.epoch for fact in stack.log.of(facts.OwnershipTaken)}


def assigned(stack: Stack) -> list[dict[str, set[int]]]:
    """For each member, by the broker's word: topic -> partitions."""
    admin = AdminClient(stack.kafka.confluent())
    group = f"{stack.prefix}owners"
    description = admin.describe_consumer_groups([group])[group].result()
    found: list[dict[str, set[int]]] = []
    for member in description.members:
        by_topic: dict[str, set[int]] = defaultdict(set)
        for place in member.assignment.topic_partitions:
            by_topic[place.topic].add(place.partition)
        found.append(by_topic)
    return found


def test_inputs_of_a_partition_are_assigned_to_one_process(stack: Stack) -> None:
    owners = start(stack)

    members = assigned(stack)
    assert len(members) == len(NAMES)
    for member in members:
        shares = [member[stack.kafka.topic(topic)] for topic in topics.INPUTS]
        assert shares[0] == shares[1] == shares[2] != set()
    everything = sorted(p for member in members for p in member[stack.kafka.topic(topics.COMMANDS)])
    assert everything == list(range(stack.partitions))
    assert not any(owner.said("partition_assigned_apart") for owner in owners)


@pytest.mark.parametrize("is_killed", [True, False], ids=["killed", "stopped"])
def test_restart_with_the_same_name_moves_nothing(stack: Stack, is_killed: bool) -> None:
    first, *others = start(stack, session_timeout_s=PATIENT_S)
    before, epochs_before = served(stack), epochs(stack)
    if is_killed:
        first.kill()
    else:
        first.end()
    first.start()

    own = {partition for partition, name in before.items() if name == "o1"}
    stack.until("back", lambda _: all(epochs(stack)[p] > epochs_before[p] for p in own))
    stack.await_ready(first, *others)
    assert served(stack) == before
    unchanged = {p: epoch for p, epoch in epochs(stack).items() if p not in own}
    assert unchanged == {p: epoch for p, epoch in epochs_before.items() if p not in own}


def test_killed_owner_is_replaced_by_the_others(stack: Stack) -> None:
    """Within the session timeout and what a take-over takes; jobs go on meanwhile."""
    first, *others = start(stack)
    worker = stack.worker("w1")
    stack.await_ready(worker)
    stack.submit(jobs_over(40, 3))
    stack.until("some ran", lambda _: stack.witness())
    first.kill()

    stack.until("replaced", lambda _: set(served(stack).values()) == {"o2", "o3"})
    stack.await_done()
    stack.await_ready(*others)
    assert verdict(stack) == []
