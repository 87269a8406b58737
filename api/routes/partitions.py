"""The partitions of the jobs, for those who operate them."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response

from api.auth import Allowed, Caller, Scope
from api.bodies import check_accept
from api.decisions import json_response
from api.described import described
from api.parameters import query_of
from api.partitions import partitions
from minutebook.client.live_models import PartitionPage

router = APIRouter()
Operating = Annotated[Caller, Depends(Allowed(Scope.PARTITIONS_READ))]


@router.get(
    "/v1/partitions",
    operation_id="list_partitions",
    openapi_extra=described(answers={200: PartitionPage}, refusals=("bad-parameter",)),
)
async def list_partitions(request: Request, caller: Operating) -> Response:
    """List the partitions: owner, offsets, lag, clocks. Answered also while the view is still reading the log."""
    check_accept(request)
    query_of(request)
    return json_response(partitions(request.app.state.services))
