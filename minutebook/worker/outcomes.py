"""How an attempt ends. Tasks return values: anything but `Retry` and `Fail` means that it succeeded."""

from __future__ import annotations

from enum import Enum, auto
from typing import Final

import msgspec

from minutebook.worker.duration import Duration, duration_ms

MESSAGE_BYTES_MAX: Final = 8 << 10
ERROR_TYPE_CHARS_MAX: Final = 256

PAYLOAD_ERROR: Final = "PayloadError"
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


Outcome = Verdict | Failure


def outcome_of(value: object) -> Outcome:
    """What a task's return value means."""
    if isinstance(value, Retry):
        return Failure("Retry", legible(value.reason), retry_after_ms=value.after_ms())
    if isinstance(value, Fail):
        return Failure("Fail", legible(value.reason), is_permanent=True)
    return Verdict.SUCCEEDED


def failure_of(error: BaseException) -> Failure:
    """What an exception that left a task means: failed, retryable."""
    return Failure(legible(type(error).__name__)[:ERROR_TYPE_CHARS_MAX], _message(error))


def bad_payload(error: Exception) -> Failure:
    """A payload that does not fit its task: no other attempt would do better."""
    return Failure(PAYLOAD_ERROR, _message(error), is_permanent=True)


def timed_out(timeout_ms: int) -> Failure:
    """An attempt that ran past its timeout."""
    return Failure(TIMEOUT, f"still running after {timeout_ms} ms")


def _message(error: BaseException) -> str:
    try:
        return legible(str(error))
    except Exception as fault:  # a __str__ of the user's; the failure must be reported all the same
        return f"no message: {type(fault).__name__} while it was formatted"


def legible(text: str) -> str:
    """`text` with control characters escaped, lone surrogates too, cut at 8 KiB of UTF-8."""
    escaped = text[:MESSAGE_BYTES_MAX].translate(_ESCAPES)
    return escaped.encode("utf-8", "backslashreplace")[:MESSAGE_BYTES_MAX].decode("utf-8", "ignore")
