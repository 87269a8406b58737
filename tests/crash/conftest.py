"""One installation a test, on the broker that all tests share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.crash.stack import Stack


@pytest.fixture
def stack(broker: Any, tmp_path: Path) -> Iterator[Stack]:
    """Own topics, group and folder; every process ends with the test."""
    made = Stack(broker.bootstrap_servers, tmp_path)
    yield made
    made.close()
