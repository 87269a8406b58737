"""`why` names the facts that it rests on: who held a limit's permits, also in other partitions, who owned the partition,
what paused a queue.
"""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import pytest

from minutebook import ids
from minutebook.domain import events as facts
from minutebook.domain.events import Event
from minutebook.errors import SettingsError
from minutebook.history.why import Answer
from minutebook.wire import topics
from minutebook.wire.frames import decode_frame
from replay.files import FileLog, export
from replay.why import why_in
from tests.simulation.copies import CopiedLog
from tests.simulation.desk import T0
from tests.simulation.log_maker import LogMaker, pause, submit
from tests.simulation.office import TENANT, Office

SECOND = 1_000


def log_of(office: Office) -> CopiedLog:
    return CopiedLog(*(desk.records for desk in office.desks))


def fact_at(log: CopiedLog, event_id: str | None) -> Event:
    """The event that an id names."""
    assert event_id is not None
    partition, offset, event, row = map(int, event_id.split("."))
    assert row >= 0
    (record,) = log.read(partition, offset, offset + 1)
    return decode_frame(record.value).events[event]


def by_code(answer: Answer, code: str) -> list[str | None]:
    return [reason.event_id for reason in answer.reasons if reason.code == code]


def jobs_in(partition: int, count: int) -> list[str]:
    """Ids of jobs that lie in a partition of three."""
    names = (f"job-{number}" for number in range(1_000))
    there = (name for name in names if topics.partition_of(ids.job_key(TENANT, name), 3) == partition)
    return list(islice(there, count))


def home_of_k() -> int:
    return topics.partition_of(ids.limit_key(TENANT, "k"), 3)


def wait_for(office: Office, cycles: int) -> None:
    """Workers offer slots, nothing that runs ends."""
    for _ in range(cycles):
        office.now += 100
        for worker, partition in office.places():
            office.pulse(worker, partition, 1, is_full=True)
        office.deliver_all()
        for partition in range(len(office.desks)):
            office.cycle(partition)


def the_limit_lets_one_in(office: Office, first: str, second: str) -> int:
    """The first job runs for some seconds, the second one waits for its permit; when that was due."""
    office.declare("k", concurrency=1)
    office.settle(0, 3)
    office.submit(first, "k")
    wait_for(office, 20)
    due_at = office.now
    office.submit(second, "k")
    wait_for(office, 50)
    return due_at


@pytest.mark.parametrize("place", [0, 1])
def test_who_held_a_permit_is_named_wherever_it_ran(place: int) -> None:
    office = Office(3, 1)
    first, second = jobs_in(place, 1)[0], jobs_in(0, 2)[1]
    due_at = the_limit_lets_one_in(office, first, second)
    office.settle(1, 20)
    log = log_of(office)
    answer = why_in(log, TENANT, second, due_at)
    assert answer.verdict == "ran"
    assert answer.late_ms is not None
    assert answer.late_ms > SECOND
    (limit,) = by_code(answer, "limit")
    assert isinstance(fact_at(log, limit), facts.LimitCopied)
    (held,) = by_code(answer, "permit_held")
    grant = fact_at(log, held)
    assert isinstance(grant, facts.ExecutionsGranted)
    assert [ids.job_of(name) for name in grant.executions] == [first]
    assert (held or "").startswith(f"{place}.")
    (came,) = by_code(answer, "permits_came")
    assert isinstance(fact_at(log, came), facts.PermitsReceived)


def test_what_still_waits_for_a_permit_is_told_who_holds_it(tmp_path: Path) -> None:
    office = Office(3, 1)
    first, (second, later) = jobs_in(1, 1)[0], jobs_in(0, 2)
    due_at = the_limit_lets_one_in(office, first, second)
    office.submit(later)
    wait_for(office, 10)
    log = log_of(office)
    answer = why_in(log, TENANT, second, due_at)
    assert answer.verdict == "waiting"
    assert len(by_code(answer, "limit")) == len(by_code(answer, "permit_held")) == 1
    assert by_code(answer, "permits_came") == []
    export(log, tmp_path / "one", [0])
    answer = why_in(FileLog(tmp_path / "one"), TENANT, second, due_at)
    assert by_code(answer, "permits_untold" if home_of_k() else "permit_out") != []


def test_a_handover_and_a_paused_queue_are_named_by_their_events() -> None:
    maker = LogMaker()
    maker.open()
    maker.add(facts.QueueCopied("q", 1, False, []))
    maker.command(submit("a", queue="q", cron="* * * * *"))
    maker.clock.advance(600 * SECOND)
    taken = maker.take_over("owner-2/b")
    maker.due()
    paused = maker.add(facts.QueueCopied("q", 2, False, [], is_paused=True))
    maker.clock.advance(60 * SECOND)
    maker.add(facts.QueueCopied("q", 3, False, []))
    maker.grant()
    log = CopiedLog(maker.records)
    due_at = maker.last.now - 660 * SECOND
    due_at += -due_at % (60 * SECOND)
    answer = why_in(log, TENANT, "a", due_at + 540 * SECOND)
    assert by_code(answer, "queue_paused") == [f"0.{paused.offset}.0.0"]
    assert by_code(answer, "hand_over") == [f"0.{taken.offset}.0.0"]


def test_a_stretch_without_the_first_records_is_not_asked(tmp_path: Path) -> None:
    maker = LogMaker()
    maker.open()
    maker.command(submit("a", cron="* * * * *"))
    maker.clock.advance(SECOND)
    maker.command(pause("a"))
    export(CopiedLog(maker.records), tmp_path / "cut", [0], since=T0 + SECOND)
    with pytest.raises(SettingsError, match="this needs the log from its first record on"):
        why_in(FileLog(tmp_path / "cut"), TENANT, "a", T0)
