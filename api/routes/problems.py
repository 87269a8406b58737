"""The pages behind the `type` of every problem, from the one table. No credential: they say nothing of anybody."""

from __future__ import annotations

from html import escape
from typing import Final

from fastapi import APIRouter, Response

from api.problems import TABLE, Refused

PATH: Final = "/problems/{code}"
_PAGE: Final = """<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>{title}</title></head>
<body><h1>{title}</h1><p>{detail}</p><dl><dt>code</dt><dd>{code}</dd><dt>status</dt><dd>{status}</dd></dl></body>
</html>
"""

router = APIRouter()


@router.get(PATH, include_in_schema=False)
async def get_problem(code: str) -> Response:
    """What a problem means and how it is remedied, as a page."""
    kind = TABLE.get(code)
    if kind is None:
        raise Refused("not-found")
    page = _PAGE.format(title=escape(kind.title), detail=escape(kind.detail), code=code, status=kind.status)
    headers = {"content-security-policy": "default-src 'none'"}
    return Response(page, headers=headers, media_type="text/html")
