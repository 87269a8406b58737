"""The log that the bench folds is one that owners could have written."""

from __future__ import annotations

from collections import Counter

from bench.made_log import MadeLog
from minutebook.domain import events as facts
from minutebook.domain.rows import rows_of
from minutebook.wire.frames import decode_frame
from replay.verify import verify
from tests.simulation.copies import CopiedLog

EVENTS = 12_000


def test_a_made_log_is_lawful_and_has_all_that_it_says() -> None:
    records = list(MadeLog(0, EVENTS).read(0, 0, 0))
    report = verify(CopiedLog(records), [0])
    assert report.ok, report.findings
    assert EVENTS <= report.partitions[0].rows < EVENTS + 2_000
    rows: Counter[type] = Counter()
    for record in records:
        for event in decode_frame(record.value).events:
            rows[type(event)] += rows_of(event)
    assert rows[facts.AttemptsSucceeded] > rows[facts.ExecutionsGranted] > rows[facts.AttemptFailed] > 0
    assert rows[facts.ExecutionsDueGranted] > rows[facts.ExecutionsQueued] > 0
