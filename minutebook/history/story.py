"""A story in plain words: one sentence for each step, which names who, what and why as the log has it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from minutebook.domain.state import NONE_AT
from minutebook.history.steps import Step
from minutebook.times import format_duration, format_instant

_LOST: Final = {
    "session_died": "its worker's lease ended",
    "timeout": "it ran past its time",
    "stopped": "it did not stop when it was asked to",
}
_RETURNED: Final = {
    "handed_back": "the worker handed it back before it had started",
    "withdrawn": "the worker did not acknowledge the grant in time",
}
_GIVEN_UP: Final = {
    "permanent": "its error is one that no retry mends",
    "attempts": "it had no attempt left",
    "losses": "it was lost too often",
    "deadline": "its deadline had passed",
}
_SKIPPED: Final = {
    "paused": "the job was paused",
    "overlap": "another execution of the job was still open",
    "misfire": "they were missed by more than the job allows",
    "start_deadline": "it had not started by its start deadline",
    "deadline": "its deadline had passed",
}
_PLACED: Final = {
    "misfire": "was missed and is made up for",
    "overlap": "is held until no other execution of the job is open",
    "backfill": "runs after all, in a backfill",
}


def sentence(step: Step) -> str:
    """What happened, in words. Every kind of step has them."""
    return WORDS[step.kind](step.said, step)


def schedule_words(said: dict[str, Any]) -> str:
    """When a job runs, from what its definition says."""
    if said["cron"]:
        return f"by {said['cron']!r} in {said['zone']}"
    if said["every_ms"] != NONE_AT:
        return f"every {format_duration(said['every_ms'])} from {format_instant(said['anchor_at'])}"
    return "once"


def _at(at: int) -> str:
    return format_instant(at)


def _next(at: int) -> str:
    return "no instant is left" if at == NONE_AT else f"next instant {_at(at)}"


def _who(said: dict[str, Any]) -> str:
    return f" by {said['actor']}" if said.get("actor") else ""


def _why(said: dict[str, Any]) -> str:
    return f": {said['reason']}" if said.get("reason") else ""


def _submitted(said: dict[str, Any], step: Step) -> str:
    return (
        f"The job was created{_who(said)} as version 1: task {said['task']} on queue {said['queue']}, "
        f"{schedule_words(said)}; first instant {_at(said['next_at'])}"
    )


def _edited(said: dict[str, Any], step: Step) -> str:
    when = f"task {said['task']} on queue {said['queue']}, {schedule_words(said)}"
    return f"Edited{_who(said)} to version {said['version']}{_why(said)}: {when}; {_next(said['next_at'])}"


def _paused(said: dict[str, Any], step: Step) -> str:
    how = "Paused by itself" if said["cause"] == "failure" else f"Paused{_who(said)}"
    return f"{how}{_why(said)}"


def _resumed(said: dict[str, Any], step: Step) -> str:
    missed = "what was missed is made up for" if said["is_caught_up"] else "what was missed is left out"
    # What follows from an instant that was missed is told where it is decided.
    is_past = NONE_AT < said["next_at"] <= step.at
    coming = "" if is_past else f"; {_next(said['next_at'])}"
    return f"Resumed{_who(said)}{_why(said)}; {missed}{coming}"


def _purged(said: dict[str, Any], step: Step) -> str:
    return f"Purged from view{_who(said)}{_why(said)}"


def _cancelled(said: dict[str, Any], step: Step) -> str:
    open_count, stopping = len(said["executions"]), len(said["stopping"])
    return (
        f"The job was cancelled{_who(said)}{_why(said)}; {open_count} executions ended with it, "
        f"{stopping} that ran were asked to stop"
    )


def _requested(said: dict[str, Any], step: Step) -> str:
    return f"Run now was asked for{_who(said)}{_why(said)}"


def _skipped(said: dict[str, Any], step: Step) -> str:
    why = _SKIPPED.get(said["reason"], said["reason"])
    if said["count"] == 1:
        return f"The instant {_at(said['first_at'])} was skipped: {why}"
    return (
        f"{said['count']} instants from {_at(said['first_at'])} to {_at(said['last_at'])} were skipped: {why}"
    )


def _placed(said: dict[str, Any], step: Step) -> str:
    how = _PLACED.get(said["cause"], said["cause"])
    when = "" if said["place_at"] == NONE_AT else f", to be queued at {_at(said['place_at'])}"
    of = f" (operation {said['operation']})" if said["operation"] else ""
    return f"The instant {_at(said['scheduled_at'])} {how}{of}{when}"


def _rescheduled(said: dict[str, Any], step: Step) -> str:
    return f"Its next instant was computed anew ({said['cause']}): {_next(said['next_at'])}"


def _answered(said: dict[str, Any], step: Step) -> str:
    return f"Command {said['command_id']} changed nothing: {said['reason']}"


def _refused(said: dict[str, Any], step: Step) -> str:
    return f"{said['command']} {said['command_id']} was refused ({said['reason']}): {said['field']}: {said['detail']}"


def _come(said: dict[str, Any], step: Step) -> str:
    late_ms = step.at - said["due_at"]
    late = f", {format_duration(late_ms)} late" if late_ms > 0 else ""
    return f"Attempt {said['attempt']} of version {said['version']} came due at {_at(said['due_at'])}{late}"


def _queued(said: dict[str, Any], step: Step) -> str:
    return f"{_come(said, step)}, and was queued on {said['queue']} for task {said['task']}"


def _due_granted(said: dict[str, Any], step: Step) -> str:
    return f"{_come(said, step)}, and was granted to {said['session']} at once (token {step.place.token})"


def _granted(said: dict[str, Any], step: Step) -> str:
    permits = said.get("permits") or []
    under = ", ".join(permit["limit"] or "the tenant's" for permit in permits)
    beneath = f", under a permit of the limit {under}" if permits else ""
    return f"Attempt {said['attempt']} was granted to {said['session']} (token {step.place.token}){beneath}"


def _returned(said: dict[str, Any], step: Step) -> str:
    wait = "" if said["wait_until"] == NONE_AT else f"; it waits until {_at(said['wait_until'])}"
    return (
        f"The grant came back from {said['session']}: {_RETURNED.get(said['reason'], said['reason'])}{wait}"
    )


def _succeeded(said: dict[str, Any], step: Step) -> str:
    return f"It succeeded after {format_duration(said['run_ms'])}"


def _lost(said: dict[str, Any], step: Step) -> str:
    more = "a further attempt is queued" if said["has_retry"] else "no further attempt follows"
    return f"The attempt on {said['session']} was lost: {_LOST.get(said['cause'], said['cause'])}; {more}"


def _failed(said: dict[str, Any], step: Step) -> str:
    then = f"; it is tried again at {_at(said['retry_at'])}" if said["retry_at"] != NONE_AT else ""
    return f"Attempt {said['attempt']} failed on {said['session']}: {said['error_type']}: {said['message']}{then}"


def _snoozed(said: dict[str, Any], step: Step) -> str:
    return f"The task asked to be run again at {_at(said['retry_at'])}{_why(said)}"


def _progressed(said: dict[str, Any], step: Step) -> str:
    return f"It said that it is {said['fraction']:.0%} done: {said['text']}"


def _stuck(said: dict[str, Any], step: Step) -> str:
    return f"It has made no progress since {_at(said['since_at'])}"


def _attempt_cancelled(said: dict[str, Any], step: Step) -> str:
    return f"The running attempt ended without success after the cancel ({said['cause']})"


def _execution_cancelled(said: dict[str, Any], step: Step) -> str:
    how = (
        "it waited, and is cancelled" if said["token"] == NONE_AT else "the running attempt is asked to stop"
    )
    return f"The execution was cancelled{_who(said)}{_why(said)}; {how}"


def _expired(said: dict[str, Any], step: Step) -> str:
    return f"The execution was skipped: {_SKIPPED.get(said['reason'], said['reason'])}"


def _dead(said: dict[str, Any], step: Step) -> str:
    why = _GIVEN_UP.get(said["cause"], said["cause"])
    return f"It was given up, {why}: {said['error_type']}: {said['message']}"


def _redriven(said: dict[str, Any], step: Step) -> str:
    payload = ", with an edited payload" if said["is_edited"] else ""
    of = f" in operation {said['operation']}" if said["operation"] else ""
    return f"It was redriven{_who(said)}{of}{payload}{_why(said)}; attempt {said['attempt']} follows"


def _discarded(said: dict[str, Any], step: Step) -> str:
    of = f" in operation {said['operation']}" if said["operation"] else ""
    return f"It was discarded{_who(said)}{of}{_why(said)}; it needs no attention any more"


def _report_refused(said: dict[str, Any], step: Step) -> str:
    return f"A report ({said['kind']}) of {said['session']} changed nothing: {said['reason']}"


def _alerted(said: dict[str, Any], step: Step) -> str:
    return f"An alert was raised ({said['kind']}): {said['text']}"


WORDS: Final[dict[str, Callable[[dict[str, Any], Step], str]]] = {
    "submitted": _submitted,
    "edited": _edited,
    "paused": _paused,
    "resumed": _resumed,
    "purged": _purged,
    "cancelled": _cancelled,
    "requested": _requested,
    "skipped": _skipped,
    "placed": _placed,
    "rescheduled": _rescheduled,
    "answered": _answered,
    "refused": _refused,
    "queued": _queued,
    "due_granted": _due_granted,
    "granted": _granted,
    "returned": _returned,
    "succeeded": _succeeded,
    "lost": _lost,
    "failed": _failed,
    "snoozed": _snoozed,
    "progressed": _progressed,
    "stuck": _stuck,
    "attempt_cancelled": _attempt_cancelled,
    "execution_cancelled": _execution_cancelled,
    "expired": _expired,
    "dead": _dead,
    "redriven": _redriven,
    "discarded": _discarded,
    "report_refused": _report_refused,
    "alerted": _alerted,
}
