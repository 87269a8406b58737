"""Commands on limits, decided at the limit's home; its copy there is an event of its own, like everywhere."""

from __future__ import annotations

from typing import Final, assert_never

import msgspec

from minutebook.domain import events as facts
from minutebook.domain import keys
from minutebook.domain.book import Book
from minutebook.domain.commands import (
    REASON_CHARS_MAX,
    DeclareLimit,
    DeleteLimit,
    LimitCommand,
    PauseLimit,
)
from minutebook.domain.events import Event
from minutebook.domain.refusal import Refusal, answered
from minutebook.domain.state import NONE_AT, Limit

replace = msgspec.structs.replace

CONCURRENCY_MAX: Final = 100_000
RATE_COUNT_MAX: Final = 1_000
RATE_PERIOD_MIN_MS: Final = 1_000
RATE_PERIOD_MAX_MS: Final = keys.DAY_MS
PAUSE_MAX_MS: Final = 366 * keys.DAY_MS


def decide_limit(book: Book, command: LimitCommand, stamp: int) -> list[Event]:
    """Events of a command on a limit. Raises Refusal."""
    known = book.limits.get(keys.limit_row(command.tenant, command.name))
    changed = _changed(known, command, stamp)
    if changed == known:
        return [answered(command, "exists")]
    changed = replace(changed, version=1 if known is None else known.version + 1)
    reason = "" if isinstance(command, DeclareLimit) else command.reason[:REASON_CHARS_MAX]
    fact = (
        command.tenant,
        command.name,
        changed.version,
        changed.concurrency,
        changed.rate_count,
        changed.rate_period_ms,
        changed.paused_until,
        changed.is_deleted,
    )
    return [
        facts.LimitDeclared(*fact, command.command_id, command.actor, reason, stamp),
        facts.LimitCopied(*fact),
    ]


def faults(command: DeclareLimit) -> list[tuple[str, str]]:
    """What is wrong with the bounds of a limit: (field, remedy) each."""
    found: list[tuple[str, str]] = []
    if command.concurrency is not None and not 1 <= command.concurrency <= CONCURRENCY_MAX:
        found.append(
            ("concurrency", f"from 1 to {CONCURRENCY_MAX}; to start nothing for a while, pause the limit")
        )
    if command.rate_count is not None and not 1 <= command.rate_count <= RATE_COUNT_MAX:
        found.append(("rate_count", f"from 1 to {RATE_COUNT_MAX}"))
    period_ms = command.rate_period_ms
    if period_ms is not None and not RATE_PERIOD_MIN_MS <= period_ms <= RATE_PERIOD_MAX_MS:
        found.append(("rate_period", "from 1 second to 1 day"))
    if (command.rate_count is None) != (period_ms is None):
        lacking = "rate_count" if command.rate_count is None else "rate_period"
        found.append((lacking, "a rate is a rate_count and a rate_period; give both or neither"))
    return found


def _changed(known: Limit | None, command: LimitCommand, stamp: int) -> Limit:
    """The limit as the command wants it, its version left as it is."""
    if isinstance(command, DeclareLimit):
        return _declared(known, command)
    if known is None or (known.is_deleted and not isinstance(command, DeleteLimit)):
        raise Refusal("not_found", "name", "no such limit; declare it first: minutebook limit set")
    match command:
        case PauseLimit():
            return replace(known, paused_until=_paused_until(command, stamp))
        case DeleteLimit():
            return Limit(known.version, is_deleted=True)
        case _:
            assert_never(command)


def _declared(known: Limit | None, command: DeclareLimit) -> Limit:
    for field, remedy in faults(command):
        raise Refusal("invalid", field, remedy)
    version, paused_until = (0, NONE_AT) if known is None else (known.version, known.paused_until)
    return Limit(
        version,
        _bound(command.concurrency),
        _bound(command.rate_count),
        _bound(command.rate_period_ms),
        paused_until,
    )


def _bound(given: int | None) -> int:
    return -1 if given is None else given


def _paused_until(command: PauseLimit, stamp: int) -> int:
    """End of the pause, NONE_AT where the limit is resumed."""
    if command.until is None and command.for_ms is None:
        return NONE_AT
    if command.until is not None and command.for_ms is not None:
        raise Refusal("invalid", "until", "one instant or one duration, not both")
    until = stamp + command.for_ms if command.for_ms is not None else command.until
    assert until is not None
    if not 0 < until - stamp <= PAUSE_MAX_MS:
        raise Refusal(
            "invalid", "until", "later than now, at most 366 days; to end a pause, resume the limit"
        )
    return until
