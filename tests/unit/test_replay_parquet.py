"""Events as Parquet: a row for each, typed, in their places, and as much as the log says."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from minutebook.domain.rows import rows_of
from minutebook.history.steps import Wanted
from replay.files import FileLog, export
from replay.frames import frames_of
from replay.parquet import SCHEMA, write_parquet
from replay.story import steps_in
from tests.simulation.busy_log import BusyLog
from tests.simulation.copies import CopiedLog
from tests.simulation.log_maker import LogMaker, submit, success


def table_of(log: CopiedLog, folder: Path) -> pa.Table:
    export(log, folder / "out", [0])
    (path,) = write_parquet(FileLog(folder / "out"), folder / "out")
    return pq.read_table(path)


def rows(table: pa.Table, event: str) -> list[dict[str, Any]]:
    return [row for row in table.to_pylist() if row["event"] == event]


def test_a_run_is_a_few_typed_rows(tmp_path: Path) -> None:
    maker = LogMaker()
    maker.open()
    maker.command(submit("a", payload=b'{"n": 1}', actor="key:a", tags=["x"]))
    maker.due("w1.1")
    maker.report(success(maker.running()))
    table = table_of(CopiedLog(maker.records), tmp_path)
    assert table.schema.equals(SCHEMA)
    assert table.schema.field("at").type == pa.timestamp("ms", tz="UTC")
    due_at = datetime.fromtimestamp(maker.records[1].stamp / 1_000, UTC)
    (created,) = rows(table, "JobSubmitted")
    assert (created["tenant"], created["job_id"], created["actor"]) == ("acme", "a", "key:a")
    assert json.loads(created["body"])["payload"] == '{"n": 1}'
    assert json.loads(created["body"])["tags"] == ["x"]
    (granted,) = rows(table, "ExecutionsDueGranted")
    assert granted["due_at"] == granted["at"] == due_at
    assert granted["next_at"] is None
    assert (granted["session"], granted["attempt"], granted["job_id"]) == ("w1.1", 1, "a")
    assert granted["event_id"] == f"0.{granted['offset']}.1.0"
    assert granted["token"] == (granted["offset"] << 16) + 1
    (ended,) = rows(table, "AttemptsSucceeded")
    assert (ended["token"], ended["run_ms"]) == (granted["token"], 0)


def test_metadata_says_which_stretch_it_is_of(tmp_path: Path) -> None:
    maker = LogMaker()
    maker.open()
    table = table_of(CopiedLog(maker.records), tmp_path)
    about = json.loads(table.schema.metadata[b"minutebook"])
    (stretch,) = FileLog(tmp_path / "out").manifest.stretches
    assert (about["topic"], about["partition"], about["end"]) == ("job-events", 0, 1)
    assert (about["head_before"], about["head_after"]) == (stretch.head_before, stretch.head_after)


@pytest.mark.parametrize("seed", [3])
def test_all_that_the_log_says_is_there(seed: int, tmp_path: Path) -> None:
    log = CopiedLog(BusyLog(seed).run(250).records)
    table = table_of(log, tmp_path)
    found = {row["event_id"]: row for row in table.to_pylist()}
    assert len(found) == table.num_rows
    assert table.num_rows >= sum(
        rows_of(event)
        for frame in frames_of(log, 0)
        for event in frame.events
        if hasattr(event, "tenants") and hasattr(event, "tenant")
    )
    count = 0
    for tenant in ("acme", "blue"):
        for step in steps_in(log, Wanted(tenant)):
            row = found[step.event_id]
            count += 1
            assert row["tenant"] == tenant
            assert row["job_id"] == step.job_id
            assert not step.execution or row["execution"] in (step.execution, None)
            said = row | json.loads(row["body"])
            for name in ("version", "attempt", "token", "session", "queue", "cause", "reason", "run_ms"):
                assert name not in step.said or said[name] == step.said[name] or step.said[name] == -1, name
    assert count > 100


def test_what_is_written_does_not_depend_on_how_it_is_cut_into_pieces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = CopiedLog(BusyLog(3).run(60).records)
    whole = table_of(log, tmp_path / "a")
    monkeypatch.setattr("replay.parquet._ROWS", 7)
    assert table_of(log, tmp_path / "b").to_pylist() == whole.to_pylist()


def test_large_payloads_are_written_a_few_at_a_time(tmp_path: Path) -> None:
    """20 MB in a few rows."""
    maker = LogMaker()
    maker.open()
    for number in range(80):
        maker.command(submit(f"j{number}", payload=b'"' + b"x" * 250_000 + b'"'))
    created = rows(table_of(CopiedLog(maker.records), tmp_path), "JobSubmitted")
    assert [row["job_id"] for row in created] == [f"j{number}" for number in range(80)]
    assert pq.ParquetFile(tmp_path / "out" / "partition-0.parquet").num_row_groups == 2
