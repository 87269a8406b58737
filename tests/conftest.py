"""Fixtures that more than one folder of tests uses."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from minutebook.embedded import Broker
from tests import figures


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


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Show the figures that tests noted."""
    for line in figures.lines():
        terminalreporter.write_line(line)
