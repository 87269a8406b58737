"""Reports of workers to events: results, hand-backs, losses. An old token changes nothing and is refused on record."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from minutebook.domain import events as facts
from minutebook.domain import keys
from minutebook.domain.book import Book
from minutebook.domain.due import Names
from minutebook.domain.events import Event
from minutebook.domain.records import Failed, HandedBack, Report, Succeeded
from minutebook.domain.retries import GiveUp, after_failure, after_loss, withdrawal_wait_ms
from minutebook.domain.state import NONE_AT, Execution

MESSAGE_CHARS_MAX: Final = 8_192
ERROR_TYPE_CHARS_MAX: Final = 256
REFUSED: Final = "stale token"
REFUSALS_MAX: Final = 1_000


class Held(NamedTuple):
    """A running attempt."""

    key: bytes
    token: int
    execution: Execution


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
    if report.succeeded is not None:
        yield _succeeded(book, report.session, report.succeeded, ended)
    for failed in report.failed:
        yield _failed(book, report.session, failed, now, ended)
    if report.handed_back is not None:
        yield _handed_back(book, report.session, report.handed_back, ended)


def _refused(session: str, kind: str, tenant: str, execution: str, token: int, reason: str) -> Event:
    return facts.ReportRefused(session, kind, tenant[:128], execution[:256], token, reason)


def _bounded(session: str, kind: str, refused: list[Event]) -> list[Event]:
    """Refusals of one report, so that a frame holds them: those beyond the limit are counted in one."""
    more = len(refused) - REFUSALS_MAX
    if more <= 0:
        return refused
    return [*refused[:REFUSALS_MAX], _refused(session, kind, "", "", -1, f"{REFUSED}, {more} more rows")]


def _is_running(execution: Execution | None, session: str, token: int) -> bool:
    return execution is not None and execution.token == token and execution.session == session


def _succeeded(book: Book, session: str, result: Succeeded, ended: Mapping[int, str]) -> list[Event]:
    rows: list[tuple[int, str, int, int, int]] = []
    refused: list[Event] = []
    taken: set[int] = set()
    get = book.running.get
    tenants = [tenant.encode() + b"\0" for tenant in result.tenants]
    columns = zip(
        result.tenant, result.executions, result.tokens, result.start_delay_ms, result.run_ms, strict=True
    )
    for row in columns:
        number, name, token, _, _ = row
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
    tenant, executions, tokens, start_delay_ms, run_ms = (list(column) for column in zip(*rows, strict=True))
    event = facts.AttemptsSucceeded(
        tenants=result.tenants,
        tenant=tenant,
        executions=executions,
        tokens=tokens,
        start_delay_ms=start_delay_ms,
        run_ms=run_ms,
    )
    return [event, *refused]


def _failed(book: Book, session: str, failed: Failed, now: int, ended: Mapping[int, str]) -> list[Event]:
    key = keys.execution_row(failed.tenant, failed.execution)
    execution = book.running.get(key)
    if execution is None or not _is_running(execution, session, failed.token):
        if ended.get(failed.token) == "failed":
            return []
        return [_refused(session, "result", failed.tenant, failed.execution, failed.token, REFUSED)]
    message = legible(failed.message, MESSAGE_CHARS_MAX)
    error_type = legible(failed.error_type, ERROR_TYPE_CHARS_MAX)
    if execution.is_stopping:
        cause = f"{error_type}: {message}"
        return [
            facts.AttemptCancelled(failed.tenant, failed.execution, execution.attempt, failed.token, cause)
        ]
    return _failure(execution, session, failed, error_type, message, now)


def _failure(
    execution: Execution, session: str, failed: Failed, error_type: str, message: str, now: int
) -> list[Event]:
    follows = after_failure(
        failed.tenant,
        failed.execution,
        execution.failures + 1,
        is_permanent=failed.is_permanent,
        retry_after_ms=failed.retry_after_ms,
        now=now,
    )
    ended = facts.AttemptFailed(
        tenant=failed.tenant,
        execution=failed.execution,
        attempt=execution.attempt,
        token=failed.token,
        session=session,
        error_type=error_type,
        message=message,
        is_permanent=failed.is_permanent,
        retry_at=NONE_AT if isinstance(follows, GiveUp) else follows.at,
        start_delay_ms=failed.start_delay_ms,
        run_ms=failed.run_ms,
    )
    if not isinstance(follows, GiveUp):
        return [ended]
    key = keys.execution_row(failed.tenant, failed.execution)
    return [ended, _dead(Held(key, failed.token, execution), follows.cause, error_type, message, now)]


def _dead(held: Held, cause: str, error_type: str, message: str, now: int) -> Event:
    tenant, name = keys.names(held.key)
    execution = held.execution
    return facts.ExecutionDead(
        tenant=tenant,
        execution=name,
        version=execution.version,
        generation=execution.generation,
        attempt=execution.attempt,
        scheduled_at=execution.scheduled_at,
        due_at=execution.due_at,
        given_up_at=now,
        cause=cause,
        error_type=error_type,
        message=message,
    )


def _handed_back(book: Book, session: str, back: HandedBack, ended: Mapping[int, str]) -> list[Event]:
    held: list[Held] = []
    events: list[Event] = []
    taken: set[int] = set()
    for number, name, token in zip(back.tenant, back.executions, back.tokens, strict=True):
        tenant = back.tenants[number]
        key = keys.execution_row(tenant, name)
        execution = book.running.get(key)
        if token in taken:
            continue
        if execution is not None and _is_running(execution, session, token):
            taken.add(token)
            held.append(Held(key, token, execution))
        elif ended.get(token) != "handed_back":
            events.append(_refused(session, "hand-back", tenant, name, token, REFUSED))
    return [*returned("handed_back", held, NONE_AT), *_bounded(session, "hand-back", events)]


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
    return [
        facts.AttemptCancelled(*keys.names(item.key), item.execution.attempt, item.token, cause)
        for item in held
        if item.execution.is_stopping
    ]


def returned(reason: str, held: list[Held], now: int) -> list[Event]:
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
    return [facts.GrantsReturned(reason=reason, wait_until=wait_until, **columns), *events]  # type: ignore[arg-type]


def lost(cause: str, held: list[Held], now: int) -> list[Event]:
    """Attempts whose lease is over or that their session no longer holds: a further attempt at once, up to the cap."""
    live = [item for item in held if not item.execution.is_stopping]
    events = _stopped(held, cause)
    if not live:
        return events
    follows = [after_loss(item.execution.losses + 1, now) for item in live]
    has_retry = [not isinstance(step, GiveUp) for step in follows]
    events.insert(0, facts.AttemptsLost(cause=cause, has_retry=has_retry, **_columns(live)))  # type: ignore[arg-type]
    for item, step in zip(live, follows, strict=True):
        if isinstance(step, GiveUp):
            message = f"its workers were lost {item.execution.losses + 1} times"
            events.append(_dead(item, step.cause, "Lost", message, now))
    return events


def died(held: Held, now: int) -> list[Event]:
    """The loss of a waiting execution that was withdrawn from a session which then died: a payload may have killed it."""
    losses = held.execution.losses + 1
    follows = after_loss(losses, now)
    columns = _columns([held])
    event = facts.AttemptsLost(cause="session_died", has_retry=[not isinstance(follows, GiveUp)], **columns)  # type: ignore[arg-type]
    if not isinstance(follows, GiveUp):
        return [event]
    return [event, _dead(held, follows.cause, "Lost", f"its workers were lost {losses} times", now)]
