"""What happens now, as server-sent events."""

from __future__ import annotations

from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, Request, Response
from fastapi.sse import EventSourceResponse

from api.auth import Allowed, Caller, Scope
from api.bodies import check_accept
from api.described import described, query_name
from api.live.changes import Wish
from api.parameters import query_of
from api.positions import Token, decode_token
from api.problems import Refused, refused_field
from api.services import services_of
from minutebook.client.live_models import Changes
from minutebook.ids import NAME_MAX, is_name

router = APIRouter()
Reading = Annotated[Caller, Depends(Allowed(Scope.JOBS_READ))]
_STATUS_CHARS_MAX: Final = 32
_LIFE_S: Final = 900
"""A stream ends after so long, and its reader comes back: a key that is known no more is noticed then."""


def _described() -> dict[str, Any]:
    found = described(
        answers={200: Changes},
        parameters=(
            query_name("job_id", "Only this job and its executions.", maxLength=NAME_MAX),
            query_name("task", "Only of jobs with this task.", maxLength=NAME_MAX),
            query_name("queue", "Only of jobs in this queue, and the queue.", maxLength=NAME_MAX),
            query_name("status", "Only what has this status, or outcome, now.", maxLength=_STATUS_CHARS_MAX),
            {
                "name": "Last-Event-ID",
                "in": "header",
                "required": False,
                "description": "The `id` of the last event that was seen: what lies between is told first.",
                "schema": {"type": "string"},
            },
        ),
        refusals=("bad-parameter", "too-many-streams"),
        said={200: "Events `position`, `changes` (the data is shown here) and `reset`, each with an `id`."},
    )
    ok = found["responses"]["200"]
    others = {"type": "object", "description": "of `position` and `reset`"}
    changes = ok["content"]["application/json"]["schema"]
    ok["content"] = {"text/event-stream": {"schema": {"anyOf": [changes, others]}}}
    return found


@router.get("/v1/stream", operation_id="stream_changes", openapi_extra=_described())
async def stream_changes(request: Request, caller: Reading) -> Response:
    """Follow what changes. At most four events a second, each with the last change of every subject; `reset` = read anew.

    The first event, `position`, says where the stream begins. A comment goes out every 15 seconds, and after 15 minutes
    the stream ends: come back with `Last-Event-ID`, and nothing is missed that is still kept.
    """
    services = services_of(request)
    if "text/event-stream" not in request.headers.get("accept", ""):
        check_accept(request)
    query = query_of(request, "job_id", "task", "queue", "status")
    for name in ("job_id", "task", "queue"):
        if name in query and not is_name(query[name]):
            raise refused_field(name, "must be 1-128 ASCII letters, digits, ._-", "bad-parameter")
    if len(query.get("status", "")) > _STATUS_CHARS_MAX:
        raise refused_field("status", "must be a status, such as running", "bad-parameter")
    if len(services.live) >= services.settings.streams_max:
        raise Refused("too-many-streams")
    wish = Wish(caller.tenant, **query, sees_all=caller.may(Scope.QUEUES_WRITE))
    stream = services.live.stream(wish, last_seen(request, services.view.partitions), _LIFE_S)
    return EventSourceResponse(stream, headers={"x-accel-buffering": "no"})


def last_seen(request: Request, partitions: int) -> Token | None:
    """What `Last-Event-ID` names; None without it, and nothing at all where it cannot be read: then all is read anew."""
    text = request.headers.get("last-event-id")
    if text is None:
        return None
    try:
        return decode_token(text, partitions)
    except Refused:
        return Token()
