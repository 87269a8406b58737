"""`minutebook kafka`: a broker that one command starts, others see it and stop it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.kafka
ROOT = Path(__file__).parents[2]


def command(verb: str, data: Path) -> list[str]:
    return [sys.executable, "-m", "minutebook.cli", "kafka", verb, "--data", str(data), "-o", "json"]


def answer(verb: str, data: Path) -> tuple[int, dict[str, object]]:
    done = subprocess.run(command(verb, data), cwd=ROOT, capture_output=True, text=True, check=False)
    return done.returncode, json.loads(done.stdout)


def test_broker_is_started_seen_and_stopped(tmp_path: Path) -> None:
    data = tmp_path / "kafka"
    none = {"data": str(data), "pid": None, "bootstrap_servers": None}
    assert answer("status", data) == (1, none)
    started = subprocess.Popen(command("start", data), cwd=ROOT, stdout=subprocess.PIPE, text=True)
    try:
        assert started.stdout is not None
        told = json.loads(started.stdout.readline())
        assert told["pid"] == started.pid
        assert answer("status", data) == (0, told)
        assert answer("stop", data) == (0, none)
        assert started.wait(10) == 130
    finally:
        started.terminate()
        started.wait()
        started.stdout.close()
    assert answer("status", data) == (1, none)
    assert answer("stop", data) == (0, none)
