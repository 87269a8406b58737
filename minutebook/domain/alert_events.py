"""The event of an alert; `events` names it with all others."""

from __future__ import annotations

import msgspec


class AlertRaised(msgspec.Struct, frozen=True, gc=False):
    """What people must hear of: it goes to `alerts`."""

    tenant: str
    kind: str
    job_id: str  # empty = of no single job
    execution: str
    task: str
    queue: str
    at: int
    text: str
    notify: str  # where it goes; empty = the tenant's target
    left_out: int  # causes of that job and kind since the last one, told by this one alone
    details: bytes  # a JSON object
