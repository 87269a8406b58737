"""The API steps back: its niceness, and that of the session it leads."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

_ADDED = str(min(7, 19 - os.nice(0)))
"""Niceness ends at 19, also where the tests themselves were started with some."""
_SAY = """
import os, pathlib
from api.priority import step_back
group = pathlib.Path("/proc/self/autogroup")
# No file: a kernel without autogroups. An empty one: no ancestor ever started a session.
of_session = lambda: (group.read_text() if group.exists() else "").split()[-1:] or ["none"]
before = os.nice(0), of_session()
step_back(7)
print(os.nice(0) - before[0], *before[1], *of_session())
"""


def test_what_is_refused_is_no_fault() -> None:
    refused = _SAY.replace(
        "before =", "def refuse(*_): raise OSError\npathlib.Path.write_text = refuse\nbefore ="
    )
    said = subprocess.run(
        [sys.executable, "-c", refused], start_new_session=True, capture_output=True, text=True, timeout=30
    )
    assert said.stdout.split()[0] == _ADDED, said.stderr


@pytest.mark.parametrize("leads", [True, False])
def test_it_lowers_its_own_session_and_no_other(leads: bool) -> None:
    said = subprocess.run(
        [sys.executable, "-c", _SAY],
        start_new_session=leads,
        capture_output=True,
        text=True,
        check=True,
        timeout=30,
    )
    added, before, after = said.stdout.split()
    assert added == _ADDED
    assert after == ("7" if leads and before != "none" else before)


def test_a_process_of_no_session_is_no_fault() -> None:
    sessionless = _SAY.replace("before =", "pathlib.Path.read_text = lambda _: ''\nbefore =")
    said = subprocess.run(
        [sys.executable, "-c", sessionless],
        start_new_session=True,
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert said.stdout.split() == [_ADDED, "none", "none"], said.stderr
