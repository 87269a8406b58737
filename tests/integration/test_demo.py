"""The demo, from the outside: it ends by itself, its last line is the account, and nothing of it is left."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def demo(*arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MINUTEBOOK_")}
    command = [sys.executable, "-m", "examples.demo", *arguments]
    return subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, check=False)


def processes_naming(text: str) -> list[str]:
    """Command lines and environments that hold `text`, of all processes that can be read."""
    found = []
    for process in Path("/proc").iterdir():
        if process.name.isdigit() and int(process.name) != os.getpid():
            try:
                seen = (process / "cmdline").read_bytes() + (process / "environ").read_bytes()
            except OSError:
                continue
            if text.encode() in seen:
                found.append(process.name)
    return found


@pytest.mark.kafka
@pytest.mark.slow
@pytest.mark.timeout(240)
def test_demo_accounts_for_every_due_instant_in_spite_of_two_kills(tmp_path: Path) -> None:
    done = demo("--data", str(tmp_path / "demo"))

    assert done.returncode == 0, done.stdout + done.stderr
    figures = json.loads(done.stdout.splitlines()[-1])
    assert figures["jobs"] > 300
    assert (figures["early"], figures["lost"]) == (0, 0)
    assert figures["executions"]["succeeded"] > 300
    assert figures["executions"]["failed"] == 2
    # Of fifteen instants two seconds apart at most five can run for five seconds without an overlap; a pause of three
    # seconds misses three instants at least, of which the latest runs.
    assert figures["skipped"]["overlap"] >= 10
    assert figures["skipped"]["misfire"] >= 2
    assert 0 < figures["spread_s"] <= 3
    assert [kill["what"] for kill in figures["kills"]] == ["owner-1", "worker-1"]
    assert figures["verify"]["ok"]
    assert figures["verify"]["records"] > 0
    assert figures["completeness"]["ok"]
    assert figures["completeness"]["implied"] > 300
    assert "Why " in done.stdout
    assert processes_naming(str(tmp_path)) == []


def test_demo_refuses_a_folder_that_holds_something_else(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("three years of work")
    refused = demo("--data", str(tmp_path))

    assert refused.returncode == 1
    assert "--data" in refused.stderr
    assert (tmp_path / "thesis.txt").exists()
