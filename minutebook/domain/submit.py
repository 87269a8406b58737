"""Submissions of jobs: what is taken, and the first instant."""

from __future__ import annotations

import hashlib
from operator import attrgetter, itemgetter
from typing import Any, Final

import msgspec

from minutebook import ids
from minutebook.domain import events as facts
from minutebook.domain import keys, notify, plans, policy
from minutebook.domain import timing as timings
from minutebook.domain.book import Book
from minutebook.domain.commands import SubmitJob
from minutebook.domain.events import Event
from minutebook.domain.policy import DEFAULT
from minutebook.domain.refusal import Refusal, answered
from minutebook.domain.state import NONE_AT, Job, Spec
from minutebook.domain.versions import version_of
from minutebook.errors import ScheduleError
from minutebook.schedule import zone
from minutebook.schedule.every import is_every

HORIZON_MS: Final = 100 * 366 * keys.DAY_MS
LATE_MAX_MS: Final = keys.DAY_MS
PAYLOAD_BYTES_MAX: Final = 256 << 10
TIMEOUT_MIN_MS: Final = 1_000
TIMEOUT_MAX_MS: Final = 7 * keys.DAY_MS
TAGS_MAX: Final = 16


_MOMENTS: Final = ("run_at", "delay_ms", "cron", "every_ms")
_DEFAULT: Final = SubmitJob(tenant="", job_id="", command_id="", issued_at=0, task="", payload=b"null")


class _Printed:
    """Fields of a record that a fingerprint is made of, where they differ from those of `default`."""

    def __init__(self, default: msgspec.Struct, names: tuple[str, ...]) -> None:
        self._names = names
        self._values_of = attrgetter(*names)
        self._defaults = self._values_of(default)

    def given(self, record: msgspec.Struct) -> list[tuple[str, Any]]:
        """(name, value) of those fields, in the order of `names`."""
        values = self._values_of(record)
        return [
            (name, value)
            for name, value, default in zip(self._names, values, self._defaults, strict=True)
            if value != default
        ]


_PRINTED: Final = _Printed(
    _DEFAULT,
    (
        "cron",
        "delay_ms",
        "every_ms",
        "late",
        "limit",
        "notify",
        "payload",
        "priority",
        "queue",
        "run_at",
        "tags",
        "task",
        "timeout_ms",
        "zone",
    ),
)
"""Sorted by name."""
_PRINTED_PARTS: Final = tuple(
    (part, _Printed(default, default.__struct_fields__))
    for part, default in (("policy", DEFAULT), ("timing", timings.DEFAULT))
)


def fingerprint(command: SubmitJob) -> bytes:
    """SHA-256 over the fields of the create body that differ from their defaults, sorted by name.

    A field that a later schema adds changes no fingerprint of those that leave it out.
    """
    given = _PRINTED.given(command)
    if command.policy is not None or command.timing is not None:
        for field, printed in _PRINTED_PARTS:
            part = getattr(command, field)
            if part is not None:
                given += printed.given(part)
        given.sort(key=itemgetter(0))
    total = bytearray()
    for name, value in given:
        data = value if isinstance(value, bytes) else str(value).encode()
        total += f"{name}\0{len(data)}\0".encode()
        total += data
    return hashlib.sha256(total).digest()


def submit(book: Book, row: bytes, known: Job | None, command: SubmitJob, stamp: int) -> Event:
    """The event of a submission; `known` is the job of that id, if there is one. Raises Refusal."""
    print_ = fingerprint(command)
    if known is not None:
        return _exists(command, known, print_)
    check_body(book, command)
    if command.cron is None and command.every_ms is None:
        _check_zone(command)
        return described(command, print_, stamp, _only_instant(command, stamp))
    event = described(command, print_, stamp)
    return msgspec.structs.replace(event, next_at=first_instant(book, command, event, stamp, stamp))


def described(command: SubmitJob, print_: bytes, stamp: int, next_at: int = NONE_AT) -> facts.JobSubmitted:
    """The job that the command describes, as of `stamp`, with its first instant."""
    return facts.JobSubmitted(
        tenant=command.tenant,
        job_id=command.job_id,
        command_id=command.command_id,
        actor=command.actor,
        issued_at=command.issued_at,
        accepted_at=stamp,
        fingerprint=print_,
        task=command.task,
        payload=command.payload,
        key_id=0,
        payload_sha256=hashlib.sha256(command.payload).digest(),
        queue=command.queue,
        cron=command.cron or "",
        zone=command.zone,
        late=command.late,
        timeout_ms=command.timeout_ms,
        priority=command.priority,
        next_at=next_at,
        traceparent=command.traceparent,
        policy=None if command.policy == DEFAULT else command.policy,
        limit=command.limit,
        notify=command.notify,
        every_ms=NONE_AT if command.every_ms is None else command.every_ms,
        anchor_at=_anchor_at(command, stamp),
        timing=None if command.timing == timings.DEFAULT else command.timing,
        tags=command.tags,
    )


def _anchor_at(command: SubmitJob, stamp: int) -> int:
    """What an interval counts from."""
    if command.every_ms is None and not is_every(command.cron or ""):
        return NONE_AT
    start_at = None if command.timing is None else command.timing.start_at
    return stamp if start_at is None else start_at


def _exists(command: SubmitJob, known: Job, print_: bytes) -> Event:
    if known.fingerprint == print_:
        return answered(command, "exists")
    if command.is_keyed:
        raise Refusal("key_reused", "Idempotency-Key", "this key was used with another body; take a new key")
    raise Refusal("id_exists", "id", "a job with this id exists with another body; take another id")


