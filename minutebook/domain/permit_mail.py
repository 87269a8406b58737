"""What owners tell each other of permits: asked for, granted, given back."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from minutebook.domain import events as facts
from minutebook.domain.book import Book
from minutebook.domain.records import PermitDemand, PermitGrant, PermitReturn

Asking = facts.PermitsAsked | facts.PermitsGranted | facts.PermitsReleased


def permit_mail(
    event: Asking, token: int
) -> Iterator[tuple[int, int, PermitDemand | PermitGrant | PermitReturn]]:
    """(partition, row of the frame, body) of each piece of mail that follows from `event`, whose first row has that token.

    Rows of one partition rise, as the marks of mail need.
    """
    match event:
        case facts.PermitsAsked():
            body = PermitDemand(event.tenant, event.limit, event.version, event.count, event.priority)
            yield event.home, token & 0xFFFF, body
        case facts.PermitsGranted():
            permits: dict[int, list[int]] = defaultdict(list)
            for permit, partition in enumerate(event.partitions, token):
                permits[partition].append(permit)
            for partition, granted in permits.items():
                grant = PermitGrant(event.tenant, event.limit, event.version, granted)
                yield partition, granted[0] & 0xFFFF, grant
        case facts.PermitsReleased():
            yield event.home, token & 0xFFFF, PermitReturn(event.tenant, event.limit, event.permits)


def permits_told(
    book: Book, mail: PermitDemand | PermitGrant | PermitReturn, sender: int
) -> Iterator[facts.PermitsDemanded | facts.PermitsReceived | facts.PermitsReturned]:
    """Events of what another owner, or this one, says of permits. A demand for another version of the limit is void: who
    asked knows the new one soon, and asks again.
    """
    match mail:
        case PermitDemand():
            limit = book.limit(mail.tenant, mail.limit)
            if limit is not None and limit.version == mail.version:
                demand = (mail.tenant, mail.limit, mail.version, sender, mail.count, mail.priority)
                yield facts.PermitsDemanded(*demand)
        case PermitGrant():
            yield facts.PermitsReceived(mail.tenant, mail.limit, mail.version, mail.permits)
        case PermitReturn():
            yield facts.PermitsReturned(mail.tenant, mail.limit, mail.permits)
