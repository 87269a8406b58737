"""Who gets what: priority, then tenants in turn, then time; the most free session among those that can."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from types import MappingProxyType

from hypothesis import given, settings
from hypothesis import strategies as st

from minutebook.domain import keys
from minutebook.domain.came_back import KEPT_MAX, CameBack
from minutebook.domain.grants import Plan, Takers
from minutebook.domain.keys import Lane
from minutebook.domain.offers import Session, hear
from minutebook.domain.records import FullPulse, Pulse, QueueOffer, Report

NOW = 100_000


class Front:
    """A lane's front over a list of rows (ready at, execution)."""

    def __init__(self, lane: Lane, rows: list[tuple[int, str]]) -> None:
        self.lane = lane
        self._rows = deque(sorted(rows))

    def head_at(self) -> int | None:
        return self._rows[0][0] if self._rows else None

    def head_key(self) -> bytes:
        return keys.execution_row(self.lane.tenant, self._rows[0][1])

    def pop(self) -> str:
        return self._rows.popleft()[1]


def lane(*executions: str, tenant: str = "acme", task: str = "t", priority: int = 5) -> Front:
    """Executions `name@time`, queued alike."""
    named = [text.split("@") for text in executions]
    return Front(Lane("default", task, priority, tenant), [(int(at), name) for name, at in named])


def session(
    name: str, offer: int, tasks: str = "t", cap: int | None = None, queue: str = "default", stamp: int = NOW
) -> Session:
    made = Session(name)
    full = FullPulse("host", "1", list(tasks), [QueueOffer(queue, cap)], 10_000, 3_000, [])
    hear(made, Report(name, 0, Pulse(offer, -1), full), stamp)
    return made


def plan(
    lanes: list[Front],
    sessions: list[Session],
    last_tenant: str = "",
    came_back: Mapping[str, str] = MappingProxyType({}),
) -> Plan[Front]:
    back = CameBack()
    for execution, name in came_back.items():
        back.note(keys.execution_row("acme", execution), name)
    return Plan("default", lanes, Takers(sessions, NOW), last_tenant, back)


def granted(lanes: list[Front], sessions: list[Session], last_tenant: str = "") -> list[str]:
    """`execution>session` in the order of grants."""
    return taken(plan(lanes, sessions, last_tenant))


def taken(made: Plan[Front]) -> list[str]:
    return [f"{front.pop()}>{session.name}" for front, session in made.grants()]


def test_grants_go_by_time() -> None:
    lanes = [lane("b:2@20", "a:1@10"), lane("c:3@15", task="u")]
    assert granted(lanes, [session("w", 9, "tu")]) == ["a:1>w", "c:3>w", "b:2>w"]


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
    assert taken(made) == ["c:1>w", "a:1>w"]
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


OFFERS = st.tuples(
    st.integers(0, 3), st.sampled_from(["t", "u", "tu"]), st.sampled_from([None, 1, 2]), st.booleans()
)


@given(st.lists(OFFERS, max_size=6), st.integers(0, 2))
@settings(deadline=None)
def test_the_first_of_many_is_found_without_an_order_of_them_all(
    offers: list[tuple[int, str, int | None, bool]], planned: int
) -> None:
    sessions = [
        session(f"w{number}", offer, tasks, cap, stamp=NOW if is_heard else 0)
        for number, (offer, tasks, cap, is_heard) in enumerate(offers)
    ]
    for one in sessions:
        one.planned = min(planned, one.offer)
    for task in "tu":
        assert Takers(sessions, NOW).first("default", task) is Takers(sessions, NOW).best("default", task)
    assert Takers(sessions, NOW).first("mail", "t") is None


def test_grants_left_untaken_stay_queued() -> None:
    front = lane("a:1@1", "a:2@2", "a:3@3")
    grants = plan([front], [session("w", 9)]).grants()
    assert [next(grants)[0].pop() for _ in range(2)] == ["a:1", "a:2"]
    assert front.head_at() == 3


def test_what_came_back_goes_to_another_session() -> None:
    sessions = [session("bad", 9), session("good", 1)]
    made = plan([lane("a:1@10", "b:2@20")], sessions, came_back={"a:1": "bad"})
    assert taken(made) == ["a:1>good", "b:2>bad"]


def test_what_came_back_goes_to_the_same_session_if_no_other_offers() -> None:
    made = plan([lane("a:1@10", "b:2@20")], [session("bad", 2), session("busy", 0)], came_back={"a:1": "bad"})
    assert taken(made) == ["a:1>bad", "b:2>bad"]


def test_session_from_which_something_came_back_keeps_its_other_offers() -> None:
    sessions = [session("bad", 3), session("good", 2)]
    made = plan([lane("a:1@10", "b:2@20", "c:3@30", "d:4@40")], sessions, came_back={"a:1": "bad"})
    assert taken(made) == ["a:1>good", "b:2>bad", "c:3>bad", "d:4>bad"]


def test_only_so_many_that_came_back_are_remembered() -> None:
    back = CameBack()
    for number in range(KEPT_MAX + 1):
        back.note(b"%d" % number, "bad")
    assert back.session_of(b"0") == ""
    assert back.session_of(b"%d" % KEPT_MAX) == "bad"
