"""Alerts on their way: order and retries of one target, none held up by another, bounds, what may be committed."""

from __future__ import annotations

import asyncio
import json
from collections import Counter, defaultdict
from collections.abc import AsyncIterator
from typing import Any

import pytest
from structlog.testing import capture_logs

from api.notifier import deliveries
from api.notifier.deliveries import AGE_MAX_MS, AT_ONCE_MAX, PATIENCE_MS, RETRY_S, Deliveries
from api.notifier.post import Outcome
from api.notifier.reader import read
from api.notifier.settings import NotifySettings
from api.notifier.signature import read_secret, signed_headers
from api.notifier.targets import Targets
from minutebook.clock import ManualClock
from minutebook.domain.notify import Target
from minutebook.domain.records import Tick
from minutebook.wire import codec
from tests.unit.test_notifier_settings import OTHER, SECRET, alert

A, B = "https://a.example/", "https://b.example/"
BROKEN = Outcome("status 500")
SETTINGS = NotifySettings(
    targets={"acme": {"url": A, "secret": SECRET}, "other": {"url": A, "secret": OTHER}}
)  # type: ignore[dict-item]


class Targeted:
    """Targets that answer as told: an outcome for each post, or one that never comes."""

    def __init__(self) -> None:
        self.outcomes: dict[str, list[Outcome]] = defaultdict(list)
        self.hanging: set[str] = set()
        self.posts: list[tuple[str, dict[str, str], bytes]] = []
        self.under_way = 0

    async def post(self, target: Target, headers: dict[str, str], body: bytes) -> Outcome:
        self.posts.append((target.url, headers, body))
        if target.url in self.hanging:
            self.under_way += 1
            await asyncio.Event().wait()
        return self.outcomes[target.url].pop(0) if self.outcomes[target.url] else Outcome()

    def ids(self, url: str) -> list[str]:
        return [headers["webhook-id"] for to, headers, _ in self.posts if to == url]


class Bench:
    """Deliveries on a clock of their own: `sleep` lets its time pass at once, and notes it."""

    def __init__(self) -> None:
        self.clock = ManualClock(1_767_225_600_000)
        self.targets = Targeted()
        self.tally: Counter[str] = Counter()
        self.slept: list[float] = []
        self.made = Deliveries(Targets(SETTINGS), self.targets, self.clock, self.tally, self.sleep)
        self.offset = 0

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.clock.advance(int(seconds * 1_000))
        await asyncio.sleep(0)

    def take(self, name: str, notify: str = "", tenant: str = "acme", **more: Any) -> None:
        self.made.take(self.offset, alert(tenant, notify, id=name, **({"at": self.clock.now()} | more)))
        self.offset += 1

    async def settle(self, rounds: int = 2_000) -> None:
        """Until nothing moves any more."""
        for _ in range(rounds):
            await asyncio.sleep(0)


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    made = Bench()
    yield made
    await made.made.close()


