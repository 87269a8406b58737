"""Bodies in fewer bytes, for who takes gzip."""

from __future__ import annotations

import gzip
from functools import lru_cache
from typing import Final

from fastapi import Request

_BYTES_MIN: Final = 1_000
_LEVEL_PAGE: Final = 4
_LEVEL_FILE: Final = 9
VARIES: Final = {"vary": "accept-encoding"}


def page_body(request: Request, content: bytes) -> tuple[bytes, dict[str, str]]:
    """A page as it is sent, and the headers that say so. What is small stays as it is."""
    if len(content) < _BYTES_MIN or not takes_gzip(request):
        return content, VARIES
    return gzip.compress(content, _LEVEL_PAGE, mtime=0), _SAYING


def file_body(request: Request, content: bytes) -> tuple[bytes, dict[str, str]]:
    """A file that never changes, likewise; it is made small once."""
    return (_small(content), _SAYING) if takes_gzip(request) else (content, VARIES)


def takes_gzip(request: Request) -> bool:
    """Whether a caller says that it takes gzip."""
    for item in request.headers.get("accept-encoding", "").split(","):
        kind, _, weight = item.strip().partition(";")
        if kind.strip().lower() == "gzip":
            return weight.replace(" ", "") not in ("q=0", "q=0.0", "q=0.00", "q=0.000")
    return False


_SAYING: Final = {"content-encoding": "gzip"} | VARIES


@lru_cache(maxsize=64)
def _small(content: bytes) -> bytes:
    return gzip.compress(content, _LEVEL_FILE, mtime=0)
