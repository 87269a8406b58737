"""The tables that tests leave, and how many rounds they are asked for."""

from __future__ import annotations

import pytest

from tests import figures


def test_rows_of_one_title_share_a_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(figures, "_tables", {})
    figures.note("Faults", fault="worker killed", max_s=6.904, lost=0)
    figures.note("Faults", fault="owner", max_s=12.0, lost=1, refused=3)

    assert list(figures.lines()) == [
        "Faults",
        "  fault          max s  lost  refused",
        "  worker killed  6.90   0",
        "  owner          12.00  1     3",
    ]


def test_nothing_is_shown_where_nothing_was_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(figures, "_tables", {})
    assert list(figures.lines()) == []


def test_rounds_are_few_unless_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(figures.SETTING, raising=False)
    assert figures.rounds_asked() == figures.FEW
    monkeypatch.setenv(figures.SETTING, "30")
    assert figures.rounds_asked() == 30


@pytest.mark.parametrize("text", ["0", "-1", "many", "3.5", ""])
def test_rounds_that_are_no_count_are_refused_by_name(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv(figures.SETTING, text)
    with pytest.raises(ValueError, match=r"MINUTEBOOK_ROUNDS=.*whole number of rounds"):
        figures.rounds_asked()


@pytest.mark.parametrize(("rounds", "held_to"), [(figures.FEW, 10), (figures.PROOF, 7)])
def test_a_proof_is_judged_by_the_goal(monkeypatch: pytest.MonkeyPatch, rounds: int, held_to: float) -> None:
    monkeypatch.setattr(figures, "ROUNDS", rounds)
    assert figures.bound(goal=7, busy=10) == held_to
