"""Files that pages load, each under the hash of its content: what has an address never changes, so it is kept for ever."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Final, NamedTuple

from fastapi import APIRouter, Request, Response

from api.pages.compression import file_body
from api.problems import Refused

router = APIRouter(include_in_schema=False)
FOLDER: Final = Path(__file__).parent / "static"
_TYPES: Final = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
_FOR_EVER: Final = {"cache-control": "public, max-age=31536000, immutable"}


class StaticFile(NamedTuple):
    """A file as it is sent. `digest`: first 16 hexadecimal digits of its SHA-256."""

    digest: str
    media_type: str
    content: bytes


def _read() -> dict[str, StaticFile]:
    found = {}
    for path in sorted(FOLDER.rglob("*")):
        if path.suffix in _TYPES:
            content = path.read_bytes()
            digest = hashlib.sha256(content).hexdigest()[:16]
            found[path.name] = StaticFile(digest, _TYPES[path.suffix], content)
    return found


FILES: Final = _read()
"""By name, without the folder."""


def address(name: str) -> str:
    """Path of a file, without the installation's prefix."""
    return f"/static/{FILES[name].digest}/{name}"


@router.get("/static/{digest}/{name}")
async def get_static(request: Request, digest: str, name: str) -> Response:
    """A file, under the hash that it has now."""
    found = FILES.get(name)
    if found is None or found.digest != digest:
        raise Refused("not-found")
    body, saying = file_body(request, found.content)
    return Response(body, headers=_FOR_EVER | saying, media_type=found.media_type)
