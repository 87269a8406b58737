"""Room that a command takes in a record: never more than was counted, or a full record would be refused."""

from __future__ import annotations

from typing import Any

import pytest

from api.sender import size_of
from minutebook.domain.commands import (
    CancelExecution,
    CancelJob,
    Command,
    DeclareQueue,
    PauseQueue,
    RedriveExecution,
    RunJobNow,
    SubmitJob,
)
from minutebook.domain.policy import Policy
from minutebook.domain.timing import Timing
from minutebook.wire.codec import encode

NAME = "n" * 128
WIDE = "\U0001f600"
ABOUT: dict[str, Any] = {
    "tenant": NAME,
    "job_id": NAME,
    "command_id": "c" * 64,
    "issued_at": 1 << 41,
    "actor": "key:0123456789ab",
}
SUBMIT: dict[str, Any] = {
    "task": NAME,
    "queue": NAME,
    "cron": "c" * 256,
    "zone": "z" * 128,
    "traceparent": "t" * 55,
}
TIMING = Timing(
    start_at=1 << 62,
    end_at=1 << 62,
    max_runs=1 << 62,
    jitter_ms=1 << 62,
    exclude=[NAME] * 16,
    include=[NAME] * 16,
    misfire_window_ms=1 << 62,
    misfire_max=1 << 62,
    overlap="cancel_running",
)
EXECUTION = f"{NAME}:r{'c' * 64}"


@pytest.mark.parametrize(
    "command",
    [
        SubmitJob(**ABOUT, **SUBMIT, payload=b"1" * 262_144),
        SubmitJob(**ABOUT, **SUBMIT, payload=b"1", policy=Policy(non_retryable=[WIDE * 256] * 32)),
        SubmitJob(**ABOUT, **SUBMIT, payload=b"1", every_ms=1 << 62, timing=TIMING),
        CancelJob(**ABOUT, reason=WIDE * 1_000),
        RunJobNow(**ABOUT),
        CancelExecution(**ABOUT, execution=EXECUTION, reason=WIDE * 1_000),
        RedriveExecution(**ABOUT, execution=EXECUTION, reason=WIDE * 1_000, payload=b"1" * 262_144),
        DeclareQueue(name=NAME, command_id="c", issued_at=1 << 41, tenants=[NAME] * 100),
        PauseQueue(name=NAME, command_id="c", issued_at=1 << 41, reason=WIDE * 1_000),
    ],
    ids=lambda command: type(command).__name__,
)
def test_no_command_takes_more_room_than_counted(command: Command) -> None:
    assert len(encode(command)) <= size_of(command)
