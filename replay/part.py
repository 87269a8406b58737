"""What a frame holds of one tenant: its own rows and events, each in its place, and nothing of another's.

Places and tokens count the rows of a frame, whoever they belong to. So what is another's stays as a blank: an event
without content, a row without names. How many rows of others lie before one of its own, a tenant's own tokens tell.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from minutebook.domain import events as facts
from minutebook.domain.events import Event
from minutebook.domain.names import Names
from minutebook.domain.rows import rows_of
from minutebook.domain.state import NONE_AT, UNCHANGED
from minutebook.wire.frames import Frame

DICTIONARIES: Final = {
    "tenant": "tenants",
    "queue": "queues",
    "task": "tasks",
    "session": "sessions",
    "limit": "limits",
    "permit_limit": "limits",
}
"""Columns of numbers, and the list of the same event that they point into."""
_PERMITS: Final = ("permit_row", "permit_limit", "permit_ids")
_SHARED: Final = (facts.LogOpened, facts.OwnershipTaken)
"""They name no tenant, and why something was late may rest on them."""


def part_of(frame: Frame, tenant: str) -> Frame | None:
    """The frame as far as it is the tenant's, with the times of decisions and owners; None where nothing is.

    Of queues it has those that the tenant may use. What was consumed when, sessions of workers and what is about no
    tenant are left out.
    """
    own = [_own(event, tenant) for event in frame.events]
    while own and own[-1] is None:
        own.pop()
    if not own:
        return None
    events: list[Event] = []
    blank = -1
    for event, whole in zip(own, frame.events, strict=False):
        if event is not None:
            events.append(event)
            blank = -1
        elif blank < 0:
            blank = len(events)
            events.append(_blank(rows_of(whole)))
        else:
            events[blank] = _blank(rows_of(events[blank]) + rows_of(whole))
            events.append(_blank(0))
    events[-1] = _without_end(events[-1], tenant)
    return _with(frame, events)


def bare(frame: Frame) -> Frame:
    """The frame without events: when somebody decided."""
    return _with(frame, [])


def _with(frame: Frame, events: list[Event]) -> Frame:
    return msgspec.structs.replace(
        frame, inputs=[], slices=[], settings=b"", outputs_sent_through=-1, events=events
    )


def is_blank(event: Event) -> bool:
    """Whether an event stands for another tenant's."""
    return isinstance(event, facts.PermitsReleased) and not event.tenant


def is_own(event: Event) -> bool:
    """Whether an event of a part is about that tenant alone: not blank, and none that every tenant's part may hold."""
    return not is_blank(event) and not isinstance(event, (*_SHARED, facts.QueueCopied))


def _blank(rows: int) -> Event:
    return facts.PermitsReleased("", "", 0, [0] * rows)


def _own(event: Any, tenant: str) -> Event | None:
    """The event as far as it is the tenant's."""
    if isinstance(event, _SHARED):
        return event
    if isinstance(event, facts.QueueCopied):
        return _queue(event, tenant)
    if is_columns(event):
        return _rows(event, tenant)
    if isinstance(event, facts.OperationAdvanced) and event.tenant == tenant:
        return msgspec.structs.replace(event, through=b"")
    return event if tenant_of(event) == tenant else None


def is_columns(event: Event) -> bool:
    """Whether the rows of an event may belong to several tenants."""
    return hasattr(event, "tenants") and hasattr(event, "tenant")


def tenant_of(event: Any) -> str:
    """Whose an event is that belongs to one tenant; empty if it is nobody's."""
    about = getattr(event, "job", None) or getattr(event, "fact", None) or event
    found: str = getattr(about, "tenant", "")
    return found


def _queue(event: facts.QueueCopied, tenant: str) -> Event | None:
    if event.tenants and tenant not in event.tenants:
        return None
    return msgspec.structs.replace(event, tenants=[tenant] if event.tenants else [])


def _rows(event: Any, tenant: str) -> Event | None:
    """An event of columns with the rows of others blank."""
    if tenant not in event.tenants:
        return None
    number = event.tenants.index(tenant)
    is_own = [one == number for one in event.tenant]
    if not any(is_own):
        return None
    fields = msgspec.structs.asdict(event)
    for name, values in fields.items():
        if isinstance(values, list) and name not in (*DICTIONARIES, *DICTIONARIES.values(), *_PERMITS):
            fields[name] = [
                value if own else _nothing(name, value) for value, own in zip(values, is_own, strict=False)
            ]
    if "permit_row" in fields:
        _keep_permits(fields, is_own)
    _keep_names(fields, is_own)
    if "through" in fields:
        fields["through"] = b""
    found: Event = type(event)(**fields)
    return found


def _nothing(name: str, value: Any) -> Any:
    """What stands for another's value of a column."""
    if name == "next_at":
        return UNCHANGED
    return NONE_AT if type(value) is int else type(value)()


def _keep_permits(fields: dict[str, Any], is_own: list[bool]) -> None:
    """Permits of the rows that stay."""
    kept = [place for place, row in enumerate(fields["permit_row"]) if is_own[row]]
    for name in _PERMITS:
        fields[name] = [fields[name][place] for place in kept]


def _keep_names(fields: dict[str, Any], is_own: list[bool]) -> None:
    """Dictionaries with the names that the rows that stay point to."""
    for column, names in DICTIONARIES.items():
        if column in fields and fields[names]:
            texts = Names()
            numbers, old = fields[column], fields[names]
            owns = is_own if column != "permit_limit" else [True] * len(numbers)
            fields[column] = texts.column(
                [old[number] if own else "" for number, own in zip(numbers, owns, strict=False)]
            )
            fields[names] = texts.texts


def _without_end(event: Any, tenant: str) -> Event:
    """The last event of a part without the rows of others behind the tenant's last one."""
    if not is_columns(event):
        return event  # type: ignore[no-any-return]  # any event
    number = event.tenants.index(tenant)
    end = len(event.tenant) - event.tenant[::-1].index(number)
    if end == len(event.tenant):
        return event  # type: ignore[no-any-return]  # as above
    fields = msgspec.structs.asdict(event)
    for name, values in fields.items():
        if isinstance(values, list) and name not in (*DICTIONARIES.values(), *_PERMITS):
            fields[name] = values[:end]
    _keep_names(fields, [True] * end)
    found: Event = type(event)(**fields)
    return found
