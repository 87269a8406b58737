"""The one table from a refusal to HTTP: RFC 9457 problem details, always and everywhere.

Every text names what is wrong and the remedy; none repeats what the caller sent.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import msgspec
from starlette.responses import Response

from minutebook.client.models import FieldError, Problem
from minutebook.mint import mint_id

MEDIA_TYPE: Final = "application/problem+json"


class Kind(NamedTuple):
    """A row of the table. `retry_after_s` goes into `Retry-After`."""

    status: int
    title: str
    detail: str
    retry_after_s: int | None = None


TABLE: Final[dict[str, Kind]] = {
    "malformed": Kind(400, "Malformed request", "The request is not well formed."),
    "malformed-json": Kind(400, "Malformed JSON", "The body is not one JSON document in UTF-8."),
    "bad-parameter": Kind(
        400, "Bad parameter", "A query parameter or header is unknown, repeated or senseless."
    ),
    "no-credential": Kind(
        401, "No credential", "Send `Authorization: Bearer <key>` with a key that is known here."
    ),
    "denied": Kind(
        403, "Denied", "The role of this key does not cover this request; use a key with another role."
    ),
    "not-found": Kind(404, "Not found", "There is no such thing; check the path and the id."),
    "method-not-allowed": Kind(405, "Method not allowed", "Use one of the methods named in `Allow`."),
    "not-acceptable": Kind(406, "Not acceptable", "Answers are JSON only: accept application/json."),
    "body-too-slow": Kind(408, "Body too slow", "The body did not arrive in time; send it at once."),
    "job-closed": Kind(409, "Job closed", "The job is completed, dead or cancelled; create a new one."),
    "not-closed": Kind(409, "Not closed", "The job is active or paused: cancel it first."),
    "execution-closed": Kind(
        409, "Execution closed", "The execution has ended, or is not due yet: there is nothing to cancel."
    ),
    "not-dead": Kind(
        409,
        "Not dead",
        "Only an execution that was given up, at most 8 days ago, can be redriven or discarded.",
    ),
    "discarded": Kind(
        409,
        "Discarded",
        "The execution was discarded, which is final; submit a new job for what is still wanted.",
    ),
    "already-due": Kind(
        409, "Already due", "The one execution of the job is due already: cancel that, or create a new job."
    ),
    "operation-ended": Kind(409, "Operation ended", "The operation has ended: there is nothing to cancel."),
    "too-many-operations": Kind(
        409,
        "Too many operations",
        "100 operations are open; cancel one or wait, then send it with a new key.",
    ),
    "id-exists": Kind(409, "Id exists", "A job with this id and another body exists; choose another id."),
    "key-exists": Kind(
        409,
        "Key exists",
        "A key with this id exists: this Idempotency-Key made it, and it was shown then. If it is lost, revoke it and "
        "send another Idempotency-Key.",
    ),
    "key-closed": Kind(409, "Key closed", "The key is revoked or past its end; create a new one."),
    "key-in-use": Kind(
        409, "Key in use", "It is the key of this very request: use another one, or send `?force=true`."
    ),
    "key-in-settings": Kind(
        409,
        "Key in settings",
        "The key stands in the settings of the API: take it out of MINUTEBOOK_API_KEYS there.",
    ),
    "too-many-keys": Kind(
        409, "Too many keys", "Two keys with this label are live; revoke one, or choose another label."
    ),
    "worker-silent": Kind(
        409, "Worker silent", "Nothing was heard of this worker for a minute; what it held runs elsewhere."
    ),
    "worker-stops": Kind(
        409, "Worker stops", "The worker was asked to stop, which is final; start another one."
    ),
    "stale-version": Kind(
        412,
        "Stale version",
        "The job has another version than If-Match names; read it again, then send what is still wanted.",
    ),
    "too-large": Kind(413, "Too large", "The body is above its limit; send less."),
    "uri-too-long": Kind(414, "URI too long", "Paths and queries end at 8 KiB."),
    "unsupported-media": Kind(
        415, "Unsupported media type", "Send an uncompressed body with `Content-Type: application/json`."
    ),
    "invalid": Kind(422, "Invalid fields", "The fields named in `errors` are refused."),
    "bad-payload": Kind(
        422, "Bad payload", "The payload is not what its task takes; GET /v1/tasks/<task> shows the type."
    ),
    "unknown-queue": Kind(
        422, "Unknown queue", "The queue is not declared for this tenant; declare it with POST /v1/queues."
    ),
    "unknown-calendar": Kind(
        422,
        "Unknown calendar",
        "The calendar is not declared for this tenant; declare it with PUT /v1/calendars/<name>.",
    ),
    "queue-draining": Kind(
        409, "Queue draining", "The queue takes no new jobs; choose another one, or wait until it is resumed."
    ),
    "queue-taken": Kind(
        409, "Queue taken", "A queue of this name is there for other tenants; choose another name."
    ),
    "key-reused": Kind(
        422, "Key reused", "This Idempotency-Key was used with another body; use a new key for a new job."
    ),
    "history-too-long": Kind(
        422,
        "History too long",
        "The log of this partition is too long to be read for one question; ask `python -m replay story` or `why`.",
    ),
    "too-old": Kind(422, "Too old", "The command lay too long before it was decided; send it again."),
    "headers-too-large": Kind(431, "Headers too large", "Headers end at 32 KiB."),
    "rate-limited": Kind(
        429, "Rate limited", "This key asks too often; wait as `Retry-After` says, or send jobs in batches."
    ),
    "internal": Kind(500, "Internal error", "The fault is ours and is logged under this trace id."),
    "not-ready": Kind(503, "Not ready", "The view is still reading the log; try again.", 1),
    "view-behind": Kind(503, "View behind", "The view has not reached Minutebook-After yet; try again.", 1),
    "not-durable": Kind(
        503, "Not durable", "The broker did not acknowledge in time; repeat with the same Idempotency-Key.", 2
    ),
    "too-many-streams": Kind(
        503, "Too many streams", "This process serves no more streams; try again later.", 15
    ),
    "overloaded": Kind(503, "Overloaded", "Too many commands wait for the broker; try again later.", 2),
}


class Refused(Exception):
    """Ends a request with a problem. `code` is a row of TABLE."""

    def __init__(
        self,
        code: str,
        detail: str = "",
        errors: list[FieldError] | None = None,
        headers: dict[str, str] | None = None,
    ) -> None:
        super().__init__(code)
        self.code = code
        self.detail = detail
        self.errors = errors or []
        self.headers = headers or {}


def refused_field(pointer: str, detail: str, code: str = "invalid") -> Refused:
    """A refusal for one field, header or parameter."""
    return Refused(code, errors=[FieldError(pointer, detail)])


def new_trace_id() -> str:
    """32 hexadecimal digits, new for each request that needs one."""
    return mint_id().replace("-", "")


def problem_of(refused: Refused, trace_id: str) -> Problem:
    """The body of a refusal."""
    kind = TABLE[refused.code]
    return Problem(
        type=f"/problems/{refused.code}",
        title=kind.title,
        status=kind.status,
        detail=refused.detail or kind.detail,
        code=refused.code,
        trace_id=trace_id,
        errors=refused.errors,
    )


def response_of(refused: Refused, trace_id: str) -> Response:
    """The response to a refusal."""
    kind = TABLE[refused.code]
    headers = dict(refused.headers)
    if kind.retry_after_s is not None:
        headers.setdefault("retry-after", str(kind.retry_after_s))
    if kind.status == 401:
        headers["www-authenticate"] = "Bearer"
    body = msgspec.json.encode(problem_of(refused, trace_id))
    return Response(body, kind.status, headers, MEDIA_TYPE)
