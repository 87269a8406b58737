"""What the demo submits, and what must come of it by plain arithmetic: no schedule code of the product is
used here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

NOTES: Final = 300
SPREAD_MS: Final = 30_000
LEAD_MS: Final = 4_000
MINUTE_MS: Final = 60_000
PAUSED: Final = "paused"
"""Job that is paused for a while, so that it misses instants."""
ZONES: Final = ("UTC", "Europe/Berlin", "Asia/Kolkata", "America/St_Johns")


@dataclass(frozen=True, slots=True)
class Planned:
    """One job: its create body, the status in which it must end, and how each of its executions must end.

    `attempts` is how often an execution is tried where nobody is killed; `is_started` whether a handler may
    see it. `instants` are its instants in ms; None for a cron job, whose instants follow from when it lived.
    One that is not run must be skipped with the reason `skips`; one is due at most `jitter_ms` later.
    """

    body: dict[str, Any] = field(repr=False)
    status: str
    outcome: str = "succeeded"
    attempts: int = 1
    is_started: bool = True
    instants: tuple[int, ...] | None = ()
    skips: str = ""
    jitter_ms: int = 0

    @property
    def id(self) -> str:
        """Job id."""
        return str(self.body["id"])


def plan(now: int) -> list[Planned]:
    """The jobs of a demo that begins at `now` (ms), in order of their first instants, recurring ones in front.

    The first is due 4 s after `now`, the last half a minute after that.
    """
    first = now + LEAD_MS
    due = [first + n * SPREAD_MS // NOTES for n in range(NOTES)]
    notes = [
        Planned(_body(f"note-{n:03}", "demo.note", at, {"n": n}), "completed", instants=(at,))
        for n, at in enumerate(due)
    ]
    one_off = sorted([*notes, *_troubled(first)], key=lambda job: str(job.body["run_at"]))
    return [*_minutely(), *_recurring(first), *one_off]


def cron_instants(submitted: int, cancelled: int) -> tuple[int, ...]:
    """Every whole minute later than `submitted` and not later than `cancelled` (ms): what `* * * * *` means
    in any zone.
    """
    return tuple(range((submitted // MINUTE_MS + 1) * MINUTE_MS, cancelled + 1, MINUTE_MS))


def is_near_minute(now: int, margin_ms: int) -> bool:
    """Whether `now` is so close to a whole minute that it is not certain on which side a command falls."""
    return not margin_ms <= now % MINUTE_MS <= MINUTE_MS - margin_ms


def instant(text: str) -> int:
    """Milliseconds since the epoch of an RFC 3339 instant."""
    return round(datetime.fromisoformat(text).timestamp() * 1000)


def rfc3339(at: int) -> str:
    """`at` (ms) as the API reads it."""
    return datetime.fromtimestamp(at / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def expected_instants(planned: Planned, submitted: int, cancelled: int) -> Sequence[int]:
    """Due instants of a job; a cron job lived from `submitted` to `cancelled` (ms)."""
    return cron_instants(submitted, cancelled) if planned.instants is None else planned.instants


def _troubled(first: int) -> Iterator[Planned]:
    """The jobs that do not simply work."""
    soon, late = first + 500, first + SPREAD_MS - 5_000
    yield Planned(
        _body("third-time-lucky", "demo.third-time-lucky", soon), "completed", attempts=3, instants=(soon,)
    )
    yield Planned(
        _body("hopeless", "demo.hopeless", soon), "dead", outcome="failed", attempts=5, instants=(soon,)
    )
    malformed = _body("malformed", "demo.report", soon, {"pages": 0})
    yield Planned(malformed, "dead", outcome="failed", is_started=False, instants=(soon,))
    yield Planned(_body("cancelled", "demo.note", late), "cancelled", is_started=False)


def _minutely() -> Iterator[Planned]:
    """Cron jobs, every minute; they are cancelled at the end."""
    for zone in ZONES:
        name = f"minutely-{zone.lower().replace('/', '-')}"
        body = {"id": name, "task": "demo.minutely", "cron": "* * * * *", "zone": zone}
        yield Planned(body, "cancelled", instants=None)


def _recurring(first: int) -> Iterator[Planned]:
    """Jobs by interval that end by themselves: spread, overlapping themselves, and paused for a while."""
    yield _interval("spread", "demo.minutely", (first, 5_000, 6), {"jitter": "PT3S"}, jitter_ms=3_000)
    yield _interval("overlapping", "demo.slow", (first, 2_000, 15), {"overlap": "skip"}, skips="overlap")
    latest = {"misfire": {"policy": "latest"}}
    yield _interval(PAUSED, "demo.minutely", (first, 1_000, 20), latest, skips="misfire")


def _interval(
    name: str, task: str, instants: tuple[int, int, int], more: dict[str, Any], **planned: Any
) -> Planned:
    """A job whose `instants` are the first, the step and how many, in ms."""
    first, step_ms, count = instants
    end_at = first + count * step_ms
    body = {"id": name, "task": task, "every": f"PT{step_ms // 1000}S", "start_at": rfc3339(first)}
    body |= {"end_at": rfc3339(end_at)} | more
    return Planned(body, "completed", instants=tuple(range(first, end_at, step_ms)), **planned)


def _body(job_id: str, task: str, at: int, payload: object = None) -> dict[str, Any]:
    return {"id": job_id, "task": task, "run_at": rfc3339(at), "payload": payload}
