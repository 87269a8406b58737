"""What a consumer says to the owner of one partition, and what it makes of the answers. No I/O: instants are given.

Every report is a full pulse: it keeps the lease, lists every token held, and brings claims and results along. Instants
are ms; `now` is any clock that only goes forward.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

LEASE_MS = 10_000
PULSE_MS = 3_000
PULSE_EVERY_MS = 1_000
CLAIM_AGAIN_MS = 1_000
CLAIMS_A_REPORT = 500
STARTED_KEPT_MAX = 10_000
AGAIN = ("no_session", "later", "no_permit")
"""Codes of refusals after which the claim is sent again; after any other the due record is dropped."""

Due = dict[str, Any]
Name = tuple[str, str, int]
"""(tenant, execution, attempt)."""


@dataclass
class Run:
    """One attempt to run, under its token."""

    partition: int
    token: int
    due: Due


@dataclass
class Ended:
    """How a run ended; `error` None = well."""

    run: Run
    run_ms: int
    error: Exception | None = None


@dataclass
class _Claim:
    due: Due
    sent_at: int | None = None
    """None: to be sent with the next report."""


@dataclass
class Said:
    """A report on its way: what counts once the broker has it."""

    datum: dict[str, Any]
    at: int
    claimed: list[Name]
    ended: list[int]
    handed_back: list[int]


@dataclass
class Session:
    """This consumer toward one partition: session `<worker id>.<number>`."""

    worker: str
    partition: int
    name: str = "consumer"
    number: int = 0
    sequence: int = 0
    last_token: int = -1
    said_at: int | None = None
    claims: dict[Name, _Claim] = field(default_factory=dict)
    held: dict[int, Due] = field(default_factory=dict)
    ended: dict[int, Ended] = field(default_factory=dict)
    handing_back: dict[int, tuple[str, str]] = field(default_factory=dict)
    started: dict[int, None] = field(default_factory=dict)
    """The latest tokens, in order: a due record that comes twice is claimed twice, and answered alike."""

    @property
    def id(self) -> str:
        """The session's id."""
        return f"{self.worker}.{self.number}"

    def claim(self, due: Due) -> None:
        """Ask for what a due record names. It is asked for until it is answered."""
        name = (due["tenant"], due["execution"], due["attempt"])
        self.claims.setdefault(name, _Claim(due))

    def end(self, ended: Ended) -> None:
        """A run has ended; its result is told with the next report, if it is still ours."""
        if ended.run.token in self.held:
            self.ended[ended.run.token] = ended

    # -- what is said

    def report(self, now: int) -> Said | None:
        """What to say now, None if there is nothing. Call `acknowledged` once the broker has it."""
        unsaid = [name for name, claim in self.claims.items() if self._is_to_be_sent(claim, now)]
        has_news = unsaid or self.ended or self.handing_back
        if not has_news and self.said_at is not None and now - self.said_at < PULSE_EVERY_MS:
            return None
        claimed = unsaid[:CLAIMS_A_REPORT]
        for name in claimed:
            self.claims[name].sent_at = now
        self.said_at = now
        self.sequence += 1
        datum = {
            "session": self.id,
            "sequence": self.sequence,
            "pulse": {"offer": 0, "last_token": self.last_token, "is_leaving": False},
            "full": {
                "worker": self.name,
                "version": "1",
                "tasks": [],
                "queues": [],
                "lease_ms": LEASE_MS,
                "pulse_ms": PULSE_MS,
                "held": sorted(self.held),
            },
            "succeeded": self._succeeded(),
            "failed": [_failed(one) for one in self.ended.values() if one.error is not None][:100],
            "handed_back": self._handed_back(),
            "claims": [dict(zip(("tenant", "execution", "attempt"), name, strict=True)) for name in claimed],
        }
        told = {row["token"] for row in datum["failed"]}  # type: ignore[union-attr,index]
        ended = [token for token, one in self.ended.items() if one.error is None or token in told]
        return Said(datum, now, claimed, ended, list(self.handing_back))

    def _is_to_be_sent(self, claim: _Claim, now: int) -> bool:
        return claim.sent_at is None or now - claim.sent_at >= CLAIM_AGAIN_MS

    def _succeeded(self) -> dict[str, Any] | None:
        rows = [one for one in self.ended.values() if one.error is None]
        if not rows:
            return None
        columns = _columns([(one.run.due["tenant"], one.run.due["execution"]) for one in rows])
        return columns | {
            "tokens": [one.run.token for one in rows],
            "start_delay_ms": [0] * len(rows),
            "run_ms": [one.run_ms for one in rows],
        }

    def _handed_back(self) -> dict[str, Any] | None:
        if not self.handing_back:
            return None
        return _columns(list(self.handing_back.values())) | {"tokens": list(self.handing_back)}

    def acknowledged(self, said: Said) -> None:
        """The broker has that report: what it tells is held no more."""
        for token in (*said.ended, *said.handed_back):
            self.held.pop(token, None)
            self.ended.pop(token, None)
            self.handing_back.pop(token, None)

    # -- what is answered

    def read(self, inbox: dict[str, Any], broker_now: int) -> list[Run]:
        """What to start, of an inbox record for this worker from this partition. `broker_now`: the broker's time, ms."""
        if inbox["session"] != self.id:
            return []
        if inbox["is_session_over"]:
            self._start_anew()
            return []
        is_late = inbox["start_by"] and broker_now > inbox["start_by"]
        runs = [
            run for name, token in _tokens(inbox) if (run := self._taken(name, token, is_late)) is not None
        ]
        for token in inbox["cancelled"]:
            self.held.pop(token, None)
            self.ended.pop(token, None)
        for answer in inbox["answers"]:
            if answer["token"] is None:
                self._refused((answer["tenant"], answer["execution"], answer["attempt"]), answer["refusal"])
        return runs

    def _taken(self, name: Name, token: int, is_late: bool) -> Run | None:
        """A token is started once, and only if it was asked for and comes in time; else it is handed back."""
        claim = self.claims.pop(name, None)
        if token in self.started:
            return None
        self.started[token] = None
        if len(self.started) > STARTED_KEPT_MAX:
            del self.started[next(iter(self.started))]
        self.last_token = max(self.last_token, token)
        if claim is None or is_late:
            self.held[token] = {} if claim is None else claim.due
            self.handing_back[token] = name[:2]
            return None
        self.held[token] = claim.due
        return Run(self.partition, token, claim.due)

    def _refused(self, name: Name, refusal: str) -> None:
        if refusal.partition(":")[0] not in AGAIN:
            self.claims.pop(name, None)

    def _start_anew(self) -> None:
        """The session is over: what it held is lost, what it asked for is asked for again."""
        self.number += 1
        self.sequence, self.said_at = 0, None
        self.held.clear()
        self.ended.clear()
        self.handing_back.clear()
        for claim in self.claims.values():
            claim.sent_at = None


