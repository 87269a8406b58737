"""Bulk operations whatever happens on the way: owners that are followed by others at any moment, frames that turn out
void, mail that is late or comes twice, executions that fail again, a cancel.
"""

from __future__ import annotations

import random
from collections import Counter

import pytest

from minutebook import ids
from minutebook.domain import book as state
from minutebook.domain import events as facts
from minutebook.domain import operation_steps
from minutebook.domain.view_operations import operation_of, operations_of
from minutebook.wire import topics
from minutebook.wire.frames import decode_frame
from tests.simulation.desk import Desk
from tests.simulation.desks import Desks, jobs
from tests.simulation.folds import folded, viewed

CYCLES_MAX = 3_000
STEPS = ("cycle",) * 6 + ("hand-over", "void", "repeat-mail", "late-mail")
WAITS_MS = (0, 1, 7, 90, 400, 2_500)


def is_open(desks: Desks) -> bool:
    """Whether any share or mail of an operation is left anywhere."""
    return any(
        next(iter(desk.book.shares.scan(b"")), None) or desk.inputs[topics.MAIL].waiting
        for desk in desks.desks
    )


def go_on(desks: Desks, chance: random.Random, step: str) -> None:
    """One step in one partition after another, in any order, with whatever may go wrong."""
    desks.wait(chance.choice(WAITS_MS))
    for desk in chance.sample(desks.desks, len(desks.desks)):
        mail = desk.inputs[topics.MAIL]
        late = []
        if step == "void":
            desk.void()
        elif step == "hand-over":
            desk.open()
        elif step == "repeat-mail":
            for record in list(mail.waiting):
                mail.add(record.value or b"", record.stamp)
        elif step == "late-mail":
            late = list(mail.waiting)
            mail.waiting.clear()
        events = desks.one(desk)
        mail.put_back(late)
        for event in events:
            if isinstance(event, facts.ExecutionsQueued):
                for name in event.executions:
                    desks.give_up(name)


def redriven_after_the_cancel(desk: Desk) -> list[str]:
    """What a partition redrove although it knew better."""
    knows, found = False, []
    for record in desk.records:
        for event in decode_frame(record.value).events:
            if isinstance(event, facts.OperationCopied):
                knows = event.fact.is_cancelled
            elif isinstance(event, facts.ExecutionRedriven) and knows:
                found.append(event.execution)
    return found


def check_pace(desks: Desks, rate_per_s: int) -> None:
    """In no stretch of the log's time has a partition done more than its share, made up for by a second at most."""
    share = rate_per_s / len(desks.desks)
    by_partition: dict[int, list[int]] = {}
    for partition, at, _ in desks.log(facts.ExecutionRedriven):
        by_partition.setdefault(partition, []).append(at)
    for times in by_partition.values():
        for first in range(len(times)):
            for last in range(first, len(times)):
                seconds = (times[last] - times[first]) / 1_000
                assert last - first + 1 <= share * (seconds + 1) + 1


@pytest.mark.parametrize("seed", range(40))
def test_each_that_is_meant_is_redriven_exactly_once(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(seed)
    monkeypatch.setattr(operation_steps, "LOOKED_AT_MAX", chance.choice((3, 400)))
    monkeypatch.setattr(operation_steps, "WAITING_MAX", chance.choice((2, 1_000)))
    desks = Desks(3)
    meant = desks.dead(*jobs(chance.randint(0, 12)), error_type="E")
    others = desks.dead(*jobs(5, "k"), error_type="Other")
    desks.cycle(1)
    rate_per_s = chance.choice((0, 2, 9, 200))
    desks.start(rate_per_s=rate_per_s, error_type="E")
    cancel_at = chance.choice((None, None, 1, 4, 9))
    for number in range(CYCLES_MAX):
        if number == cancel_at:
            desks.cancel()
        go_on(desks, chance, chance.choice(STEPS) if number < 40 else "cycle")
        if number > 9 and not is_open(desks):
            break
    (ended,) = desks.ended()
    found = Counter(desks.redriven())
    assert set(found) <= set(meant)
    assert not set(found) & set(others)
    assert set(found.values()) <= {1}
    assert ended.done == found.total()
    if not ended.is_cancelled:
        assert set(found) == set(meant)
        assert (ended.matched, ended.refused) == (len(meant), 0)
    for desk in desks.desks:
        assert redriven_after_the_cancel(desk) == []
        assert state.digest(folded(desk.records)) == state.digest(desk.rows)
    if rate_per_s:
        check_pace(desks, rate_per_s)


@pytest.mark.parametrize("seed", range(12))
def test_the_view_of_an_operation_says_what_its_partitions_did(seed: int) -> None:
    chance = random.Random(seed)
    desks = Desks(1)
    desks.dead(*jobs(chance.randint(0, 9)))
    desks.cycle(1)
    desks.start(rate_per_s=20)
    for _ in range(chance.randint(0, 30)):
        go_on(desks, chance, chance.choice(STEPS))
    view, _ = viewed(desks.desks[0].records)
    row = operation_of(view, "acme", "op")
    if row is None:
        return
    told = row.told.get(0)
    assert (row.ended_at >= 0) == bool(desks.ended())
    if told is not None:
        assert told.done <= len(desks.redriven())
        assert not told.is_finished or told.done == len(desks.redriven())
    assert [found.fact.operation for found in operations_of(view, "acme")] == ["op"]
    assert list(operations_of(view, "acm")) == []
    assert ids.operation_subject("op") == "operation:op"
