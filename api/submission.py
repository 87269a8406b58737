"""From a create body to a job that may be submitted: every field checked, every fault named with its remedy.

What depends on the moment of the log (an id that exists, a key used before) is the owner's to decide.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import msgspec
from msgspec import Raw

from api import policies, timings
from api.bodies import check_distinct, read_object
from api.fields import Fields
from api.problems import Refused
from minutebook.client.models import FieldError
from minutebook.domain.policy import Policy
from minutebook.domain.submit import TAGS_MAX
from minutebook.domain.timing import Timing
from minutebook.errors import ScheduleError
from minutebook.ids import is_name
from minutebook.schedule import ANY_JOB, check_zone_name
from minutebook.times import parse_duration, parse_instant

_DAY_MS: Final = 86_400_000
_AHEAD_MS_MAX: Final = 100 * 366 * _DAY_MS
_TIMEOUT_MS_MIN: Final = 1_000
_TIMEOUT_MS_MAX: Final = 7 * _DAY_MS
_WHEN: Final = ("run_at", "delay", "cron", "every")
FIELDS: Final = frozenset(
    {"id", "task", "payload", "queue", "run_at", "delay", "cron", "zone", "late", "timeout"}
    | {"limit", "notify", "tags"}
    | policies.FIELDS
    | timings.FIELDS
)


class Submission(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """A checked create body. Instants and durations in ms; at most one of run_at, delay_ms, cron, every_ms."""

    id: str | None
    task: str
    payload: bytes
    queue: str
    run_at: int | None
    delay_ms: int | None
    cron: str | None
    every_ms: int | None
    zone: str
    late: str
    timeout_ms: int
    priority: int
    policy: Policy | None
    limit: str
    notify: str
    tags: list[str]
    timing: Timing | None


class _Sound(NamedTuple):
    """What a body says beside id and payload, where nothing is at fault, and the names inside of it."""

    submission: Submission
    names: int


_OWN: Final = frozenset({"id", "payload"})
"""Fields that each job has for itself."""


class SubmissionReader:
    """Reads the create bodies of one request. What they say alike, but for id and payload, is checked once.

    `now`: ms since the epoch; `is_queue_known`: whether a job may go to a queue; `notify_fault`: what is wrong with a target.
    """

    def __init__(
        self, now: int, is_queue_known: Callable[[str], bool], notify_fault: Callable[[str], str]
    ) -> None:
        self._now = now
        self._is_queue_known = is_queue_known
        self._notify_fault = notify_fault
        self._sound: dict[tuple[tuple[str, bytes], ...], _Sound] = {}

    def read(self, data: bytes | Raw) -> Submission:
        """The submission in a create body. Raises Refused naming every field at fault."""
        members = read_object(data)
        rest = tuple((name, bytes(raw)) for name, raw in members.items() if name not in _OWN)
        sound = self._sound.get(rest)
        fields = Fields(members)
        if sound is None:
            found = self._whole(fields)
        else:
            payload, name = fields.payload(), fields.name("id", None)
            found = msgspec.structs.replace(sound.submission, id=name, payload=payload)
            fields.names += sound.names
        if fields.errors:
            raise Refused("invalid", errors=fields.errors)
        check_distinct(data, fields.names)
        if sound is None:
            if not self._is_queue_known(found.queue):
                raise Refused("unknown-queue", errors=[FieldError("/queue", "not declared for this tenant")])
            self._sound[rest] = _Sound(found, fields.names - len(members) - fields.payload_names)
        return found

    def _whole(self, fields: Fields) -> Submission:
        members = fields.members
        fields.refuse_unknown(FIELDS)
        payload = fields.payload()
        task = fields.name("task", None)
        if "task" not in members:
            fields.fault("task", "is required: the name of the task to run")
        found = Submission(
            id=fields.name("id", None),
            task=task or "",
            payload=payload,
            queue=fields.name("queue", "default") or "",
            run_at=fields.parsed("run_at", parse_instant),
            delay_ms=fields.parsed("delay", parse_duration),
            cron=fields.text("cron"),
            every_ms=timings.read_every(fields),
            zone=_zone(fields),
            late=fields.choice("late", ("refuse", "run")),
            timeout_ms=_timeout_ms(fields),
            priority=policies.read_priority(fields),
            policy=policies.read_policy(fields),
            limit=fields.name("limit", "") or "",
            notify=_notify(fields, self._notify_fault),
            tags=_tags(fields),
            timing=timings.read_timing(fields, is_recurring="cron" in members or "every" in members),
        )
        _check_when(fields, members, found, self._now)
        return found


def read_submission(
    data: bytes | Raw,
    now: int,
    is_queue_known: Callable[[str], bool],
    notify_fault: Callable[[str], str],
) -> Submission:
    """The submission in a body that comes alone; see `SubmissionReader`."""
    return SubmissionReader(now, is_queue_known, notify_fault).read(data)


def _zone(fields: Fields) -> str:
    zone = fields.text("zone")
    if zone is None:
        return "UTC"
    try:
        check_zone_name(zone)
    except ScheduleError as error:
        fields.fault("zone", error.reason)
    return zone


def _notify(fields: Fields, notify_fault: Callable[[str], str]) -> str:
    url = fields.text("notify") or ""
    fault = notify_fault(url) if url else ""
    if fault:
        fields.fault("notify", fault)
    return url


def _tags(fields: Fields) -> list[str]:
    tags = fields.texts("tags") or []
    if len(tags) > TAGS_MAX:
        fields.fault("tags", f"at most {TAGS_MAX} tags")
    for number, tag in enumerate(tags[:TAGS_MAX]):
        if not is_name(tag):
            fields.fault(f"tags/{number}", "must be 1-128 ASCII letters, digits, ._-")
        elif tag in tags[:number]:
            fields.fault(f"tags/{number}", "is there already: give each tag once")
    return tags


def _timeout_ms(fields: Fields) -> int:
    timeout_ms = fields.parsed("timeout", parse_duration)
    if timeout_ms is None:
        return 300_000
    if not _TIMEOUT_MS_MIN <= timeout_ms <= _TIMEOUT_MS_MAX:
        fields.fault("timeout", "must be from PT1S to P7D")
    return timeout_ms


def _check_when(fields: Fields, members: dict[str, Any], found: Submission, now: int) -> None:
    given = [name for name in _WHEN if name in members]
    for name in given[1:]:
        fields.fault(name, f"give at most one of {', '.join(_WHEN)}; {given[0]} is there already")
    if found.run_at is not None:
        if found.run_at > now + _AHEAD_MS_MAX:
            fields.fault("run_at", "is more than 100 years ahead")
        elif found.run_at < now - _DAY_MS and found.late != "run":
            fields.fault("run_at", "is more than a day past; give `late: run` to run it at once")
        elif found.run_at < 0:
            fields.fault("run_at", "is before 1970")
    if found.delay_ms is not None and found.delay_ms > _AHEAD_MS_MAX:
        fields.fault("delay", "is more than 100 years")
    if found.cron is not None or found.every_ms is not None:
        _check_rule(fields, found, now)


def _check_rule(fields: Fields, found: Submission, now: int) -> None:
    try:
        # An `H` is the owner's to work out, from an id that may yet have to be made.
        plan = timings.plan_of(found.cron, found.every_ms, found.zone, found.timing, ANY_JOB, now)
    except ScheduleError as error:
        # Faults of other fields are named where these are read.
        if error.field == "cron":
            fields.fault("cron", error.reason)
        return
    if not fields.errors and plan.next(now) is None:
        bound = "cron" if plan.end_at is None else "end_at"
        fields.fault(bound, "leaves no instant from now on")
