"""The list of executions of all jobs, filtered, as it stands now."""

from __future__ import annotations

from typing import Annotated, Any, Final

from fastapi import Depends, Request, Response

from api.auth import Caller, Scope
from api.list_filters import ATTEMPT_STATUSES, EXECUTION_FILTERS
from api.pages.access import Seen, page_router, ready
from api.pages.doing import Refusal, refusal
from api.pages.filters import filtered, show_filter
from api.pages.forms import Form
from api.pages.live import show_live
from api.parameters import query_of
from api.problems import Refused
from api.routes.lists import executions_page
from minutebook.client.list_models import ExecutionsPage

router = page_router()
Reading = Annotated[Caller, Depends(Seen(Scope.JOBS_READ))]
_ROWS: Final = "50"


@router.get("/executions")
async def show_executions(request: Request, caller: Reading) -> Response:
    """The list; a filter that is refused shows nothing, and why."""
    services = await ready(request)
    try:
        if (away := filtered(request, "/executions", EXECUTION_FILTERS, ("order",))) is not None:
            return away
        query = {
            name: value
            for name, value in query_of(request, *EXECUTION_FILTERS, "order", "cursor").items()
            if value
        }
        return _show(request, executions_page(services, caller, {**query, "limit": _ROWS}), query)
    except Refused as error:
        if error.code != "bad-parameter":
            raise
        return _show(request, ExecutionsPage([], None), {}, refusal(request, error, Form({})))


def _show(
    request: Request, page: ExecutionsPage, query: dict[str, str], refused: Refusal | None = None
) -> Response:
    is_ascending = (
        query.get("order", "scheduled" if query.get("status") == "scheduled" else "") == "scheduled"
    )
    values: dict[str, Any] = {
        "page": page,
        "query": query,
        "refused": refused,
        "statuses": ATTEMPT_STATUSES,
        "is_ascending": is_ascending,
        "filter_text": show_filter(query, EXECUTION_FILTERS),
    }
    return show_live(request, "executions", "execution", 200 if refused is None else refused.status, **values)
