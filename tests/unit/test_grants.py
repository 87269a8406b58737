"""Who gets what: priority, then tenants in turn, then time; the most free session among those that can."""

from __future__ import annotations

from collections import deque
from itertools import islice

from minutebook.domain.grants import Grant, Plan, Takers
from minutebook.domain.keys import Lane, queued_row
from minutebook.domain.offers import Session, hear
from minutebook.domain.records import FullPulse, Pulse, QueueOffer, Report

NOW = 100_000


class Front:
    """A lane's head over a list of rows."""

    def __init__(self, rows: list[bytes]) -> None:
        self._rows = deque(sorted(rows))

    def head(self) -> bytes | None:
        return self._rows[0] if self._rows else None

    def pop(self) -> None:
        self._rows.popleft()


def lane(*executions: str, tenant: str = "acme", task: str = "t", priority: int = 5) -> tuple[Lane, Front]:
    """Executions `name@time`, queued alike."""
    made = Lane("default", task, priority, tenant)
    named = [text.split("@") for text in executions]
    return made, Front([queued_row(made.prefix(), int(at), name) for name, at in named])


def session(
    name: str, offer: int, tasks: str = "t", cap: int | None = None, queue: str = "default", stamp: int = NOW
) -> Session:
    made = Session(name)
    full = FullPulse("host", "1", list(tasks), [QueueOffer(queue, cap)], 10_000, 3_000, [])
    hear(made, Report(name, 0, Pulse(offer, -1), full), stamp)
    return made


def plan(lanes: list[tuple[Lane, Front]], sessions: list[Session], last_tenant: str = "") -> Plan:
    return Plan("default", lanes, Takers(sessions, NOW), last_tenant)


def granted(lanes: list[tuple[Lane, Front]], sessions: list[Session], last_tenant: str = "") -> list[str]:
    """`execution>session` in the order of grants."""
    return [text_of(grant) for grant in plan(lanes, sessions, last_tenant).grants()]


def text_of(grant: Grant) -> str:
    return f"{grant.execution.decode()}>{grant.session.name}"


def test_grants_go_by_time() -> None:
    lanes = [lane("b:2@20", "a:1@10"), lane("c:3@15", task="u")]
    assert granted(lanes, [session("w", 9, "tu")]) == ["a:1>w", "c:3>w", "b:2>w"]


def test_a_grant_names_row_and_tenant() -> None:
    made, front = lane("a:1@10", tenant="blue")
    (grant,) = plan([(made, front)], [session("w", 1)]).grants()
    assert (grant.row, grant.tenant) == (queued_row(made.prefix(), 10, "a:1"), "blue")


def test_a_higher_priority_goes_first_however_young() -> None:
    lanes = [lane("old:1@1", priority=4), lane("new:1@99", priority=9), lane("mid:1@50", priority=5)]
    assert granted(lanes, [session("w", 2)]) == ["new:1>w", "mid:1>w"]


def test_tenants_take_turns() -> None:
    lanes = [
        lane("a:1@1", "a:2@2", "a:3@3", tenant="a"),
        lane("b:1@50", "b:2@51", tenant="b"),
        lane("c:1@90", tenant="c"),
    ]
    assert granted(lanes, [session("w", 9)]) == ["a:1>w", "b:1>w", "c:1>w", "a:2>w", "b:2>w", "a:3>w"]


def test_the_turn_goes_on_after_the_last_tenant() -> None:
    lanes = [lane(f"{tenant}:1@1", tenant=tenant) for tenant in "abc"]
    made = plan(lanes, [session("w", 2)], last_tenant="b")
    assert [text_of(grant) for grant in made.grants()] == ["c:1>w", "a:1>w"]
    assert made.last_tenant == "a"


def test_nobody_gets_more_than_is_offered() -> None:
    lanes = [lane(*(f"a:{n}@{n}" for n in range(10)))]
    assert len(granted(lanes, [session("v", 3), session("w", 2)])) == 5


def test_the_most_free_session_gets_the_next() -> None:
    lanes = [lane(*(f"a:{n}@{n}" for n in range(6)))]
    got = granted(lanes, [session("small", 2), session("large", 5)])
    assert [text.partition(">")[2] for text in got] == ["large"] * 3 + ["large", "small", "large"]


def test_only_a_session_that_knows_the_task_and_reads_the_queue_gets_it() -> None:
    lanes = [lane("a:1@1", task="t"), lane("b:1@2", task="u")]
    assert granted(lanes, [session("w", 9, "u")]) == ["b:1>w"]
    assert granted([lane("a:1@1")], [session("w", 9, queue="mail")]) == []


def test_a_task_nobody_knows_holds_up_nothing() -> None:
    lanes = [lane("x:1@1", task="x", priority=9), lane("a:1@2")]
    assert granted(lanes, [session("w", 9)]) == ["a:1>w"]


def test_a_cap_holds_beside_a_larger_offer() -> None:
    lanes = [lane(*(f"a:{n}@{n}" for n in range(10)))]
    assert len(granted(lanes, [session("w", 9, cap=4)])) == 4


def test_an_old_pulse_gets_nothing() -> None:
    assert granted([lane("a:1@1")], [session("w", 9, stamp=NOW - 6_000)]) == []


def test_without_offers_there_are_no_takers() -> None:
    assert not Takers([session("w", 0)], NOW)
    assert Takers([session("w", 1)], NOW)


def test_grants_left_untaken_stay_queued() -> None:
    made, front = lane("a:1@1", "a:2@2", "a:3@3")
    taken = list(islice(plan([(made, front)], [session("w", 9)]).grants(), 2))
    assert [grant.execution for grant in taken] == [b"a:1", b"a:2"]
    assert front.head() == queued_row(made.prefix(), 3, "a:3")
