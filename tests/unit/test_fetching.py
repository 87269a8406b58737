"""A fetch waits long only where it asks for every partition."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from minutebook.log.fetching import WHOLE_WAIT_MS, wait_longer_for_all


class Fetching:
    """As much of aiokafka's fetcher as is looked at."""

    def __init__(self) -> None:
        self._fetch_max_wait_ms = 25
        self._records: dict[int, str] = {}

    def _get_actions_per_node(self, assignment: str) -> tuple[str, int]:
        return assignment, self._fetch_max_wait_ms


def test_a_fetch_waits_long_only_where_nothing_is_left_to_take() -> None:
    fetcher: Any = Fetching()
    wait_longer_for_all(SimpleNamespace(_fetcher=fetcher))
    assert fetcher._get_actions_per_node("a") == ("a", WHOLE_WAIT_MS)
    fetcher._records[3] = "not taken yet"
    assert fetcher._get_actions_per_node("b") == ("b", 25)
    fetcher._records.clear()
    assert fetcher._get_actions_per_node("c") == ("c", WHOLE_WAIT_MS)
