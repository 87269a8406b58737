"""Tests in two lanes: what shares the broker goes one after the other in one, and mostly waits; the other computes meanwhile.

The scheduling by marks of pytest-xdist 3.8 does nothing under pytest 9.2: it writes names that are read no longer.
"""

from __future__ import annotations

from typing import Any, Final

from xdist.scheduler import LoadFileScheduling

ON_BROKER: Final = ("tests/conformance/", "tests/crash/", "tests/integration/")
OWN_PROCESSES: Final = (
    "tests/crash/test_broker_killed.py",
    "tests/integration/test_cluster.py",
    "tests/integration/test_compose.py",
    "tests/integration/test_demo.py",
    "tests/integration/test_embedded_broker.py",
    "tests/integration/test_service.py",
)
"""They start brokers, or whole installations, of their own; nothing in them rests on how soon something happens."""


def group_of(file: str) -> str:
    """What must run in one lane with this test file."""
    if file in OWN_PROCESSES:
        return "own processes"
    return "broker" if file.startswith(ON_BROKER) else file


def rank(file: str) -> int:
    """Groups that take long are begun first."""
    return {"broker": 0, "own processes": 1}.get(group_of(file), 2)


class Lanes(LoadFileScheduling):
    """Groups of tests in order, each to the lane that is free first."""

    def __init__(self, config: Any, log: Any) -> None:
        super().__init__(config, log)
        config.option.loadscopereorder = False

    def _split_scope(self, nodeid: str) -> str:
        return group_of(super()._split_scope(nodeid))