def _tokens(inbox: dict[str, Any]) -> list[tuple[Name, int]]:
    """(name, token) of what an inbox record gives: new grants, and answers to claims, which may name the same."""
    found: list[tuple[Name, int]] = []
    granted = inbox["granted"]
    if granted is not None:
        columns = (granted["tenant"], granted["executions"], granted["attempts"], granted["rows"])
        for tenant, execution, attempt, row in zip(*columns, strict=True):
            found.append(((granted["tenants"][tenant], execution, attempt), (inbox["frame"] << 16) + row))
    for answer in inbox["answers"]:
        if answer["token"] is not None:
            found.append(((answer["tenant"], answer["execution"], answer["attempt"]), answer["token"]))
    return found


def _columns(names: list[tuple[str, str]]) -> dict[str, Any]:
    tenants = sorted({tenant for tenant, _ in names})
    return {
        "tenants": tenants,
        "tenant": [tenants.index(tenant) for tenant, _ in names],
        "executions": [execution for _, execution in names],
    }


def _failed(ended: Ended) -> dict[str, Any]:
    return {
        "tenant": ended.run.due["tenant"],
        "execution": ended.run.due["execution"],
        "token": ended.run.token,
        "error_type": type(ended.error).__name__,
        "message": str(ended.error)[:8_192],
        "is_permanent": False,
        "retry_after_ms": None,
        "start_delay_ms": 0,
        "run_ms": ended.run_ms,
    }
