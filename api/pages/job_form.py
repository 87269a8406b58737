"""The form of a job: from what people type to the body that the API takes, and from a job to what they may change."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec
from msgspec import Raw

from api.pages.forms import Form
from api.pages.texts import show_json
from api.problems import Refused, refused_field
from minutebook.client.models import Job, JobRequest
from minutebook.times import format_duration, parse_short_duration

WHEN: Final = ("now", "run_at", "delay", "cron", "every")
"""Ways to say when; `now` says nothing."""
TEXTS: Final = ("id", "task", "queue", "zone", "start_at", "end_at", "overlap", "limit", "notify")
NUMBERS: Final = ("priority", "max_runs")
DURATIONS: Final = ("timeout", "deadline", "start_deadline", "jitter")
_IN_RETRY: Final = "max_attempts"
_IN_MISFIRE: Final = "misfire"
FIELDS: Final = (*TEXTS, *NUMBERS, *DURATIONS, "tags", _IN_RETRY, _IN_MISFIRE, "payload", "more")
_SCHEDULE: Final = ("cron", "every", "zone", "start_at", "end_at", "jitter")


def values_of(job: Job | None) -> dict[str, str]:
    """What the form shows: of a job as it is, or for a new one the defaults."""
    if job is None:
        empty = dict.fromkeys((*FIELDS, *WHEN), "")
        return empty | {
            "when": "cron",
            "queue": "default",
            "zone": "UTC",
            "payload": "{}",
            "overlap": "allow",
        }
    found = {
        name: "" if getattr(job, name) is None else str(getattr(job, name)) for name in (*TEXTS, *NUMBERS)
    }
    found |= {name: getattr(job, name) or "" for name in DURATIONS}
    found |= {
        "tags": " ".join(job.tags),
        "max_attempts": str(job.retry.max_attempts),
        "misfire": job.misfire.policy,
        "payload": show_json(job.payload),
        "more": "",
    }
    found |= {name: getattr(job, name, None) or "" for name in WHEN if name not in ("now", "delay")}
    return found | {"now": "", "delay": "", "when": _when(job)}


def _when(job: Job) -> str:
    return "cron" if job.cron else "every" if job.every else "run_at"


def typed(form: Form) -> dict[str, str]:
    """What was typed into the form."""
    return {name: form.lines(name).strip() for name in (*FIELDS, *WHEN, "when")}


def create_body(given: Mapping[str, str]) -> bytes:
    """The create body that a form says. Raises Refused (invalid) naming the field."""
    body = {name: _json(name, given[name]) for name in _names(given) if given[name]}
    return msgspec.json.encode(_with_more(body, given["more"]))


def patch_body(before: Mapping[str, str], given: Mapping[str, str]) -> bytes:
    """The patch from what the form showed to what it says; what was emptied gets its default. Raises Refused."""
    body: dict[str, Raw] = {}
    names = _names(given)
    is_moved = (before["when"], before[before["when"]]) != (given["when"], given.get(given["when"], ""))
    for name in names:
        if name == "id" or (name in WHEN and not is_moved):
            continue
        if name in WHEN or given[name] != before[name]:
            body[name] = _json(name, given[name]) if given[name] else Raw(b"null")
    return msgspec.json.encode(_with_more(_renamed(body), given["more"]))


def schedule_body(given: Mapping[str, str], count: int) -> bytes | None:
    """The body of a preview; None where the form says no schedule. Raises Refused (invalid) naming the field."""
    if given["when"] not in ("cron", "every"):
        return None
    names = [name for name in _SCHEDULE if name not in WHEN or name == given["when"]]
    body = {name: _json(name, given[name]) for name in names if given[name]} | {"count": Raw(b"%d" % count)}
    more = _object(given["more"])
    body |= {name: more[name] for name in ("calendars", "gap", "fold", "day_match") if name in more}
    if given["id"]:
        body["job_id"] = _json("id", given["id"])
    return msgspec.json.encode(body)


def _names(given: Mapping[str, str]) -> list[str]:
    """Fields of the body that the form holds: of the ways to say when, the chosen one."""
    chosen = [given["when"]] if given["when"] in WHEN and given["when"] != "now" else []
    return [*(name for name in FIELDS if name != "more"), *chosen]


def _renamed(body: dict[str, Raw]) -> dict[str, Raw]:
    """Fields of the form that lie deeper in the body."""
    found = dict(body)
    if _IN_RETRY in found:
        found["retry"] = Raw(b'{"max_attempts":' + bytes(found.pop(_IN_RETRY)) + b"}")
    if _IN_MISFIRE in found:
        found["misfire"] = Raw(b'{"policy":' + bytes(found.pop(_IN_MISFIRE)) + b"}")
    return found


def _with_more(body: dict[str, Raw], text: str) -> dict[str, Raw]:
    more = _object(text)
    found = _renamed(body)
    for name in more:
        if name in found:
            raise refused_field("/more", f"{name} has a field of its own in the form; give it there")
    return found | more


def _object(text: str) -> dict[str, Raw]:
    if not text:
        return {}
    try:
        return msgspec.json.decode(text.encode(), type=dict[str, Raw])
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
        known = ", ".join(name for name in JobRequest.__struct_fields__ if name not in (*FIELDS, *WHEN))
        raise refused_field("/more", f"give a JSON object of further fields: {known}") from None


def _json(name: str, text: str) -> Raw:
    """What was typed into a field, as its value in the body."""
    if name == "payload":
        return payload_of(text)
    if name in (*NUMBERS, _IN_RETRY):
        if not text.lstrip("-").isdecimal():
            raise refused_field(f"/{name}", "must be a whole number")
        return Raw(str(int(text)).encode())
    if name == "tags":
        return Raw(msgspec.json.encode(text.replace(",", " ").split()))
    if name in (*DURATIONS, "every", "delay"):
        return Raw(msgspec.json.encode(_duration(name, text)))
    return Raw(msgspec.json.encode(text))


def _duration(name: str, text: str) -> str:
    try:
        return format_duration(parse_short_duration(text))
    except ValueError as error:
        raise refused_field(f"/{name}", str(error)) from None


def payload_of(text: str) -> Raw:
    """The payload as it was typed. Raises Refused for what is no JSON: inside another document it would break that."""
    data = text.encode("utf-8", "surrogateescape")
    try:
        msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise Refused("invalid", errors=refused_field("/payload", f"is no JSON: {error}").errors) from None
    return Raw(data)
