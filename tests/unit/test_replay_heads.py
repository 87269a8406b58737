"""Heads that were kept prove later that nothing before them changed; a log that was cut or changed is told."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from minutebook.errors import SettingsError
from minutebook.log.port import RawRecord
from replay.heads import Head, Heads, read_heads, write_heads
from replay.reading import Until
from replay.report import Report, heads_of
from replay.verify import verify
from tests.simulation.busy_log import BusyLog
from tests.simulation.copies import CopiedLog


@pytest.fixture(scope="module")
def records() -> list[RawRecord]:
    return BusyLog(5).run(120).records


@pytest.fixture(scope="module")
def heads(records: list[RawRecord]) -> Heads:
    return heads_of(verify(CopiedLog(records[:100]), [0]))


def against(records: list[RawRecord], heads: Heads, until: Until | None = None) -> Report:
    return verify(CopiedLog(records), [0], until=until or Until(), kept=heads)


def test_a_log_that_only_grew_agrees(records: list[RawRecord], heads: Heads, tmp_path: Path) -> None:
    write_heads(tmp_path / "heads", heads)
    assert read_heads(tmp_path / "heads") == heads
    assert heads.partitions[0].position == 99
    report = against(records, heads)
    assert report.ok
    assert report.partitions[0].kept == "equal"


def test_a_tail_that_was_cut_is_found(records: list[RawRecord], heads: Heads) -> None:
    report = against(records[:90], heads)
    assert not report.ok
    (found,) = [one for one in report.findings if "gone" in one.what]
    assert (found.first, found.last) == (90, 99)
    assert against(records[:90], heads, Until(offset=80)).partitions[0].kept == "not reached"


def test_a_last_record_that_was_replaced_is_found(records: list[RawRecord], heads: Heads) -> None:
    changed = records[99]._replace(stamp=records[99].stamp + 1)
    report = against([*records[:99], changed], heads)
    assert not report.ok
    assert report.partitions[0].kept == "different"
    assert verify(CopiedLog([*records[:99], changed]), [0]).ok, "the chain alone cannot show it"


def test_heads_of_another_log_are_told(records: list[RawRecord], heads: Heads) -> None:
    other = msgspec.structs.replace(heads, log_id="another", partitions={})
    report = against(records, other)
    assert [finding.what for finding in report.findings] == [
        "the heads that were kept are of the log another"
    ]
    none = Heads(log_id="", partitions={0: Head(position=99, head="00" * 32)})
    assert not against(records, none).ok


@pytest.mark.parametrize("text", ["", "[]", '{"log_id": 1}'])
def test_a_file_without_heads_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "heads").write_text(text)
    with pytest.raises(SettingsError, match="holds no heads"):
        read_heads(tmp_path / "heads")
