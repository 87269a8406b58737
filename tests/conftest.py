"""Fixtures that more than one folder of tests uses."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from minutebook.embedded import Broker
from tests import figures, lanes


@dataclass(frozen=True, slots=True)
class ForeignBroker:
    """A broker that runs already: only its address is ours."""

    bootstrap_servers: str


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker | ForeignBroker]:
    """One broker for the whole run: embedded, or the one at MINUTEBOOK_TEST_BOOTSTRAP_SERVERS. Use own topic names."""
    address = os.environ.get("MINUTEBOOK_TEST_BOOTSTRAP_SERVERS")
    if address:
        yield ForeignBroker(address)
        return
    with Broker(tmp_path_factory.mktemp("kafka")) as started:
        yield started


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """In lanes, what takes longest comes first."""
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: lanes.rank(item.nodeid.partition("::")[0]))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> lanes.Lanes:
    """Who runs what, see `tests.lanes`."""
    return lanes.Lanes(config, log)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A lane hands over the figures that its tests noted."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["figures"] = figures.noted()


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: object) -> None:
    """A lane has ended; one that crashed has handed over nothing."""
    figures.take(getattr(node, "workeroutput", {}).get("figures", {}))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Show the figures that tests noted."""
    for line in figures.lines():
        terminalreporter.write_line(line)
