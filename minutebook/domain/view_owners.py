"""The read model of who owns a partition: folded from the frame with which each owner took it over."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import msgspec

from minutebook.domain import events as facts

if TYPE_CHECKING:
    from minutebook.domain.view import PartitionView

FAMILY: Final = "owners"


class OwnerRow(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """The owner of a partition, since when (ms, UTC), and the offset of the frame that says so."""

    owner: str
    epoch: int
    since_at: int
    position: int


def _taken(view: PartitionView, event: facts.OwnershipTaken) -> None:
    view.dirty[FAMILY][view.prefix] = OwnerRow(event.owner, event.epoch, view.now, view.position)


FOLDS: Final[dict[type, Callable[[PartitionView, Any], None]]] = {facts.OwnershipTaken: _taken}
