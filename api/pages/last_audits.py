"""When the log was last verified, how far, and what was found: read from where audits leave their results.

The audits run elsewhere (`python -m replay`): a page only reads two small files, in a thread.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import NamedTuple

from minutebook.log.last_audit import Accounted, LastCompleteness, LastVerify, read_last


class Last(NamedTuple):
    """What a tenant is told. `own`: its instants; None = it had none then. A fault: why that result cannot be shown."""

    verify: LastVerify | None
    completeness: LastCompleteness | None
    own: Accounted | None
    is_set: bool
    verify_fault: str = ""
    completeness_fault: str = ""


async def last_of(folder: Path | None, tenant: str) -> Last:
    """The last results in the reports' folder, for people of a tenant; None = no folder is set."""
    if folder is None:
        return Last(None, None, None, is_set=False)
    found = await asyncio.to_thread(read_last, folder)
    completeness = found.completeness
    own = None if completeness is None else completeness.tenants.get(tenant)
    return Last(
        found.verify,
        completeness,
        own,
        is_set=True,
        verify_fault=found.verify_fault,
        completeness_fault=found.completeness_fault,
    )
