"""When the log was last verified, how far, and what was found: read from where audits leave their results.

The audits run elsewhere (`python -m replay`): a page only reads two small files, in a thread.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import NamedTuple

from minutebook.errors import SettingsError
from minutebook.log.last_audit import Accounted, LastAudits, LastCompleteness, LastVerify, read_last


class Last(NamedTuple):
    """What a tenant is told. `own`: its instants; None = it had none then. `fault`: why a result cannot be shown."""

    verify: LastVerify | None
    completeness: LastCompleteness | None
    own: Accounted | None
    is_set: bool
    fault: str = ""


async def last_of(folder: Path | None, tenant: str) -> Last:
    """The last results in the reports' folder, for people of a tenant; None = no folder is set."""
    if folder is None:
        return Last(None, None, None, is_set=False)
    try:
        found = await asyncio.to_thread(read_last, folder)
    except SettingsError as error:
        found, fault = LastAudits(), str(error)
    else:
        fault = ""
    completeness = found.completeness
    own = None if completeness is None else completeness.tenants.get(tenant)
    return Last(found.verify, completeness, own, is_set=True, fault=fault)
