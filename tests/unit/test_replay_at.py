"""The state as of an instant or an offset equals what an owner held there."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from minutebook.store.memory import MemoryRows
from replay.reading import Until
from replay.state_at import state_at
from tests.simulation.busy_log import BusyLog
from tests.simulation.copies import CopiedLog
from tests.simulation.log_maker import LogMaker, cancel, submit, success


def in_memory(folder: Path, families: tuple[str, ...]) -> MemoryRows:
    return MemoryRows(families)


@pytest.mark.parametrize("seed", [1, 2])
def test_the_state_is_what_the_owner_held(seed: int) -> None:
    busy = BusyLog(seed)
    maker = busy.run(120)
    book = maker.book
    expected = Counter(execution.status for _, execution in book.executions.scan(b""))
    expected.update(execution.status for _, execution in book.running.scan(b""))
    active = Counter(job.status for _, job in book.jobs.scan(b"") if job.status == "paused")
    position = maker.records[-1].offset
    later = busy.run(60).records
    for until in (Until(offset=position), Until(at=later[position + 1].stamp - 1)):
        if until.at is not None and later[position].stamp > until.at:
            continue
        found = state_at(CopiedLog(later), [0], until, make_rows=in_memory)
        assert found.partitions[0].position == position
        assert found.open_executions == dict(expected)
        assert found.jobs.get("paused", 0) == active["paused"]
        assert [item.at for item in found.due_next] == sorted(item.at for item in found.due_next)


def test_one_job_as_it_was() -> None:
    maker = LogMaker()
    maker.open()
    maker.command(submit("nightly", cron="* * * * *", tags=["x"]))
    maker.clock.advance(60_000)
    maker.due("w1.1")
    before = maker.records[-1].offset
    maker.report(success(maker.running()))
    maker.command(cancel("nightly", issued_at=maker.clock.now()))
    log = CopiedLog(maker.records)
    then = state_at(log, [0], Until(offset=before), "acme", "nightly", make_rows=in_memory).job
    assert then is not None
    assert (then.status, then.executions["open"], then.tags) == ("active", 1, ["x"])
    assert [item["status"] for item in then.latest] == ["running"]
    now = state_at(log, [0], Until(), "acme", "nightly", make_rows=in_memory).job
    assert now is not None
    assert (now.status, now.next_at, now.executions["succeeded"]) == ("cancelled", None, 1)
    assert state_at(log, [0], Until(offset=0), "acme", "nightly", make_rows=in_memory).job is None
    assert state_at(log, [0], Until(), "blue", "nightly", make_rows=in_memory).jobs == {}
