"""What a receiver of alerts is sent: JSON, in the shape that Standard Webhooks recommends."""

from __future__ import annotations

import msgspec

from minutebook.client.models import Alert as AlertBody
from minutebook.domain.records import Alert
from minutebook.domain.view_rows import AlertRow
from minutebook.times import format_instant


class Message(msgspec.Struct, frozen=True):
    """The body of a webhook."""

    type: str
    timestamp: str
    data: AlertBody


def body_of(alert: Alert) -> bytes:
    """The body that tells of `alert`: the same for each post of it."""
    return msgspec.json.encode(Message(f"alert.{alert.kind}", format_instant(alert.at), alert_body(alert)))


def alert_body(alert: Alert | AlertRow) -> AlertBody:
    """An alert as callers and receivers see it."""
    return AlertBody(
        id=alert.id,
        kind=alert.kind,  # type: ignore[arg-type]  # one of the kinds by the owner
        at=format_instant(alert.at),
        job_id=alert.job_id or None,
        execution_id=alert.execution or None,
        task=alert.task,
        queue=alert.queue,
        text=alert.text,
        left_out=alert.left_out,
        details=msgspec.Raw(alert.details),
    )
