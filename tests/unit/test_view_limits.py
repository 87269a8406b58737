"""Limits in the read model: what is asked of an old version of a limit counts no more, at its home and elsewhere."""

from __future__ import annotations

import pytest

from minutebook.domain import events as facts
from minutebook.domain.events import Event
from minutebook.domain.view import PartitionView
from minutebook.domain.view_limits import lacks_permit
from minutebook.domain.view_rows import FAMILIES, PermitsAskedRow, PermitsUsedRow
from minutebook.store.memory import MemoryRows

NOW = 1_750_000_000_000


@pytest.fixture
def view() -> PartitionView:
    """The limit `k` of acme is known, in version 2."""
    made = PartitionView(MemoryRows(FAMILIES), 0)
    fold(made, facts.LimitCopied("acme", "k", 2, 3, -1, -1, -1, False))
    return made


def fold(view: PartitionView, *events: Event) -> None:
    view.fold(events, NOW, view.position + 1)


def asked(version: int, count: int) -> facts.PermitsAsked:
    return facts.PermitsAsked("acme", "k", version, 0, count, 5)


def test_what_was_asked_of_an_old_version_makes_nobody_wait(view: PartitionView) -> None:
    fold(view, asked(1, 2))
    assert not lacks_permit(view, "acme", "k", NOW)
    fold(view, asked(2, 2))
    assert lacks_permit(view, "acme", "k", NOW)


def test_what_is_asked_adds_up_within_a_version(view: PartitionView) -> None:
    fold(view, asked(1, 4), asked(2, 2), asked(2, 1))
    assert view.permits_asked("acme", "k") == PermitsAskedRow(2, 3)


def test_permits_of_an_old_version_answer_nothing_that_was_asked_of_the_new_one(view: PartitionView) -> None:
    fold(view, asked(2, 2), facts.PermitsReceived("acme", "k", 1, [7]))
    assert view.permits_asked("acme", "k") == PermitsAskedRow(2, 2)
    fold(view, facts.PermitsReceived("acme", "k", 2, [8, 9, 10]))
    assert view.permits_asked("acme", "k") == PermitsAskedRow(2, 0)


def test_demands_of_an_old_version_are_void_and_permits_stay_out(view: PartitionView) -> None:
    fold(
        view,
        facts.PermitsDemanded("acme", "k", 1, 3, 2, 5),
        facts.PermitsDemanded("acme", "k", 1, 4, 2, 5),
        facts.PermitsGranted("acme", "k", 1, [3, 4]),
        facts.PermitsDemanded("acme", "k", 2, 4, 2, 5),
        facts.PermitsDemanded("acme", "k", 2, 4, 1, 9),
    )
    assert view.permits_used("acme", "k") == PermitsUsedRow(2, 2, ((4, 3),))
