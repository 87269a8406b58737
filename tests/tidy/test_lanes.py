"""Tests in two lanes: those on the shared broker stay in one, and what the tests of both noted is shown."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.lanes import OWN_PROCESSES

ROOT = Path(__file__).parents[2]
LANES = re.search(r"^LANES := (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
TESTS = """
import os
import pytest
from tests import figures

LANE = os.environ.get("PYTEST_XDIST_WORKER", "none")

@pytest.mark.parametrize("number", range(3))
def test_it(number):
    figures.note("Lanes", folder=__file__.split("/")[-2], lane=LANE)
"""
FOLDERS = ("crash", "integration", "simulation", "unit")


@pytest.mark.parametrize("is_in_lanes", [True, False], ids=["two lanes", "one lane"])
def test_tests_on_the_broker_share_a_lane_and_all_figures_are_shown(
    tmp_path: Path, is_in_lanes: bool
) -> None:
    for folder in FOLDERS:
        (tmp_path / "tests" / folder).mkdir(parents=True)
        (tmp_path / "tests" / folder / f"test_of_{folder}.py").write_text(TESTS)
    assert LANES is not None
    options = LANES[1].split() if is_in_lanes else []
    command = [sys.executable, "-m", "pytest", "-c", "pyproject.toml", "--rootdir", tmp_path]
    ended = subprocess.run(
        [*command, "-p", "tests.conftest", *options, tmp_path],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert re.search(r"^=+ 12 passed in .*=+$", ended.stdout.splitlines()[-1]), ended.stdout + ended.stderr
    found = re.findall(rf"^  ({'|'.join(FOLDERS)}) +(\S+)$", ended.stdout, re.MULTILINE)
    assert Counter(folder for folder, _ in found) == dict.fromkeys(FOLDERS, 3)
    assert len({lane for folder, lane in found if folder in ("crash", "integration")}) == 1
    if is_in_lanes:
        assert {lane for _, lane in found} == {"gw0", "gw1"}


def test_every_file_with_a_rule_of_its_own_is_there() -> None:
    assert all((ROOT / file).is_file() for file in OWN_PROCESSES)
