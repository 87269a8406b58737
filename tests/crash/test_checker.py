"""The judge judged: each kind of breach, planted into a small history, is found; the history without it is clean."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec
import pytest

from minutebook.domain import events as facts
from minutebook.domain.records import Pulse, Report
from minutebook.log.port import RawRecord
from minutebook.log.reader import FrameReader
from minutebook.wire import codec, topics
from minutebook.wire.frames import Frame, InputPosition, encode_frame
from tests.crash import checker
from tests.crash.joblog import JobLog
from tests.crash.ledger import Ledger
from tests.crash.stack import Sent, Sighting, job

DUE: Final = 1_000_000
NAME: Final = f"j:{DUE}"
SESSION: Final = "w.0"
GRANT: Final = (1 << 16) + 1
"""Token of the one grant: second row of the frame at offset 1."""


def due(due_at: int = DUE, attempt: int = 1) -> facts.ExecutionsQueued:
    return facts.ExecutionsQueued(
        ["t"],
        ["default"],
        ["crash.note"],
        [0],
        [0],
        [0],
        [NAME],
        [1],
        [due_at],
        [due_at],
        [-1],
        [attempt],
        [5],
    )


def placed() -> facts.ExecutionsPlaced:
    return facts.ExecutionsPlaced("t", "j", "misfire", 1, [DUE], [DUE], [DUE], -1)


def grant(attempt: int = 1) -> facts.ExecutionsGranted:
    return facts.ExecutionsGranted(["t"], [0], [NAME], [attempt], [SESSION], [0], [])


def success(token: int = GRANT) -> facts.AttemptsSucceeded:
    return facts.AttemptsSucceeded(["t"], [0], [NAME], [token], [0], [0])


def submitted() -> facts.JobSubmitted:
    required = [field.name for field in msgspec.structs.fields(facts.JobSubmitted) if field.required]
    fields: dict[str, Any] = dict.fromkeys(required, "")
    numbers = ("issued_at", "accepted_at", "key_id", "timeout_ms", "priority")
    fields |= dict.fromkeys(numbers, 0) | dict.fromkeys(("fingerprint", "payload", "payload_sha256"), b"")
    return facts.JobSubmitted(**(fields | {"tenant": "t", "job_id": "j", "command_id": "c", "next_at": DUE}))


class History:
    """A log with one frame a list of events, and what goes with it."""

    def __init__(self) -> None:
        self.frames: list[list[Any]] = [
            [facts.LogOpened("log", 1, 0, 1_000, 1), facts.OwnershipTaken("o", 1, 0, 0), submitted()],
            [due(), grant()],
            [success()],
        ]
        self.owners = ["o", "o", "o"]
        self.inputs = [-1, 0, 0]
        self.offer = 1
        self.witness = [self.sighting("start", DUE + 5), self.sighting("end", DUE + 9)]
        command = job(job_id="j", run_at=DUE, command_id="c", tenant="t")
        self.sent = [Sent(command, 0, 0, DUE - 10)]

    def sighting(self, moment: str, at: int, token: int = GRANT, attempt: int = 1) -> Sighting:
        return Sighting(moment, "t", NAME, attempt, token, DUE, at, 1)

    def log(self) -> JobLog:
        log, reader = JobLog(1), FrameReader()
        for offset, events in enumerate(self.frames):
            inputs = [InputPosition(topic, "id", self.inputs[offset]) for topic in topics.INPUTS]
            now = DUE + offset
            frame = Frame(
                offset, reader.head, self.owners[offset], 1, now, 1, "", bytes(8), inputs, [], -1, events
            )
            record = RawRecord(offset, now, None, encode_frame(frame))
            reader.take(record)
            log.take(0, record)
        return log

    def complaints(self) -> list[str]:
        log = self.log()
        ledger = Ledger(log)
        pulse = codec.encode(Report(SESSION, 1, Pulse(self.offer, -1)))
        reports = [checker.decoded_reports([RawRecord(0, DUE, None, pulse)])]
        return [
            *ledger.complaints,
            *checker.unanswered(ledger, log, self.sent),
            *checker.unfinished(ledger, self.sent),
            *checker.strange_runs(ledger, self.witness),
            *checker.unseen_successes(ledger, self.witness),
            *checker.wrong_owners(log),
            *checker.overgrants(log, reports),
        ]


def lost(history: History) -> None:
    history.frames[2] = [facts.DayForgotten(1)]


def unanswered(history: History) -> None:
    history.sent.append(Sent(job(job_id="other", run_at=DUE * 2), 0, 1, DUE))


def early_in_the_log(history: History) -> None:
    history.frames[1][0] = due(DUE + 60_000)


def early_on_the_worker(history: History) -> None:
    history.witness[0] = history.sighting("start", DUE - 500)


def granted_twice(history: History) -> None:
    history.frames[2] = [grant(), success(2 << 16)]


def ended_under_an_old_token(history: History) -> None:
    history.frames[2] = [success(GRANT - 1)]


def ended_twice(history: History) -> None:
    history.frames[2] = [success(), success()]


def due_twice(history: History) -> None:
    history.frames[2] = [success(), due()]


def attempt_without_a_cause(history: History) -> None:
    history.frames[1] = [due(attempt=2), grant(attempt=2)]


def run_without_a_grant(history: History) -> None:
    history.witness.append(history.sighting("start", DUE + 7, token=7))


def token_started_twice(history: History) -> None:
    history.witness.append(history.sighting("start", DUE + 7))


def success_that_nobody_saw(history: History) -> None:
    history.witness.pop()


def frame_of_another_owner(history: History) -> None:
    history.owners[2] = "zombie"


def inputs_that_go_back(history: History) -> None:
    history.inputs[2] = -1


def epoch_that_jumps(history: History) -> None:
    history.frames[2].append(facts.OwnershipTaken("o", 3, 0, 0))


def more_than_offered(history: History) -> None:
    history.offer = 0


def grant_on_an_unread_offer(history: History) -> None:
    history.inputs = [-1, -1, -1]


def cancelled_after_its_end(history: History) -> None:
    history.frames[2].append(facts.JobCancelled("t", "j", "c2", "", "", DUE, [NAME], [], []))


def placed_though_it_was_due(history: History) -> None:
    history.frames[2].append(placed())


BREACHES: Final[list[Callable[[History], None]]] = [
    lost,
    unanswered,
    early_in_the_log,
    early_on_the_worker,
    granted_twice,
    ended_under_an_old_token,
    ended_twice,
    due_twice,
    attempt_without_a_cause,
    run_without_a_grant,
    token_started_twice,
    success_that_nobody_saw,
    frame_of_another_owner,
    inputs_that_go_back,
    epoch_that_jumps,
    more_than_offered,
    grant_on_an_unread_offer,
    cancelled_after_its_end,
    placed_though_it_was_due,
]


def test_clean_history_has_no_complaint() -> None:
    assert History().complaints() == []


def test_clean_history_may_place_an_instant_before_it_comes_due() -> None:
    history = History()
    history.frames[0].append(placed())
    assert history.complaints() == []


@pytest.mark.parametrize("plant", BREACHES, ids=lambda plant: plant.__name__)
def test_planted_breach_is_found(plant: Callable[[History], None]) -> None:
    history = History()
    plant(history)

    assert history.complaints() != []


def test_double_grants_are_counted() -> None:
    history = History()
    assert Ledger(history.log()).double_grants == 0
    granted_twice(history)
    assert Ledger(history.log()).double_grants == 1
