"""What the reference consumers of open queues say, against the real owner: bytes by the schema files, no line of ours shared."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from examples.open_queue.records import Records, partition_of
from examples.open_queue.session import CLAIM_AGAIN_MS, PULSE_EVERY_MS, Ended, Run, Session
from minutebook.domain import events as facts
from minutebook.domain.events import Event
from minutebook.domain.records import Claim
from minutebook.wire import codec, topics
from tests.simulation.desk import Desk, Hand, rows

FOLDER = Path(__file__).parents[2] / "examples" / "open_queue"
RECORDS = Records()
GRANTED = facts.ExecutionsGranted
ENDED = facts.AttemptsSucceeded


class Line:
    """A consumer and its owner. What the owner says is on its way until `hear`, or lost."""

    def __init__(self) -> None:
        self.desk = Desk()
        self.desk.declare("o", is_open=True)
        self.desk.cycle()
        self.session = Session("worker-1", 0)

    def due(self, *jobs: str) -> None:
        """Jobs come due, their due records are read and claimed."""
        self.desk.submit(*jobs, queue="o")
        self.desk.cycle()
        self.desk.cycle(1)
        self.deliver()

    def deliver(self) -> None:
        for record in self.desk.publish("o"):
            self.session.claim(RECORDS.decode(codec.encode(record)))

    def say(self, after_ms: int = 0) -> list[Event]:
        """Everything that the consumer has to say goes out, and is decided."""
        self.desk.now += after_ms
        while (said := self.session.report(self.desk.now)) is not None:
            self.desk.inputs[topics.REPORTS].add(RECORDS.encode("Report", said.datum), self.desk.now)
            self.session.acknowledged(said)
        return self.desk.cycle()

    def hear(self, *, is_granted: bool = True, is_answered: bool = True) -> list[Run]:
        """The inbox records of the last frame; of the two kinds one may be lost."""
        inbox = [output.record for output in self.desk.grants()] if is_granted else []
        inbox += self.desk.replies if is_answered else []
        return [
            run
            for record in inbox
            for run in self.session.read(RECORDS.decode(codec.encode(record)), self.desk.now)
        ]


@pytest.fixture
def line() -> Line:
    return Line()


def test_reference_consumers_use_nothing_of_ours() -> None:
    found: set[str] = set()
    for path in FOLDER.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                found |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                found.add(node.module or "")
    tops = {name.split(".")[0] for name in found}
    assert tops & {"confluent_kafka", "kafka", "fastavro"}
    assert not tops & {"minutebook", "streams", "api", "replay", "tests"}
    assert {name for name in found if name.startswith("examples")} <= {
        f"examples.open_queue.{name}" for name in ("loop", "records", "session")
    }


@pytest.mark.parametrize("key", ["", "a", "worker-12", "0190b5d2-7b1e-7c64-8f2a-1f0d5d1c9a11", "ü"])
def test_partition_of_a_key_is_the_one_of_the_owner(key: str) -> None:
    assert partition_of(key, 128) == topics.partition_of(key, 128)


def test_a_due_record_is_claimed_run_and_reported(line: Line) -> None:
    line.due("a", "b")
    assert len(rows(line.say(), GRANTED)) == 2
    runs = line.hear()
    assert [run.due["job_id"] for run in runs] == ["a", "b"]
    assert line.say(PULSE_EVERY_MS) == []
    for run in runs:
        line.session.end(Ended(run, 5))
    assert len(rows(line.say(), ENDED)) == 2
    assert line.session.held == {}


@pytest.mark.parametrize(("is_granted", "is_answered"), [(False, True), (True, False)])
def test_either_of_grant_and_answer_starts_the_run(line: Line, is_granted: bool, is_answered: bool) -> None:
    line.due("a")
    line.say()
    assert len(line.hear(is_granted=is_granted, is_answered=is_answered)) == 1


def test_where_both_are_lost_the_claim_is_sent_again_and_gets_the_same_token(line: Line) -> None:
    line.due("a")
    first = rows(line.say(), GRANTED)
    line.hear(is_granted=False, is_answered=False)
    assert line.say(CLAIM_AGAIN_MS) == []
    (run,) = line.hear()
    assert [run.due["execution"]] == first
    line.session.end(Ended(run, 1))
    assert rows(line.say(), ENDED) == first


def test_a_due_record_that_comes_twice_is_run_once(line: Line) -> None:
    line.due("a")
    line.say()
    (run,) = line.hear()
    line.session.claim(run.due)
    line.say()
    assert line.hear() == []
    line.session.claim(run.due)
    line.session.end(Ended(run, 1))
    assert len(rows(line.say(), ENDED)) == 1
    assert line.hear() == [], "its answer says a token that has ended"


def test_a_claim_that_is_refused_is_dropped(line: Line) -> None:
    line.due("a")
    other = Hand(line.desk, "x.0")
    (name,) = line.session.claims
    other.pulse(0, held=[], claims=[Claim(*name)])
    line.say()
    assert line.hear() == []
    assert line.session.claims == {}


def test_a_grant_that_comes_late_is_handed_back_and_runs_when_it_is_claimed_again(line: Line) -> None:
    line.due("a")
    line.say()
    line.desk.now += 1_501
    assert line.hear() == []
    (event,) = line.say()
    assert isinstance(event, facts.GrantsReturned)
    line.deliver()
    assert len(rows(line.say(), GRANTED)) == 1
    assert len(line.hear()) == 1


def test_when_its_session_is_over_a_consumer_claims_in_a_new_one(line: Line) -> None:
    line.due("a", "b")
    line.say()
    first, second = line.hear()
    line.desk.sessions.evidence = line.desk.now + 60_000
    assert len(rows(line.desk.cycle(), facts.AttemptsLost)) == 2
    line.session.end(Ended(first, 1))
    line.say(PULSE_EVERY_MS)
    line.hear()
    assert line.session.id == "worker-1.1"
    line.session.end(Ended(second, 1))
    assert line.session.ended == {}
    line.deliver()
    assert len(rows(line.say(PULSE_EVERY_MS), GRANTED)) == 2
    assert [run.due["attempt"] for run in line.hear()] == [2, 2]


def test_a_failure_is_tried_again_as_the_next_attempt(line: Line) -> None:
    line.due("a")
    line.say()
    (run,) = line.hear()
    line.session.end(Ended(run, 1, OSError("no")))
    (event,) = line.say()
    assert isinstance(event, facts.AttemptFailed)
    assert (event.error_type, event.message) == ("OSError", "no")
    line.desk.cycle(2_000)
    line.deliver()
    line.say()
    assert [again.due["attempt"] for again in line.hear()] == [2]


def test_a_cancelled_run_is_held_no_more(line: Line) -> None:
    line.due("a")
    line.say()
    (run,) = line.hear()
    line.desk.cancel("a")
    line.desk.cycle()
    line.hear()
    assert line.session.held == {}
    line.session.end(Ended(run, 1))
    line.say(PULSE_EVERY_MS)
    assert rows(line.say(PULSE_EVERY_MS), ENDED) == []
