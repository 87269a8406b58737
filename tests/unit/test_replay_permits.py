"""What an audit finds where a limit was not kept."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

import pytest

from minutebook.domain import events as facts
from minutebook.domain.book import FAMILIES, Book
from minutebook.domain.events import Event
from minutebook.domain.fold import fold
from minutebook.log.port import RawRecord
from minutebook.store.memory import MemoryRows
from minutebook.wire.frames import Frame, placed
from replay.permits import FAMILY, PermitAudit, unpaired
from replay.report import Finding
from replay.verify import verify
from tests.simulation.copies import CopiedLog
from tests.simulation.office import Office, shuffled

TENANT, NOW = "t", 1_000_000
HOME, USER = 0, 1


def copied(concurrency: int = -1, rate_count: int = -1, paused_until: int = -1) -> Event:
    return facts.LimitCopied(TENANT, "k", 1, concurrency, rate_count, 1_000, paused_until, False)


def granted(*partitions: int) -> Event:
    return facts.PermitsGranted(TENANT, "k", 1, list(partitions))


FIRST = (1 << 16) + 0
"""Permit of the first row of the home's second frame."""


def received(*permits: int) -> list[Event]:
    return [facts.MailTaken(HOME, 1, 0), facts.PermitsReceived(TENANT, "k", 1, list(permits))]


def released(*permits: int) -> Event:
    return facts.PermitsReleased(TENANT, "k", HOME, list(permits))


def returned(*permits: int) -> list[Event]:
    return [facts.MailTaken(USER, 1, 0), facts.PermitsReturned(TENANT, "k", list(permits))]


def audited(*partitions: list[list[Event]]) -> list[str]:
    """What is found in logs with one frame a list of events."""
    found: list[Finding] = []
    left = []
    for partition, frames in enumerate(partitions):
        rows = MemoryRows((FAMILY,))
        audit = PermitAudit(partition, rows)
        book = Book(MemoryRows(FAMILIES))
        for offset, events in enumerate(frames):
            frame = Frame(offset, bytes(32), "o", 1, NOW + offset, 1, "", b"", [], [], -1, events)
            for event, token in placed(frame):
                fold(book, event, token, frame.now)
            audit.take(frame, book)
            rows.write({FAMILY: audit.pending()}, [])
        found += audit.findings
        left.append(list(audit.left()))
    read = {partition: len(frames) - 1 for partition, frames in enumerate(partitions)}
    found += (one for one in unpaired(left, read) if isinstance(one, Finding))
    return [finding.what for finding in found]


def test_permits_on_their_way_and_back_are_found_good() -> None:
    home = [[copied(1)], [granted(USER)], returned(FIRST), [granted(USER)]]
    assert audited(home, [[], received(FIRST), [released(FIRST)]]) == []


def test_a_permit_that_is_used_twice_is_found() -> None:
    (found,) = audited([[copied()], [granted(USER)]], [[], received(FIRST), received(FIRST)])
    assert "never granted to this partition" in found


@pytest.mark.parametrize(
    ("limit", "grants", "what"),
    [
        (copied(concurrency=1), [granted(1, 1)], "2 permits of the limit 'k' of t are out, it lets 1"),
        (
            copied(rate_count=1),
            [granted(1), granted(1)],
            "2 permits of the limit 'k' of t granted within 1000 ms",
        ),
        (copied(paused_until=NOW + 9), [granted(1)], "paused or not there"),
        (facts.LogOpened("l", 1, 0, 1, 1), [granted(1)], "paused or not there"),
    ],
)
def test_more_than_the_limit_in_force_is_found(limit: Event, grants: list[Event], what: str) -> None:
    (found,) = audited([[limit], *([grant] for grant in grants)])
    assert what in found


def test_a_permit_that_was_never_granted_here_is_found() -> None:
    for other in (2, HOME):
        (found,) = audited([[copied()], [granted(other)]], [[], received(FIRST)])
        assert "never granted to this partition" in found


def test_a_permit_that_nobody_gave_back_is_found() -> None:
    (found,) = audited([[copied()], [granted(USER)], returned(FIRST)], [[], received(FIRST)])
    assert "nobody had given it back" in found


def test_a_permit_that_another_gave_back_than_who_sent_it_is_found() -> None:
    home = [[copied(1)], [granted(HOME)], received(FIRST), [released(FIRST)], returned(FIRST)]
    (found,) = audited(home, [[], []])
    assert "nobody had given it back" in found


def test_what_lies_behind_the_end_of_what_was_read_is_not_judged() -> None:
    assert audited([[copied()]], [[], received(FIRST)]) == []


# -- a whole office


def logs(office: Office) -> list[list[RawRecord]]:
    return [desk.records for desk in office.desks]


def busy() -> Office:
    """Limits at work over three partitions."""
    chance, office = random.Random(3), Office(3, 2)
    office.declare("k", concurrency=2)
    office.declare("", concurrency=3)
    office.settle(slots=9, cycles=3)
    for number in range(40):
        office.submit(f"j{number}", chance.choice(["k", ""]))
    for _ in range(30):
        office.settle(slots=chance.choice([0, 3]), cycles=1)
        for sender, receiver in shuffled(chance, iter([(0, 1), (1, 0), (2, 0), (1, 2)])):
            office.deliver(sender, receiver, 1)
    return office


def in_memory() -> Callable[..., MemoryRows]:
    return lambda folder, families: MemoryRows(families)


def test_the_logs_of_an_office_are_found_good_and_hold_permits() -> None:
    office = busy()
    report = verify(CopiedLog(*logs(office)), [0, 1, 2], make_rows=in_memory())
    assert report.findings == []
    kinds = {type(event) for _, _, event in office.events}
    assert kinds >= {facts.PermitsReceived, facts.PermitsReturned}


def without_home(office: Office) -> Iterator[int]:
    return (place for place, desk in enumerate(office.desks) if desk is not office.home("k"))


def test_some_partitions_alone_are_not_blamed_for_what_others_say() -> None:
    office = busy()
    report = verify(CopiedLog(*logs(office)), list(without_home(office)), make_rows=in_memory())
    assert report.findings == []
    said = [line for item in report.partitions for line in item.unchecked]
    assert said, "what was not judged is told"
    assert all("permits that came from partition" in line and "not judged" in line for line in said)
    whole = verify(CopiedLog(*logs(office)), [0, 1, 2], make_rows=in_memory())
    assert [item.unchecked for item in whole.partitions] == [[], [], []]
