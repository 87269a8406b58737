"""What the owner makes of workers' reports: results, hand-backs, offers, held lists, ticks, ends of sessions."""

from __future__ import annotations

from collections import defaultdict
from typing import Final

import structlog

from minutebook.domain import events as facts
from minutebook.domain import keys
from minutebook.domain.book import Book
from minutebook.domain.events import Event
from minutebook.domain.giving_up import Held
from minutebook.domain.offers import Session, acknowledge, compare_held, first_shown, hear
from minutebook.domain.placing import spec_of
from minutebook.domain.records import Inbox, Report, Tick
from minutebook.domain.results import (
    decide_report,
    died,
    lost,
    overrun,
    returned,
)
from minutebook.domain.rules import TIMEOUT_GRACE_MS
from minutebook.domain.senseless import NAME_CHARS_MAX, senseless
from minutebook.log.draft import Draft
from streams.sessions import TICK_WAIT_MS, Sessions

TAKEN_ROWS_MAX: Final = 8_000
STUCK_ROWS_MAX: Final = 5
"""Stuck, stopped as failed, dead, and an alert of either kind."""

log = structlog.get_logger()


class Reports:
    """Turns reports into events of a draft, and into answers that are sent once its frame is valid."""

    def __init__(self, book: Book, sessions: Sessions, partition: int, owner_id: str) -> None:
        self._owner_id = owner_id
        self._book = book
        self._sessions = sessions
        self._partition = partition
        self._cancels: dict[str, set[int]] = defaultdict(set)
        self._over: set[str] = set()
        self._ended: list[Session] = []
        self.tick_sent_at: int | None = None
        self.tick_acknowledged_at: int | None = None
        self.tick_number = 0

    def hear_ahead(self, offset: int, report: Report, stamp: int) -> None:
        """The pulse in a report whose results must wait: what its session offers, and which grants arrived."""
        if senseless(report, self._book.cursor.position):
            return
        session = self._sessions.speaker(report)
        if session is None:
            self._sessions.heard[offset] = False
            return
        is_new = hear(session, report, stamp)
        session.is_void = session.is_void or not is_new
        self._note_acknowledged(session, report, stamp)
        acknowledge(session, report)
        self._sessions.heard[offset] = is_new

    def take(self, offset: int, report: Report, stamp: int, draft: Draft) -> bool:
        """One report, but for its claims. False if it is refused, or of a session that is over: then they are, too."""
        reason = senseless(report, self._book.cursor.position)
        if reason:
            draft.add(facts.ReportRefused(report.session[:NAME_CHARS_MAX], "report", "", "", -1, reason))
            return False
        speaker = self._sessions.get(report.session)
        if speaker is not None:
            self._note_acknowledged(speaker, report, stamp)
        for step in decide_report(self._book, report, draft.now, self._sessions.ended_tokens):
            for event in step:
                draft.add(event)
                self._note_ended(event)
        if self._sessions.get(report.session) is None and self._sessions.is_over(report.session):
            self._over.add(report.session)
            return False
        self._pulse(offset, report, stamp, draft)
        return True

    def _note_acknowledged(self, session: Session, report: Report, stamp: int) -> None:
        """How long a grant took to be shown by a report, of one that this report is the first to show."""
        shown = first_shown(session, report)
        sent_at = None if shown is None else session.sent_at.get(shown >> 16)
        if shown is not None and sent_at:
            self._sessions.acknowledged.append((shown, stamp - sent_at))

    def _note_ended(self, event: Event) -> None:
        match event:
            case facts.AttemptsSucceeded():
                self._sessions.remember_ended(event.tokens, "succeeded")
            case facts.AttemptFailed() | facts.AttemptCancelled():
                self._sessions.remember_ended([event.token], "failed")
            case facts.AttemptSnoozed():
                self._sessions.remember_ended([event.token], "snoozed")
            case facts.GrantsReturned():
                self._sessions.remember_ended(event.tokens, event.reason)
            case _:
                return

    def _pulse(self, offset: int, report: Report, stamp: int, draft: Draft) -> None:
        session = self._sessions.speaker(report)
        if session is None:
            return
        is_new = self._sessions.heard.get(offset)
        if is_new is None and not (is_new := hear(session, report, stamp)):
            session.is_void = True
        if not is_new:
            return
        if session.is_leaving:
            late = [token for token in session.running if token > session.last_token]
            self._add(
                draft,
                returned(
                    self._book,
                    "handed_back",
                    self._sessions.held(session, late[: _portion(draft)]),
                    draft.now,
                ),
            )
        if report.progress:
            acknowledge(session, report)
        if report.full is not None:
            self._held(session, report, report.full.held, draft)

    def _held(self, session: Session, report: Report, held: list[int], draft: Draft) -> None:
        last_token = -1 if report.pulse is None else report.pulse.last_token
        missing = compare_held(session, held, last_token, report.sequence)
        if missing.lost:
            gone = self._sessions.held(session, missing.lost[: _portion(draft)])
            self._add(draft, lost(self._book, "not_held", gone, draft.now))
        if missing.never_taken:
            self.withdraw(session, missing.never_taken, draft)
        for token in held:
            found = self._sessions.held(session, [token])
            if not found or found[0].execution.is_stopping:
                self._cancels[session.name].add(token)

    def tick(self, tick: Tick, stamp: int, now: int) -> None:
        """A mark of an owner. One of ours is evidence, unless the broker took it late: then it was away."""
        if (tick.owner, tick.number) != (self._owner_id, self.tick_number) or self.tick_sent_at is None:
            return
        acknowledged_at = now if self.tick_acknowledged_at is None else self.tick_acknowledged_at
        if max(acknowledged_at - self.tick_sent_at, abs(stamp - self.tick_sent_at)) > TICK_WAIT_MS:
            log.warning("leases_restarted", partition=self._partition)
            self._sessions.restart_deadlines(stamp)
        else:
            self._sessions.evidence = max(self._sessions.evidence, stamp)
        self.tick_sent_at = None

    def withdraw(self, session: Session, tokens: list[int], draft: Draft) -> None:
        """Grants that nobody acknowledged go back; the session offers nothing until its next pulse."""
        held = self._sessions.held(session, tokens[: _portion(draft)])
        if not held:
            return
        self._add(draft, returned(self._book, "withdrawn", held, draft.now))
        session.is_void = True
        session.withdraw_ms = min(session.withdraw_ms * 2, session.lease_ms)
        session.withdrawn.update(item.key for item in held)
        self._cancels[session.name].update(item.token for item in held)

    def end_overruns(self, draft: Draft) -> None:
        """Attempts long past their time, or without progress for too long, on evidence of stamps."""
        sessions, evidence = self._sessions, self._sessions.evidence
        message = f"nothing was heard of it {TIMEOUT_GRACE_MS // 1_000} s after its time was over"
        for token in sessions.overruns.over(evidence)[: _portion(draft)]:
            self._overrun(token, "Timeout", message, draft)
        for token, since in sessions.overruns.stuck(evidence):
            held = self._running(token)
            if held is not None:
                self._stuck(held, since, draft)
            if draft.room() < STUCK_ROWS_MAX:
                break  # the next look finds the others

    def _stuck(self, held: Held, since: int, draft: Draft) -> None:
        tenant, name = keys.names(held.key)
        execution = held.execution
        draft.add(facts.AttemptStuck(tenant, name, execution.attempt, held.token, execution.session, since))
        if spec_of(self._book, held.key, execution.version).policy.is_stuck_stopped:
            self._overrun(held.token, "Stuck", f"no progress for {(draft.now - since) // 1_000} s", draft)

    def _running(self, token: int) -> Held | None:
        session = self._sessions.holder(token)
        found = [] if session is None else self._sessions.held(session, [token])
        return found[0] if found else None

    def _overrun(self, token: int, error_type: str, message: str, draft: Draft) -> None:
        """The owner ends an attempt; its worker is told to stop it."""
        held = self._running(token)
        if held is None:
            self._sessions.overruns.ended([token])
            return
        self._add(draft, overrun(self._book, held, error_type, message, draft.now))
        self._cancels[held.execution.session].add(token)

    def end(self, session: Session, cause: str, draft: Draft) -> None:
        """A session is over: what it holds is lost, and what was withdrawn from it counts as a loss.

        More than a frame holds is lost in several, before the session ends.
        """
        tokens, most = list(session.running), _portion(draft)
        self._add(draft, lost(self._book, cause, self._sessions.held(session, tokens[:most]), draft.now))
        session.is_void = True
        if len(tokens) > most:
            return
        for key in session.withdrawn:
            execution = self._book.executions.get(key)
            if execution is not None and execution.status in ("queued", "scheduled"):
                self._add(draft, died(self._book, Held(key, execution.token, execution), draft.now))
        if self._book.sessions.get(session.name.encode()) is not None:
            draft.add(facts.SessionEnded(session.name, cause))
            self._over.add(session.name)
        self._ended.append(session)

    def _add(self, draft: Draft, events: list[Event]) -> None:
        for event in events:
            draft.add(event)

    def replies(self) -> list[Inbox]:
        """Answers gathered since the last call; ended sessions are dropped with it."""
        found = [
            Inbox(session, self._partition, self._book.cursor.position, 0, [], None, sorted(tokens))
            for session, tokens in self._cancels.items()
        ]
        found += [
            Inbox(session, self._partition, self._book.cursor.position, 0, [], None, [], True)
            for session in self._over
        ]
        for session in self._ended:
            self._sessions.drop(session.name)
        self.forget()
        return found

    def forget(self) -> None:
        """Drop what was gathered for a draft that is forgotten."""
        self._cancels.clear()
        self._over.clear()
        self._ended.clear()


def _portion(draft: Draft) -> int:
    """Attempts that may be taken from workers in one go: each may be a row, a dead letter and an alert."""
    return min(TAKEN_ROWS_MAX, draft.room() // 3)
