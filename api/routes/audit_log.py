"""The audit log: who wanted what, when, from where and why, and what was decided."""

from __future__ import annotations

from typing import Annotated, Final

from fastapi import APIRouter, Depends, Request, Response

from api.audit import AuditFilter, audit_page
from api.auth import Allowed, Caller, Scope
from api.bodies import check_accept
from api.decisions import caught_up, json_response
from api.described import AFTER, CURSOR, LIMIT, PREFER, described, query_name
from api.parameters import limit_of, next_link, query_of
from api.problems import refused_field
from api.services import services_of
from minutebook.client.audit_models import AuditPage
from minutebook.domain.subjects import KIND_OF
from minutebook.domain.view_audit import AT_MAX
from minutebook.ids import is_name
from minutebook.times import parse_instant

router = APIRouter()
Auditing = Annotated[Caller, Depends(Allowed(Scope.AUDIT_READ))]
_PATH: Final = "/v1/audit-log"
_TEXT_CHARS_MAX: Final = 300
_NAME: Final = r"^[A-Za-z0-9._-]{1,128}$"
FILTERS: Final = ("key", "command", "subject", "accepted", "from", "until")


@router.get(
    _PATH,
    operation_id="list_audit_log",
    openapi_extra=described(
        answers={200: AuditPage},
        parameters=(
            query_name("key", "Only what came with the key of this id.", pattern=_NAME),
            query_name("command", "Only commands of this kind.", enum=sorted(KIND_OF)),
            query_name(
                "subject",
                "Only what is about the job, execution, queue … of this name.",
                minLength=1,
                maxLength=_TEXT_CHARS_MAX,
            ),
            query_name("accepted", "`false`: only what was refused.", enum=["true", "false"]),
            query_name("from", "Only what was decided then or later.", format="date-time"),
            query_name("until", "Only what was decided before.", format="date-time"),
            LIMIT,
            CURSOR,
            AFTER,
            PREFER,
        ),
        refusals=("bad-parameter", "view-behind"),
    ),
)
async def list_audit_log(request: Request, caller: Auditing) -> Response:
    """List the commands of the caller's tenant, the latest first; admins see those on queues, tasks and workers, too.

    Submissions that were accepted are not among them: their jobs tell of themselves.
    """
    services = services_of(request)
    check_accept(request)
    query = query_of(request, *FILTERS, "limit", "cursor")
    wanted, limit = audit_filter(query), limit_of(query)
    await caught_up(request, services)
    page = audit_page(services, caller, wanted, limit, query.get("cursor"))
    return json_response(page, headers=next_link(_PATH, query, page.next_cursor))


def audit_filter(query: dict[str, str]) -> AuditFilter:
    """The commands that a query asks for. Raises Refused (bad-parameter)."""
    if "key" in query and not is_name(query["key"]):
        raise refused_field("key", "must be the id of a key, not the key", "bad-parameter")
    if "subject" in query and not 1 <= len(query["subject"]) <= _TEXT_CHARS_MAX:
        raise refused_field("subject", f"must have 1 to {_TEXT_CHARS_MAX} characters", "bad-parameter")
    command, accepted = query.get("command", ""), query.get("accepted")
    if "command" in query and command not in KIND_OF:
        raise refused_field("command", f"must be one of {', '.join(sorted(KIND_OF))}", "bad-parameter")
    if accepted not in (None, "true", "false"):
        raise refused_field("accepted", "must be true or false", "bad-parameter")
    return AuditFilter(
        query.get("key", ""),
        command,
        query.get("subject", ""),
        None if accepted is None else accepted == "true",
        max(0, _instant(query, "from", 0)),
        max(1, _instant(query, "until", AT_MAX)),
    )


def _instant(query: dict[str, str], name: str, default: int) -> int:
    try:
        return parse_instant(query[name]) if name in query else default
    except ValueError as error:
        raise refused_field(name, str(error), "bad-parameter") from None
