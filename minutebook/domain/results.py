"""Reports of workers to events: results, hand-backs, losses. An old token changes nothing and is refused on record."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import repeat
from typing import Final

import msgspec

from minutebook.domain import events as facts
from minutebook.domain import keys
from minutebook.domain.book import Book
from minutebook.domain.commands import REASON_CHARS_MAX
from minutebook.domain.events import Event
from minutebook.domain.giving_up import Held, dead, expiry
from minutebook.domain.names import Names
from minutebook.domain.placing import spec_of
from minutebook.domain.policy import Policy
from minutebook.domain.records import (
    CancelledByTask,
    Failed,
    HandedBack,
    Progress,
    Report,
    Snoozed,
    Succeeded,
)
from minutebook.domain.retries import (
    RETRY_AFTER_MAX_MS,
    Failing,
    GiveUp,
    Retry,
    after_failure,
    after_loss,
    deadline_at,
    expired,
    is_sane,
    withdrawal_wait_ms,
)
from minutebook.domain.state import NONE_AT

MESSAGE_CHARS_MAX: Final = 8_192
SNOOZE_MAX_MS: Final = 366 * keys.DAY_MS
DETAILS_BYTES_MAX: Final = 16 << 10
RESULT_BYTES_MAX: Final = 64 << 10
ERROR_TYPE_CHARS_MAX: Final = 256
REFUSED: Final = "stale token"
REFUSALS_MAX: Final = 1_000


def legible(text: str, chars_max: int) -> str:
    """`text` cut to its limit, control characters but newline and tab escaped."""
    cut = text[:chars_max]
    if cut.isprintable():
        return cut
    escaped = (c if c.isprintable() or c in "\n\t" else c.encode("unicode_escape").decode() for c in cut)
    return "".join(escaped)[:chars_max]


def decide_report(book: Book, report: Report, now: int, ended: Mapping[int, str]) -> Iterable[list[Event]]:
    """Events of one report in steps; the caller folds each step before it asks for the next.

    `ended` names tokens that ended lately and how: the same result again changes nothing and is not recorded.
    """
    for progress in report.progress:
        yield _progressed(book, report.session, progress)
    if report.succeeded is not None:
        yield _succeeded(book, report.session, report.succeeded, ended)
    for failed in report.failed:
        yield _failed(book, report.session, failed, now, ended)
    for snoozed in report.snoozed:
        yield _snoozed(book, report.session, snoozed, now, ended)
    for cancelled in report.cancelled:
        yield _cancelled(book, report.session, cancelled, ended)
    if report.handed_back is not None:
        yield _handed_back(book, report.session, report.handed_back, now, ended)


def _refused(session: str, kind: str, tenant: str, execution: str, token: int, reason: str) -> Event:
    return facts.ReportRefused(session, kind, tenant[:128], execution[:256], token, reason)


def _bounded(session: str, kind: str, refused: list[Event]) -> list[Event]:
    """Refusals of one report, so that a frame holds them: those beyond the limit are counted in one."""
    more = len(refused) - REFUSALS_MAX
    if more <= 0:
        return refused
    return [*refused[:REFUSALS_MAX], _refused(session, kind, "", "", -1, f"{REFUSED}, {more} more rows")]


def _running(book: Book, session: str, tenant: str, name: str, token: int) -> Held | None:
    """The attempt that runs under that token in that session; None if it does not."""
    key = keys.execution_row(tenant, name)
    execution = book.running.get(key)
    if execution is None or execution.token != token or execution.session != session:
        return None
    return Held(key, token, execution)


def _succeeded(book: Book, session: str, result: Succeeded, ended: Mapping[int, str]) -> list[Event]:
    rows: list[tuple[int, str, int, int, int, bytes]] = []
    refused: list[Event] = []
    taken: set[int] = set()
    get = book.running.get
    tenants = [tenant.encode() + b"\0" for tenant in result.tenants]
    columns = zip(
        result.tenant,
        result.executions,
        result.tokens,
        result.start_delay_ms,
        result.run_ms,
        result.results or repeat(b"", len(result.tokens)),
        strict=True,
    )
    for row in columns:
        number, name, token, _, _, _ = row
        execution = get(tenants[number] + name.encode())
        if (
            execution is not None
            and execution.token == token
            and execution.session == session
            and token not in taken
        ):
            taken.add(token)
            rows.append(row)
        elif ended.get(token) != "succeeded" and token not in taken:
            refused.append(_refused(session, "result", result.tenants[number], name, token, REFUSED))
    refused = _bounded(session, "result", refused)
    if not rows:
        return refused
    tenant, executions, tokens, start_delay_ms, run_ms, results = map(list, zip(*rows, strict=True))
    event = facts.AttemptsSucceeded(
        tenants=result.tenants,
        tenant=tenant,
        executions=executions,
        tokens=tokens,
        start_delay_ms=start_delay_ms,
        run_ms=run_ms,
        results=results if result.results else [],
    )
    return [event, *refused]


def _failed(book: Book, session: str, failed: Failed, now: int, ended: Mapping[int, str]) -> list[Event]:
    held = _running(book, session, failed.tenant, failed.execution, failed.token)
    if held is None:
        if ended.get(failed.token) == "failed":
            return []
        return [_refused(session, "result", failed.tenant, failed.execution, failed.token, REFUSED)]
    message = legible(failed.message, MESSAGE_CHARS_MAX)
    error_type = legible(failed.error_type, ERROR_TYPE_CHARS_MAX)
    told = msgspec.structs.replace(failed, message=message, error_type=error_type)
    if held.execution.is_stopping:
        return [_ended_as_cancelled(held, f"{error_type}: {message}")]
    return [*_failure(book, held, told, now), *_bad_wait(session, failed)]


def _ended_as_cancelled(held: Held, cause: str) -> Event:
    return facts.AttemptCancelled(*keys.names(held.key), held.execution.attempt, held.token, cause)


def _bad_wait(session: str, failed: Failed) -> list[Event]:
    """The wait that the task asked for, where it is refused; the failure counts all the same."""
    wait_ms = failed.retry_after_ms
    if wait_ms is None or is_sane(wait_ms):
        return []
    reason = f"{wait_ms} ms, not 0 to {RETRY_AFTER_MAX_MS}"
    return [_refused(session, "retry_after", failed.tenant, failed.execution, failed.token, reason)]


def _policy(book: Book, held: Held) -> Policy:
    return spec_of(book, held.key, held.execution.version).policy


def _failure(book: Book, held: Held, failed: Failed, now: int) -> list[Event]:
    execution, policy = held.execution, _policy(book, held)
    failing = Failing(
        failed.tenant,
        failed.execution,
        execution.failures + 1,
        failed.error_type,
        failed.is_permanent,
        failed.retry_after_ms,
    )
    follows = after_failure(policy, failing, deadline_at(policy, execution), now)
    ended = facts.AttemptFailed(
        tenant=failed.tenant,
        execution=failed.execution,
        attempt=execution.attempt,
        token=failed.token,
        session=execution.session,
        error_type=failed.error_type,
        message=failed.message,
        is_permanent=failed.is_permanent,
        retry_at=NONE_AT if isinstance(follows, GiveUp) else follows.at,
        start_delay_ms=failed.start_delay_ms,
        run_ms=failed.run_ms,
    )
    if not isinstance(follows, GiveUp):
        return [ended]
    return [ended, dead(held, follows.cause, failed.error_type, failed.message, now)]


def overrun(book: Book, held: Held, error_type: str, message: str, now: int) -> list[Event]:
    """The owner ends an attempt of which nothing is heard beyond its time: its token is worth nothing from here on."""
    tenant, name = keys.names(held.key)
    if held.execution.is_stopping:
        return [_ended_as_cancelled(held, "it did not stop when it was asked to")]
    failed = Failed(tenant, name, held.token, error_type, message, False)
    return _failure(book, held, failed, now)


def _snoozed(book: Book, session: str, snoozed: Snoozed, now: int, ended: Mapping[int, str]) -> list[Event]:
    held = _running(book, session, snoozed.tenant, snoozed.execution, snoozed.token)
    if held is None:
        if ended.get(snoozed.token) in ("snoozed", "failed"):
            return []
        return [_refused(session, "result", snoozed.tenant, snoozed.execution, snoozed.token, REFUSED)]
    if held.execution.is_stopping:
        return [_ended_as_cancelled(held, "it was asked to stop")]
    event = facts.AttemptSnoozed(
        snoozed.tenant,
        snoozed.execution,
        held.execution.attempt,
        snoozed.token,
        session,
        legible(snoozed.reason, REASON_CHARS_MAX),
        _snoozed_until(snoozed, now),
        snoozed.start_delay_ms,
        snoozed.run_ms,
    )
    return [event]


def _snoozed_until(snoozed: Snoozed, now: int) -> int:
    after_ms = snoozed.after_ms if snoozed.until_at is None else snoozed.until_at - now
    return now + min(max(after_ms, 0), SNOOZE_MAX_MS)


def _cancelled(book: Book, session: str, cancelled: CancelledByTask, ended: Mapping[int, str]) -> list[Event]:
    tenant, name, token = cancelled.tenant, cancelled.execution, cancelled.token
    held = _running(book, session, tenant, name, token)
    if held is not None:
        return [_ended_as_cancelled(held, legible(cancelled.reason, REASON_CHARS_MAX))]
    return [] if ended.get(token) == "failed" else [_refused(session, "result", tenant, name, token, REFUSED)]


def _progressed(book: Book, session: str, progress: Progress) -> list[Event]:
    tenant, name, token = progress.tenant, progress.execution, progress.token
    held = _running(book, session, tenant, name, token)
    if held is None:
        return [_refused(session, "progress", tenant, name, token, REFUSED)]
    if not 0 <= progress.fraction <= 1:
        reason = f"a share of progress is from 0 to 1, not {progress.fraction}"
        return [_refused(session, "progress", tenant, name, token, reason)]
    event = facts.AttemptProgressed(
        tenant,
        name,
        held.execution.attempt,
        token,
        progress.fraction,
        legible(progress.text, REASON_CHARS_MAX),
        progress.details,
    )
    return [event]


def _handed_back(
    book: Book, session: str, back: HandedBack, now: int, ended: Mapping[int, str]
) -> list[Event]:
    held: list[Held] = []
    events: list[Event] = []
    taken: set[int] = set()
    for number, name, token in zip(back.tenant, back.executions, back.tokens, strict=True):
        tenant = back.tenants[number]
        if token in taken:
            continue
        item = _running(book, session, tenant, name, token)
        if item is not None:
            taken.add(token)
            held.append(item)
        elif ended.get(token) != "handed_back":
            events.append(_refused(session, "hand-back", tenant, name, token, REFUSED))
    return [*returned(book, "handed_back", held, now), *_bounded(session, "hand-back", events)]


def _columns(held: list[Held]) -> dict[str, list[int] | list[str]]:
    tenants, sessions = Names(), Names()
    named = [keys.names(item.key) for item in held]
    return {
        "tenant": tenants.column([tenant for tenant, _ in named]),
        "executions": [execution for _, execution in named],
        "tokens": [item.token for item in held],
        "session": sessions.column([item.execution.session for item in held]),
        "tenants": tenants.texts,
        "sessions": sessions.texts,
    }


def _stopped(held: list[Held], cause: str) -> list[Event]:
    return [_ended_as_cancelled(item, cause) for item in held if item.execution.is_stopping]


def returned(book: Book, reason: str, held: list[Held], now: int) -> list[Event]:
    """Grants given back by the worker (`handed_back`) or taken back by the owner (`withdrawn`), uncounted.

    After three withdrawals an execution waits before its next grant. One that was asked to stop ends as cancelled.
    """
    live = [item for item in held if not item.execution.is_stopping]
    events = _stopped(held, reason)
    if not live:
        return events
    waits = [
        withdrawal_wait_ms(item.execution.withdrawals + 1) if reason == "withdrawn" else 0 for item in live
    ]
    columns = _columns(live)
    wait_until = [now + wait if wait else NONE_AT for wait in waits]
    events.insert(0, facts.GrantsReturned(reason=reason, wait_until=wait_until, **columns))  # type: ignore[arg-type]
    for item in live:
        why = expired(_policy(book, item), item.execution, now)
        if why:
            events.append(expiry(item, why, now))
    return events


def lost(book: Book, cause: str, held: list[Held], now: int) -> list[Event]:
    """Attempts whose lease is over or that their session no longer holds: a further attempt at once, up to the cap."""
    live = [item for item in held if not item.execution.is_stopping]
    events = _stopped(held, cause)
    if not live:
        return events
    follows = [_after_loss(book, item, now) for item in live]
    has_retry = [not isinstance(step, GiveUp) for step in follows]
    events.insert(0, facts.AttemptsLost(cause=cause, has_retry=has_retry, **_columns(live)))  # type: ignore[arg-type]
    for item, step in zip(live, follows, strict=True):
        if isinstance(step, GiveUp):
            events.append(dead(item, step.cause, "Lost", _lost_message(item), now))
    return events


def _after_loss(book: Book, item: Held, now: int) -> Retry | GiveUp:
    policy = _policy(book, item)
    return after_loss(policy, item.execution.losses + 1, deadline_at(policy, item.execution), now)


def _lost_message(item: Held) -> str:
    return f"its workers were lost {item.execution.losses + 1} times"


def died(book: Book, held: Held, now: int) -> list[Event]:
    """The loss of a waiting execution that was withdrawn from a session which then died: a payload may have killed it."""
    follows = _after_loss(book, held, now)
    columns = _columns([held])
    event = facts.AttemptsLost(cause="session_died", has_retry=[not isinstance(follows, GiveUp)], **columns)  # type: ignore[arg-type]
    if not isinstance(follows, GiveUp):
        return [event]
    return [event, dead(held, follows.cause, "Lost", _lost_message(held), now)]
