"""Which jobs have their next instant when: an index of a tenant's jobs by the instant that comes due next.

It has what the due counts count (`view_due`): a paused job is not in it, one that recurs is in it once. An entry is a key
alone; its place, an instant and a job id, is made like those of the other lists. It is written when rows leave memory: a
job whose instant moved on several times between two commits is entered once.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from minutebook.domain.state import NONE_AT
from minutebook.domain.view_index import INSTANT
from minutebook.domain.view_lists import Found, Span

if TYPE_CHECKING:
    from minutebook.domain.view import PartitionView

FAMILY: Final = "due_index"


@lru_cache(maxsize=1024)
def _head(prefix: bytes, tenant: str) -> bytes:
    """Start of the entries of a tenant."""
    return prefix + f"{tenant}\0".encode()


def jobs_by_due(part: PartitionView, tenant: str, span: Span) -> Iterator[Found]:
    """Entries of jobs whose next instant lies in a span, by place. Reads committed rows only."""
    head = _head(part.prefix, tenant)
    scan = part.rows.scan if span.is_ascending else part.rows.scan_back
    for key, value in scan(FAMILY, head + span.first, head + span.end):
        yield key[len(head) :], value


def drained(view: PartitionView) -> dict[bytes, bytes | None]:
    """The entries that changed; from here on the jobs count as entered so."""
    found: dict[bytes, bytes | None] = {}
    pack, prefix = INSTANT.pack, view.prefix
    for job in view.changed_jobs.values():
        before_at, at = job.filed_at, NONE_AT if job.is_dropped else job.progress.coming_at
        if at == before_at:
            continue
        head = _head(prefix, job.tenant)
        if before_at >= 0:
            found[head + pack(before_at) + job.name] = None
        if at >= 0:
            found[head + pack(at) + job.name] = b""
        job.filed_at = at
    return found
