"""Histories of old stay what they are: each folds to the states that were written down when it was made."""

from __future__ import annotations

import msgspec
import pytest

from tests.golden import history, plays_of_time, plays_of_work
from tests.golden.plays import PLAYS

__all__ = ["plays_of_time", "plays_of_work"]

TOTAL_BYTES_MAX = 500_000

every_history = pytest.mark.parametrize("name", history.names())


@every_history
def test_a_history_folds_to_what_was_written_down(name: str) -> None:
    assert history.fold(history.log_of(name)) == history.expected_of(name).folded, (
        f"{name} folds to another state: see CONTRIBUTING.md, golden histories"
    )


@every_history
def test_a_history_tells_its_story(name: str) -> None:
    told = (history.HISTORIES / name / "story.jsonl").read_bytes().splitlines()
    assert [msgspec.json.decode(line) for line in told] == history.story(history.log_of(name))


def test_every_play_has_its_history() -> None:
    assert set(PLAYS) <= set(history.names())


def test_histories_stay_small() -> None:
    files = [path for path in history.HISTORIES.rglob("*") if path.is_file()]
    assert 0 < sum(path.stat().st_size for path in files) < TOTAL_BYTES_MAX
