"""The fields of a create body that say how attempts are retried and bounded."""

from __future__ import annotations

from typing import Any, Final

from api.fields import Fields
from minutebook.domain.policy import DEFAULT, PRIORITY, Policy, faults, is_priority
from minutebook.times import parse_duration

FIELDS: Final = frozenset(
    {"retry", "max_losses", "deadline", "start_deadline", "stuck_after", "on_stuck", "priority"}
)
_POLICY: Final = FIELDS - {"priority"}
_RETRY: Final = ("max_attempts", "first", "max", "factor", "jitter", "non_retryable")


def read_priority(fields: Fields) -> int:
    """0 to 9; faults are gathered in `fields`."""
    value = fields.value("priority")
    if value is None:
        return PRIORITY
    if type(value) is not int or not is_priority(value):
        fields.fault("priority", "must be a whole number from 0 to 9; 9 goes first")
        return PRIORITY
    return value


def read_policy(fields: Fields) -> Policy | None:
    """The policy, None where the body says nothing of it. Faults are gathered in `fields`."""
    if _POLICY.isdisjoint(fields.members):
        return None
    given: dict[str, Any] = {
        "max_losses": fields.whole("max_losses"),
        "deadline_ms": fields.parsed("deadline", parse_duration),
        "start_deadline_ms": fields.parsed("start_deadline", parse_duration),
        "stuck_after_ms": fields.parsed("stuck_after", parse_duration),
        "is_stuck_stopped": fields.choice("on_stuck", ("report", "stop")) == "stop" or None,
    }
    given |= _read_retry(fields)
    policy = Policy(**{name: value for name, value in given.items() if value is not None})
    for field, remedy in faults(policy):
        fields.fault(field, remedy)
    return None if policy == DEFAULT else policy


def _read_retry(fields: Fields) -> dict[str, Any]:
    retry = fields.inner("retry", _RETRY)
    return {
        "max_attempts": retry.whole("max_attempts"),
        "first_ms": retry.parsed("first", parse_duration),
        "max_ms": retry.parsed("max", parse_duration),
        "factor": retry.number("factor"),
        "jitter": retry.number("jitter"),
        "non_retryable": retry.texts("non_retryable"),
    }
