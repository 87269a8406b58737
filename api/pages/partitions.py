"""The partitions: who owns each, how far its log is read, how far its clock is off."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Request, Response

from api import partitions
from api.auth import Caller, Scope
from api.pages.access import Seen, page_router
from api.pages.live import show_live

router = page_router()
Operating = Annotated[Caller, Depends(Seen(Scope.PARTITIONS_READ))]


@router.get("/partitions")
async def show_partitions(request: Request, caller: Operating) -> Response:
    """All partitions, also while the view is still reading the log."""
    page = partitions.partitions(request.app.state.services)
    return show_live(request, "partitions", "partition", every_s=3, page=page)