async def test_alert_is_posted_once_signed_and_settled(bench: Bench) -> None:
    bench.take("x", B)
    assert bench.made.settled_through() == 0, "not before it is delivered"
    await bench.settle()
    ((url, headers, body),) = bench.targets.posts
    assert url == B
    assert headers == signed_headers(read_secret(SECRET), "x", bench.clock.now() // 1_000, body)
    assert json.loads(body) == {
        "type": "alert.execution_dead",
        "timestamp": "2026-01-01T00:00:00.000Z",
        "data": {
            "id": "x",
            "kind": "execution_dead",
            "at": "2026-01-01T00:00:00.000Z",
            "job_id": "a",
            "execution_id": "a:1",
            "task": "t",
            "queue": "default",
            "text": "it was given up",
            "left_out": 0,
            "details": {},
        },
    }
    assert (bench.made.settled_through(), bench.made.waiting()) == (1, 0)
    assert bench.tally == {"delivered": 1}


async def test_each_tenant_signs_with_its_own_key(bench: Bench) -> None:
    bench.take("x", tenant="acme")
    bench.take("x", tenant="other")
    await bench.settle()
    assert len({headers["webhook-signature"] for _, headers, _ in bench.targets.posts}) == 2


async def test_failed_post_is_repeated_with_growing_waits_and_the_same_id(bench: Bench) -> None:
    bench.targets.outcomes[A] = [BROKEN] * 3
    bench.take("x")
    bench.take("y")
    await bench.settle()
    assert bench.slept == list(RETRY_S[:3])
    assert bench.targets.ids(A) == ["x", "x", "x", "x", "y"], "in order, one at a time"
    stamps = [int(headers["webhook-timestamp"]) for _, headers, _ in bench.targets.posts]
    assert [later - stamps[0] for later in stamps[1:4]] == [5, 20, 50], "each is signed anew"
    assert bench.tally == {"delivered": 2, "retried": 3}


async def test_alert_is_given_up_after_its_last_wait_with_a_line_in_the_log(bench: Bench) -> None:
    bench.targets.outcomes[A] = [BROKEN] * (len(RETRY_S) + 1)
    with capture_logs() as lines:
        bench.take("x")
        await bench.settle()
    assert bench.slept == list(RETRY_S)
    assert sum(RETRY_S) * 1_000 < PATIENCE_MS
    (line,) = lines
    assert (line["event"], line["alert"], line["reason"]) == ("alert_not_delivered", "x", "status 500")
    assert A not in str(line), "a URL may hold a secret"
    assert bench.made.settled_through() == 1
    assert bench.tally == {"given_up": 1, "retried": len(RETRY_S)}


async def test_refusal_that_is_final_is_not_repeated(bench: Bench) -> None:
    bench.targets.outcomes[A] = [Outcome("status 410", is_final=True)]
    bench.take("x")
    bench.take("y")
    await bench.settle()
    assert bench.targets.ids(A) == ["x", "y"]
    assert (bench.slept, bench.tally) == ([], {"given_up": 1, "delivered": 1})


async def test_what_waited_long_behind_others_is_posted_once(bench: Bench) -> None:
    bench.targets.outcomes[A] = [BROKEN] * 100
    for name in "xyz":
        bench.take(name)
    await bench.settle()
    tries = Counter(bench.targets.ids(A))
    assert tries["x"] == len(RETRY_S) + 1
    assert tries["z"] == 1
    assert bench.made.settled_through() == 3


async def test_broken_target_holds_up_no_other_and_keeps_the_position(bench: Bench) -> None:
    bench.targets.hanging = {A}
    bench.take("1", B)
    bench.take("2", A)
    for number in range(3, 20):
        bench.take(str(number), B)
    await bench.settle()
    assert bench.targets.ids(B) == ["1", *map(str, range(3, 20))]
    assert bench.made.settled_through() == 1, "the one that hangs is delivered again by whoever comes next"
    assert bench.made.waiting() == 1


async def test_slow_targets_of_one_tenant_take_nothing_from_another(bench: Bench) -> None:
    slow = [f"https://s{number}.example/" for number in range(AT_ONCE_MAX + 3)]
    bench.targets.hanging = set(slow)
    for url in slow:
        bench.take(url, url)
    bench.take("x", tenant="other")
    await bench.settle()
    assert bench.targets.under_way == AT_ONCE_MAX
    assert bench.targets.ids(A) == ["x"]


async def test_target_that_is_far_behind_loses_its_oldest(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deliveries, "WAITING_MAX", 3)
    bench.targets.hanging = {A}
    with capture_logs() as lines:
        for name in "abcde":
            bench.take(name)
        await bench.settle()
    assert [(line["alert"], line["reason"]) for line in lines] == [
        ("b", "its target is too far behind"),
        ("c", "its target is too far behind"),
    ]
    assert (bench.made.waiting(), bench.tally) == (3, {"given_up": 2})


async def test_tenant_with_too_many_targets_behind_loses_what_goes_to_more(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deliveries, "LANES_MAX", 2)
    bench.targets.hanging = {A, B}
    bench.take("a", A)
    bench.take("b", B)
    bench.take("c", "https://c.example/")
    bench.take("d", tenant="other", notify="https://d.example/")
    await bench.settle()
    assert bench.tally == {"given_up": 1, "delivered": 1}
    assert bench.targets.ids("https://d.example/") == ["d"]


async def test_nobodys_and_old_and_unreadable_ones_are_passed(bench: Bench) -> None:
    bench.take("nobody", tenant="third")
    bench.take("old", at=bench.clock.now() - AGE_MAX_MS - 1)
    bench.take("inside", "https://10.0.0.1/")
    bench.made.take(bench.offset, read(b"no alert"))
    bench.made.take(bench.offset + 1, read(codec.encode(Tick("o", 1))))
    assert bench.made.settled_through() == bench.offset + 2
    assert bench.targets.posts == []
    assert bench.tally == {"nobody": 1, "given_up": 2, "unreadable": 2}


async def test_unknown_task_of_several_partitions_is_told_once_an_hour(bench: Bench) -> None:
    def unknown(name: str, task: str = "t", after_ms: int = 0) -> None:
        bench.take(
            name, kind="task_unknown", job_id="", execution="", task=task, at=bench.clock.now() + after_ms
        )

    unknown("p0")
    unknown("p1", after_ms=20_000)
    unknown("other task", task="u")
    unknown("p0")  # sent again after a crash: the receiver knows its id
    unknown("p1 again", after_ms=3_600_000)
    bench.take("dead")
    bench.take("dead too")
    await bench.settle()
    assert bench.targets.ids(A) == ["p0", "other task", "p0", "p1 again", "dead", "dead too"]
    assert bench.tally["repeated"] == 1


async def test_what_is_let_go_of_is_stopped(bench: Bench) -> None:
    bench.targets.hanging = {A}
    bench.take("x")
    await bench.settle()
    await bench.made.close()
    assert bench.made.waiting() == 0
    assert not [task for task in asyncio.all_tasks() if task.get_name().startswith("alerts of")]


async def test_target_is_used_again_after_it_was_empty(bench: Bench) -> None:
    for name in "xy":
        bench.take(name)
        await bench.settle()
    assert bench.targets.ids(A) == ["x", "y"]


def test_alert_is_read_from_its_record() -> None:
    assert read(codec.encode(alert())) == alert()
    assert read(None) is None