def check_body(book: Book, command: SubmitJob, before: Spec | None = None) -> None:
    """Raises Refusal for what no job may say. `before`: its version so far, whose queue may be draining by now, and whose
    calendars may be deleted.
    """
    if not ids.is_name(command.task):
        raise Refusal("invalid", "task", "1-128 ASCII letters, digits, . _ -")
    check_payload(command.payload)
    if not TIMEOUT_MIN_MS <= command.timeout_ms <= TIMEOUT_MAX_MS:
        raise Refusal("invalid", "timeout", "from 1 second to 7 days")
    if not policy.is_priority(command.priority):
        raise Refusal("invalid", "priority", "from 0 to 9; 9 goes first")
    if command.policy is not None:
        for field, remedy in policy.faults(command.policy):
            raise Refusal("invalid", field, remedy)
    if command.notify and (remedy := notify.fault(command.notify)):
        raise Refusal("invalid", "notify", remedy)
    queue = book.queue(command.queue)
    if queue is None or (queue.tenants and command.tenant not in queue.tenants):
        raise Refusal("unknown_queue", "queue", "declare the queue first: minutebook queue create")
    if queue.is_draining and (before is None or command.queue != before.queue):
        raise Refusal("queue_draining", "queue", "it takes no new jobs: choose another queue, or resume it")
    if command.limit and not ids.is_name(command.limit):
        raise Refusal("invalid", "limit", "1-128 ASCII letters, digits, . _ -; leave it out for none")
    check_tags(command.tags)
    moments = [name for name in _MOMENTS if getattr(command, name) is not None]
    if len(moments) > 1:
        remedy = "give at most one of run_at, delay, cron, every"
        raise Refusal("invalid", moments[1].removesuffix("_ms"), remedy)
    _check_timing(book, command, [] if before is None else before.timing.calendars)


def _check_timing(book: Book, command: SubmitJob, named: list[str]) -> None:
    """`named`: calendars that the job names already."""
    if command.every_ms is not None and (remedy := timings.interval_fault(command.every_ms)):
        raise Refusal("invalid", "every", remedy)
    timing = command.timing
    if timing is None:
        return
    for field, remedy in timings.faults(timing):
        raise Refusal("invalid", field, remedy)
    if command.cron is None and command.every_ms is None:
        for field, remedy in timings.misplaced(timing):
            raise Refusal("invalid", field, remedy)
    for field, names in (("calendars/exclude", timing.exclude), ("calendars/include", timing.include)):
        unknown = (name for name in names if book.known_calendars.get(command.tenant, name) is None)
        if not set(named).issuperset(unknown):
            remedy = "declare each calendar first: minutebook calendar set"
            raise Refusal("unknown_calendar", field, remedy)


def check_tags(tags: list[str]) -> None:
    """Raises Refusal for more of them than a job may have, one that is no name, and one that is there twice."""
    if len(tags) > TAGS_MAX or len(set(tags)) < len(tags) or not all(map(ids.is_name, tags)):
        raise Refusal(
            "invalid", "tags", f"up to {TAGS_MAX} names of 1-128 ASCII letters, digits, . _ -, each once"
        )


def check_payload(payload: bytes) -> None:
    """Raises Refusal for one that is too large, or no JSON: it is shown inside of JSON, byte for byte."""
    if len(payload) > PAYLOAD_BYTES_MAX:
        remedy = f"at most {PAYLOAD_BYTES_MAX} bytes; store it elsewhere and send a reference"
        raise Refusal("invalid", "payload", remedy)
    try:
        msgspec.json.decode(payload)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Refusal("invalid", "payload", "one JSON text in UTF-8; null where there is nothing") from error


def first_instant(book: Book, command: SubmitJob, event: facts.JobSubmitted, stamp: int, after: int) -> int:
    """The first instant of the job in `event`; that of a schedule is strictly later than `after`. Raises Refusal."""
    _check_zone(command)
    version = version_of(event)
    if not version.is_recurring:
        return _only_instant(command, stamp)
    try:
        first = plans.next_at(book, command.tenant, command.job_id, version, after)
    except ScheduleError as error:
        raise Refusal("invalid", error.field, error.reason) from error
    if first == NONE_AT:
        raise Refusal("invalid", _bound(version.timing), "it has no instant left")
    return first


def _check_zone(command: SubmitJob) -> None:
    try:
        zone(command.zone)
    except ScheduleError as error:
        raise Refusal("invalid", error.field, error.reason) from error


def _only_instant(command: SubmitJob, stamp: int) -> int:
    """The instant of a job that is due once."""
    if command.delay_ms is not None:
        return _within(stamp + command.delay_ms, "delay", command, stamp)
    return _within(stamp if command.run_at is None else command.run_at, "run_at", command, stamp)


def _bound(timing: timings.Timing) -> str:
    """The field to look at where a schedule has no instant."""
    if timing.calendars:
        return "calendars"
    return "cron" if timing.end_at is None else "end_at"


def _within(at: int, field: str, command: SubmitJob, stamp: int) -> int:
    if at - stamp > HORIZON_MS:
        raise Refusal("invalid", field, "at most 100 years ahead")
    if at < 0 or (field == "delay" and at < stamp):
        raise Refusal("invalid", field, "must not be negative")
    if stamp - at > LATE_MAX_MS and command.late != "run":
        raise Refusal("invalid", field, "more than a day past; give late=run to run it all the same")
    return at
