"""Who wanted what, when, from where and why, and what was decided."""

from __future__ import annotations

from typing import Annotated, Final

from fastapi import Depends, Request, Response

from api.audit import audit_page
from api.auth import Caller, Scope
from api.pages.access import Seen, page_router, ready
from api.pages.doing import Refusal, refusal
from api.pages.filters import filtered, show_filter
from api.pages.forms import Form
from api.pages.last_audits import last_of
from api.pages.live import show_live
from api.parameters import query_of
from api.problems import Refused
from api.routes.audit_log import FILTERS, audit_filter
from api.services import Services
from minutebook.client.audit_models import AuditPage

router = page_router()
Auditing = Annotated[Caller, Depends(Seen(Scope.AUDIT_READ))]
_ROWS: Final = 50
_KINDS: Final = "job execution operation queue limit calendar task worker"
PAGES: Final = {
    "job": "/jobs/",
    "queue": "/queues/",
    "limit": "/limits/",
    "operation": "/operations/",
    "worker": "/workers/",
}
"""Where the page of a subject is."""


@router.get("/audit")
async def show_audit(request: Request, caller: Auditing) -> Response:
    """Commands, the latest first; a filter that is refused shows nothing, and why."""
    services = await ready(request)
    try:
        if (away := filtered(request, "/audit", FILTERS)) is not None:
            return away
        given = query_of(request, *FILTERS, "cursor")
        query = {name: value for name, value in given.items() if value}
        page = audit_page(services, caller, audit_filter(query), _ROWS, query.get("cursor"))
        return await _show(request, services, caller, page, query)
    except Refused as error:
        if error.code != "bad-parameter":
            raise
        refused = refusal(request, error, Form({}))
        return await _show(request, services, caller, AuditPage([], None), {}, refused)


async def _show(
    request: Request,
    services: Services,
    caller: Caller,
    page: AuditPage,
    query: dict[str, str],
    refused: Refusal | None = None,
) -> Response:
    last = await last_of(services.settings.reports_dir, caller.tenant)
    return show_live(
        request,
        "audit",
        _KINDS,
        200 if refused is None else refused.status,
        page=page,
        last=last,
        query=query,
        refused=refused,
        pages=PAGES,
        filter_text=show_filter(query, FILTERS),
    )
