"""What may follow what. Anything absent is an error: a fold that meets it halts the partition.

| status      | event               | becomes                                    |
|-------------|---------------------|--------------------------------------------|
| (none)      | queued, due_granted | queued, running                            |
| (none)      | requested, placed   | scheduled                                  |
| scheduled   | queued, due_granted | queued, running                            |
| scheduled   | cancelled           | cancelled                                  |
| queued      | granted, cancelled  | running, cancelled                         |
| running     | cancelled           | running, asked to stop                     |
| running     | succeeded           | succeeded                                  |
| running     | failed              | scheduled (a further attempt) or given up  |
| running     | lost                | queued (a further attempt) or given up     |
| waiting     | worker_died         | lost, and given up                         |
| running     | returned            | queued, or scheduled until its wait is over |
| running     | stopped             | cancelled                                  |
| running     | snoozed             | scheduled (a further attempt)              |
| waiting     | expired             | skipped, or failed and given up            |
| given up    | redriven            | scheduled (a further attempt)              |
"""

from __future__ import annotations

from typing import Final

from minutebook.errors import BrokenFrameError

LEGAL: Final[dict[tuple[str, str], frozenset[str]]] = {
    ("", "queued"): frozenset({"queued"}),
    ("", "due_granted"): frozenset({"running"}),
    ("", "requested"): frozenset({"scheduled"}),
    ("", "placed"): frozenset({"scheduled"}),
    ("scheduled", "queued"): frozenset({"queued"}),
    ("scheduled", "due_granted"): frozenset({"running"}),
    ("scheduled", "cancelled"): frozenset({"cancelled"}),
    ("queued", "granted"): frozenset({"running"}),
    ("queued", "cancelled"): frozenset({"cancelled"}),
    ("running", "cancelled"): frozenset({"running"}),
    ("running", "succeeded"): frozenset({"succeeded"}),
    ("running", "failed"): frozenset({"scheduled", "failed"}),
    ("running", "lost"): frozenset({"queued", "lost"}),
    ("queued", "worker_died"): frozenset({"lost"}),
    ("scheduled", "worker_died"): frozenset({"lost"}),
    ("running", "returned"): frozenset({"queued", "scheduled"}),
    ("running", "stopped"): frozenset({"cancelled"}),
    ("running", "snoozed"): frozenset({"scheduled"}),
    ("queued", "expired"): frozenset({"skipped", "failed"}),
    ("scheduled", "expired"): frozenset({"skipped", "failed"}),
    ("failed", "redriven"): frozenset({"scheduled"}),
    ("lost", "redriven"): frozenset({"scheduled"}),
}


def require(before: str, event: str, becomes: str, execution: bytes) -> None:
    """Raises BrokenFrameError unless the change is in the table."""
    if becomes not in LEGAL.get((before, event), ()):
        raise BrokenFrameError(f"{execution!r}: {event} cannot take {before or 'nothing'} to {becomes}")


def closed_status(status: str, next_at: int, open_count: int, last_outcome: str) -> str | None:
    """Status of a job that has come to its end: no instant left and no execution open. None while it has not.

    `dead` goes by the execution that reached its outcome last.
    """
    if next_at >= 0 or open_count > 0:
        return None
    if status == "cancelled":
        return "cancelled"
    return "dead" if last_outcome == "dead" else "completed"
