"""How an attempt ends. Tasks return values: anything but `Retry`, `Snooze`, `Fail` and `Cancel` means that it succeeded,
and is its result.
"""

from __future__ import annotations

from datetime import datetime
from enum import Enum, auto
from typing import Final

import msgspec

from minutebook.domain.results import RESULT_BYTES_MAX
from minutebook.times import instant_of
from minutebook.worker.duration import Duration, duration_ms
from minutebook.worker.payload import fault_of
from minutebook.worker.redaction import known_secrets, redacted

MESSAGE_BYTES_MAX: Final = 8 << 10
ERROR_TYPE_CHARS_MAX: Final = 256

INVALID_PAYLOAD: Final = "InvalidPayload"
RESULT_ERROR: Final = "ResultError"
TIMEOUT: Final = "Timeout"
CANCELLED: Final = "Cancelled"

_ESCAPES: Final = {code: f"\\x{code:02x}" for code in (*range(0x20), *range(0x7F, 0xA0))} | {
    ord("\n"): "\\n",
    ord("\r"): "\\r",
    ord("\t"): "\\t",
}


class Retry(msgspec.Struct, frozen=True):
    """Returned by a task: this attempt failed, try again. `after` is a duration (`"30s"`, seconds, a timedelta) that
    stands before the usual backoff; None = the usual backoff. Raises ValueError for a bad duration.
    """

    after: Duration | None = None
    reason: str = ""

    def __post_init__(self) -> None:
        self.after_ms()

    def after_ms(self) -> int | None:
        """`after` in milliseconds."""
        return None if self.after is None else duration_ms(self.after)


class Fail(msgspec.Struct, frozen=True):
    """Returned by a task: this attempt failed and no other one would do better, so it is not tried again."""

    reason: str = ""


class Snooze(msgspec.Struct, frozen=True):
    """Returned by a task: not now. Another attempt follows `after` a duration, or at the instant `until`; none counts as
    failed. Raises ValueError for a bad duration, for an instant without a zone, and unless exactly one is given.
    """

    after: Duration | None = None
    until: datetime | None = None
    reason: str = ""

    def __post_init__(self) -> None:
        if (self.after is None) == (self.until is None):
            raise ValueError("Snooze takes either after or until")
        if self.until is not None and self.until.tzinfo is None:
            raise ValueError(
                "Snooze takes an instant with a zone, such as datetime.now(UTC) + timedelta(hours=1)"
            )
        if self.after is not None:
            duration_ms(self.after)


class Cancel(msgspec.Struct, frozen=True):
    """Returned by a task: no longer wanted. The execution is cancelled, nothing follows."""

    reason: str = ""


class Verdict(Enum):
    """An end that needs no words."""

    SUCCEEDED = auto()
    HANDED_BACK = auto()


class Failure(msgspec.Struct, frozen=True, gc=False):
    """A failed attempt, fit for a report: texts are cut and escaped."""

    error_type: str
    message: str
    is_permanent: bool = False
    retry_after_ms: int | None = None


class Result(msgspec.Struct, frozen=True, gc=False):
    """A success with something to keep, as JSON text."""

    data: bytes


class Snoozing(msgspec.Struct, frozen=True, gc=False):
    """An attempt that is to be followed by another one, uncounted."""

    after_ms: int
    until_at: int | None
    reason: str


class Cancelling(msgspec.Struct, frozen=True, gc=False):
    """An attempt whose task cancels the execution."""

    reason: str


Outcome = Verdict | Failure | Result | Snoozing | Cancelling


def outcome_of(value: object) -> Outcome:
    """What a task's return value means."""
    if isinstance(value, Retry):
        return Failure("Retry", legible(value.reason), retry_after_ms=value.after_ms())
    if isinstance(value, Fail):
        return Failure("Fail", legible(value.reason), is_permanent=True)
    if isinstance(value, Snooze):
        until_at = None if value.until is None else instant_of(value.until)
        return Snoozing(
            0 if value.after is None else duration_ms(value.after), until_at, legible(value.reason)
        )
    if isinstance(value, Cancel):
        return Cancelling(legible(value.reason))
    return Verdict.SUCCEEDED if value is None else _result(value)


def _result(value: object) -> Outcome:
    """What is kept of a value. One that cannot be kept ends the execution: another attempt would return the like."""
    try:
        dump = getattr(value, "model_dump_json", None)
        data = msgspec.json.encode(value) if dump is None else str(dump()).encode()
    except Exception as error:  # whatever the value's own methods raise
        advice = "return None, or what JSON can say"
        return Failure(RESULT_ERROR, f"the result is no JSON: {_message(error)}; {advice}", is_permanent=True)
    if len(data) > RESULT_BYTES_MAX:
        advice = f"results end at {RESULT_BYTES_MAX} bytes: store it elsewhere and return where it is"
        return Failure(RESULT_ERROR, f"the result has {len(data)} bytes; {advice}", is_permanent=True)
    return Result(data)


def failure_of(error: BaseException) -> Failure:
    """What an exception that left a task means: failed, retryable."""
    return Failure(legible(type(error).__name__)[:ERROR_TYPE_CHARS_MAX], _message(error))


def bad_payload(error: Exception) -> Failure:
    """A payload that does not fit its task: no other attempt would do better."""
    try:
        message = legible(fault_of(error))
    except Exception as fault:  # a __str__ of the user's
        message = f"no message: {type(fault).__name__} while it was formatted"
    return Failure(INVALID_PAYLOAD, message, is_permanent=True)


def timed_out(timeout_ms: int) -> Failure:
    """An attempt that ran past its timeout."""
    return Failure(TIMEOUT, f"still running after {timeout_ms} ms")


def _message(error: BaseException) -> str:
    try:
        return legible(str(error))
    except Exception as fault:  # a __str__ of the user's; the failure must be reported all the same
        return f"no message: {type(fault).__name__} while it was formatted"


def legible(text: str) -> str:
    """`text` without the secrets of this process, control characters escaped, lone surrogates too, cut at 8 KiB of UTF-8."""
    escaped = redacted(text, known_secrets())[:MESSAGE_BYTES_MAX].translate(_ESCAPES)
    return escaped.encode("utf-8", "backslashreplace")[:MESSAGE_BYTES_MAX].decode("utf-8", "ignore")
