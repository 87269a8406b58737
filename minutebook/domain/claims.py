"""Claims: grants asked for by name, by consumers of an open queue. Decided in the order of the log, each attempt once.

What is granted is on record; a refusal changes nothing and is a reply alone. A claim sent again gets the same token
while its attempt runs. Pure over the book and the session as it was heard.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

from minutebook import ids
from minutebook.domain import keys
from minutebook.domain.book import Book
from minutebook.domain.grants import NO_PERMITS, Permit, Row
from minutebook.domain.keys import Lane
from minutebook.domain.offers import Session
from minutebook.domain.placing import spec_of
from minutebook.domain.records import Claim, ClaimAnswer
from minutebook.domain.state import Execution, Spec

CLAIMS_MAX: Final = 1_000
EXECUTION_CHARS_MAX: Final = 256

GRANTED: Final = "granted"
REPEATED: Final = "repeated"
REFUSALS: Final = {
    "unknown": "no such execution is open; drop the due record",
    "not_open_queue": "its queue is not an open one; drop the due record",
    "paused_queue": "nothing of its queue is granted now; drop the due record, it comes again once the queue is resumed",
    "not_queued": "it runs, or waits for its retry; drop the due record, another one follows if it waits again",
    "other_attempt": "another attempt waits; drop the due record, that attempt has one of its own",
    "no_session": "send a full pulse with offer 0 first, then claim again",
    "leaving": "this session said that it takes nothing more; claim in a new one",
    "later": "nothing is granted at this moment; claim again",
    "no_permit": "a limit lets nothing more start at this moment; claim again, a permit is asked for",
}
"""Code of a refusal -> what follows for the consumer. Both are in the answer, as `code: remedy`."""


class Decision(NamedTuple):
    """What one claim comes to: `outcome` is granted, repeated, or the code of a refusal.

    `row` is its place among the grants of its report, `token` that of the attempt that runs already; -1 = none.
    """

    claim: Claim
    queue: str
    outcome: str
    row: int = -1
    token: int = -1

    def answer(self, first_token: int) -> ClaimAnswer:
        """The answer, where the first grant of the report has that token."""
        tenant, execution, attempt = self.claim.tenant, self.claim.execution, self.claim.attempt
        if self.row >= 0:
            return ClaimAnswer(tenant, execution, attempt, first_token + self.row)
        if self.token >= 0:
            return ClaimAnswer(tenant, execution, attempt, self.token)
        return ClaimAnswer(tenant, execution, attempt, None, f"{self.outcome}: {REFUSALS[self.outcome]}")


class Decided(NamedTuple):
    """Grants to be recorded together, in the order of their rows, and what each claim of the report comes to; `permits`
    by the row of the grant."""

    grants: list[Row]
    decisions: list[Decision]
    payload_bytes: int
    permits: Mapping[int, list[Permit]] = NO_PERMITS


def senseless(claims: Sequence[Claim]) -> str:
    """Why claims cannot be taken at all; empty if they can."""
    if len(claims) > CLAIMS_MAX:
        return f"at most {CLAIMS_MAX} claims"
    for claim in claims:
        if not ids.is_name(claim.tenant) or not 0 < len(claim.execution) <= EXECUTION_CHARS_MAX:
            return f"a claim names a tenant and an execution of at most {EXECUTION_CHARS_MAX} characters"
    return ""


def standing(session: Session | None, stamp: int, now: int, can_grant: bool) -> str:
    """Code of the refusal of every claim in a report that the broker stamped `stamp` (ms); empty if none.

    As for grants to offers: nothing before all reports are read, nor to whom was not heard of late.
    """
    if session is None or not session.is_known:
        return "no_session"
    if session.is_leaving:
        return "leaving"
    if not can_grant or now - stamp >= 2 * session.pulse_ms:
        return "later"
    return ""


Permitted = Callable[[Lane], list[Permit] | None]
"""The permits under which one more execution of a lane may start; none where it needs none, None where one is lacking."""


def decide_claims(
    book: Book, session: str, claims: Sequence[Claim], room_bytes: int, permitted: Permitted
) -> Decided:
    """The claims of one report of `session`, which may be granted payloads of `room_bytes` in this frame."""
    grants: list[Row] = []
    permits: dict[int, list[Permit]] = {}
    decisions: list[Decision] = []
    rows: dict[bytes, int] = {}
    payload_bytes = 0
    for claim in claims:
        key = keys.execution_row(claim.tenant, claim.execution)
        decision, wanted = _decide(book, key, session, claim)
        if decision.outcome == GRANTED and key in rows:
            decision = decision._replace(outcome=REPEATED, row=rows[key])
        elif wanted is not None and payload_bytes >= room_bytes:
            decision = decision._replace(outcome="later")
        elif wanted is not None:
            found = permitted(wanted.lane)
            if found is None:
                decisions.append(decision._replace(outcome="no_permit"))
                continue
            if found:
                permits[len(grants)] = found
            decision = decision._replace(row=len(grants))
            rows[key] = len(grants)
            grants.append((claim.tenant, claim.execution, claim.attempt, session))
            payload_bytes += wanted.payload_bytes
        decisions.append(decision)
    return Decided(grants, decisions, payload_bytes, permits)


def refuse(claims: Sequence[Claim], code: str) -> Decided:
    """All claims of a report refused alike."""
    return Decided([], [Decision(claim, "", code) for claim in claims], 0)


class _Wanted(NamedTuple):
    """What would run."""

    lane: Lane
    payload_bytes: int


def _decide(book: Book, key: bytes, session: str, claim: Claim) -> tuple[Decision, _Wanted | None]:
    """One claim, and what would run if it is granted: the compare of the compare-and-set."""
    execution = book.execution(key)
    if execution is None:
        return Decision(claim, "", "unknown"), None
    spec = spec_of(book, key, execution.version)
    if execution.status == "running" and (execution.session, execution.attempt) == (session, claim.attempt):
        return Decision(claim, spec.queue, REPEATED, token=execution.token), None
    refusal = _refusal(book, execution, spec, claim)
    wanted = _Wanted(execution.lane(spec, claim.tenant), len(spec.payload))
    return Decision(claim, spec.queue, refusal or GRANTED), None if refusal else wanted


def _refusal(book: Book, execution: Execution, spec: Spec, claim: Claim) -> str:
    queue = book.queue(spec.queue)
    if queue is None or not queue.is_open:
        return "not_open_queue"
    if queue.is_paused:
        return "paused_queue"
    if execution.attempt != claim.attempt:
        return "other_attempt"
    return "" if execution.status == "queued" else "not_queued"
