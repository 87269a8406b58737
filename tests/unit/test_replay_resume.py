"""An audit that is gone on with says what one from the first record on says, and names what it did not read again."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Iterator
from contextlib import closing
from itertools import count
from pathlib import Path

import msgspec
import pytest
from typer.testing import CliRunner

from minutebook.errors import SettingsError
from minutebook.log.checkpoint import Copy
from minutebook.log.port import RawRecord
from replay.__main__ import app
from replay.audit import Audit
from replay.files import export
from replay.heads import Head, Heads
from replay.reading import Until
from replay.report import Report, heads_of
from replay.verbs.common import stoppable
from replay.verify import Copies, copies_in, verify
from tests.simulation.busy_log import BusyLog
from tests.simulation.copies import CopiedLog, copy_state, copy_view

replace = msgspec.structs.replace
Records = list[RawRecord]


@pytest.fixture(scope="module")
def records() -> Records:
    return BusyLog(7).run(150).records


@pytest.fixture(scope="module")
def copies(records: Records, tmp_path_factory: pytest.TempPathFactory) -> Copies:
    folder = tmp_path_factory.mktemp("copies")
    copy_state(folder, 0, records)
    copy_view(folder, [records])
    return copies_in(folder)


@pytest.fixture(scope="module")
def in_one_go(records: Records, copies: Copies) -> Report:
    report = verify(CopiedLog(records), [0], copies)
    assert report.ok
    return report


def without_what_was_taken_over(report: Report) -> Report:
    return replace(report, partitions=[replace(item, taken_over=0) for item in report.partitions])


def stopped_after(number: int) -> Iterator[bool]:
    return (done >= number for done in count(1))


@pytest.mark.parametrize("first", [1, 40, 100])
def test_a_resumed_audit_says_what_one_in_one_go_says(
    first: int, records: Records, copies: Copies, in_one_go: Report, tmp_path: Path
) -> None:
    began = verify(CopiedLog(records), [0], copies, Until(offset=first - 1), folder=tmp_path / "kept")
    assert (began.partitions[0].position, began.partitions[0].taken_over) == (first - 1, 0)
    found = verify(CopiedLog(records), [0], copies, folder=tmp_path / "kept")
    assert found.partitions[0].taken_over == first
    assert without_what_was_taken_over(found) == in_one_go
    again = verify(CopiedLog(records), [0], copies, folder=tmp_path / "kept")
    assert again.partitions[0].taken_over == len(records)
    assert without_what_was_taken_over(again) == in_one_go


def test_an_interrupted_audit_says_how_far_it_came_and_goes_on(
    records: Records, copies: Copies, in_one_go: Report, tmp_path: Path
) -> None:
    asked = stopped_after(30)
    began = verify(CopiedLog(records), [0], copies, folder=tmp_path / "kept", is_stopped=lambda: next(asked))
    assert began.is_interrupted()
    assert began.ok
    only = began.partitions[0]
    assert (only.position, only.state, only.view) == (only.records - 1, "not reached", "not reached")
    assert 0 < only.records < len(records)
    found = verify(CopiedLog(records), [0], copies, folder=tmp_path / "kept")
    assert without_what_was_taken_over(found) == in_one_go


def test_a_killed_audit_goes_on_from_what_was_saved_last(
    records: Records, copies: Copies, in_one_go: Report, tmp_path: Path
) -> None:
    verify(CopiedLog(records[:1]), [0], None, folder=tmp_path / "kept")
    shutil.rmtree(tmp_path / "kept" / "partition-0")
    (tmp_path / "kept" / "partition-0").mkdir()
    wanted = {part: held[0] for part, held in copies.items()}
    with closing(Audit(CopiedLog(records), 0, tmp_path / "kept" / "partition-0", wanted, None)) as audit:
        assert audit.can_begin()
        for record in records[:30]:
            assert audit.take(record)
        audit.save()
        for record in records[30:60]:
            assert audit.take(record)
        shutil.copytree(tmp_path / "kept", tmp_path / "left behind")
    found = verify(CopiedLog(records), [0], copies, folder=tmp_path / "left behind")
    assert found.partitions[0].taken_over == 30
    assert without_what_was_taken_over(found) == in_one_go


def test_a_finding_of_an_earlier_call_is_not_forgotten(records: Records, tmp_path: Path) -> None:
    changed = [record._replace(key=b"k") if record.offset == 20 else record for record in records]
    began = verify(CopiedLog(changed), [0], until=Until(offset=60), folder=tmp_path / "kept")
    found = verify(CopiedLog(changed), [0], folder=tmp_path / "kept")
    assert began.findings[0].offset == found.findings[0].offset == 20
    assert found.findings == verify(CopiedLog(changed), [0]).findings


def test_another_log_than_the_one_before_is_found(records: Records, tmp_path: Path) -> None:
    verify(CopiedLog(records[:50]), [0], folder=tmp_path / "kept")
    changed = [record._replace(key=b"k") if record.offset == 49 else record for record in records]
    (found,) = verify(CopiedLog(changed), [0], folder=tmp_path / "kept").findings
    assert (found.offset, found.what) == (49, "another record lies here than the one that was audited before")
    (found,) = verify(CopiedLog(records[:45]), [0], folder=tmp_path / "kept").findings
    assert (found.first, found.last, found.what) == (45, 49, "records that were audited before are gone")
    assert verify(CopiedLog(records), [0], folder=tmp_path / "kept").ok, "nothing of that is kept"


def test_copies_from_before_are_said_to_be_passed_by(records: Records, tmp_path: Path) -> None:
    verify(CopiedLog(records[:100]), [0], folder=tmp_path / "kept")
    for number, place in enumerate((80, len(records))):
        copy_state(tmp_path / f"copies-{number}", 0, records[:place])
        copy_view(tmp_path / f"copies-{number}", [records[:place]])
    early, late = (copies_in(tmp_path / f"copies-{number}") for number in range(2))
    for _ in range(2):
        only = verify(CopiedLog(records), [0], early, folder=tmp_path / "kept").partitions[0]
        assert (only.state, only.view) == ("passed by", "passed by")
        assert [line.partition(":")[0] for line in only.unchecked] == [
            "the copy of the owner's state is not compared",
            "the copy of the view is not compared",
        ]
    only = verify(CopiedLog(records), [0], late, folder=tmp_path / "kept").partitions[0]
    assert (only.state, only.view) == ("equal", "passed by"), "no view was folded before"


def test_a_kept_head_from_before_is_compared(records: Records, tmp_path: Path) -> None:
    heads = heads_of(verify(CopiedLog(records[:60]), [0]))
    verify(CopiedLog(records[:100]), [0], folder=tmp_path / "kept")
    good = verify(CopiedLog(records), [0], kept=heads, folder=tmp_path / "kept")
    assert (good.ok, good.partitions[0].kept) == (True, "equal")
    wrong = Heads(log_id="", partitions={0: Head(position=59, head="00" * 32)})
    bad = verify(CopiedLog(records), [0], kept=wrong, folder=tmp_path / "kept")
    assert (bad.ok, bad.partitions[0].kept) == (False, "different")


def test_a_comparison_that_is_asked_for_no_more_leaves_no_finding(records: Records, tmp_path: Path) -> None:
    log, folder, last = CopiedLog(records), tmp_path / "kept", len(records) - 1
    good = heads_of(verify(log, [0], folder=folder))
    wrong = Heads(log_id="", partitions={0: Head(position=5, head="00" * 32)})
    assert not verify(log, [0], kept=wrong, folder=folder).ok
    assert not verify(log, [0], kept=wrong, folder=folder).ok, "it is still asked for"
    found = verify(log, [0], kept=good, folder=folder)
    assert (found.findings, found.partitions[0].kept) == ([], "equal")
    assert not verify(log, [0], kept=wrong, folder=folder).ok
    bad: Copies = {
        "streams": {0: Copy(partition=0, path=str(tmp_path / "gone"), position=last, head="00" * 32)}
    }
    found = verify(log, [0], bad, folder=folder)
    assert [finding.what for finding in found.findings] == [
        f"the chain's head after {last} is another in the copy of the owner's state",
        "there is no copy of the view",
    ]
    assert verify(log, [0], folder=folder).findings == []


def test_a_folder_of_something_else_is_refused(records: Records, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "file").touch()
    with pytest.raises(SettingsError, match="holds something else"):
        verify(CopiedLog(records), [0], folder=tmp_path / "other")
    verify(CopiedLog(records[:9]), [0], folder=tmp_path / "kept")
    with pytest.raises(SettingsError, match="--until ends at 3"):
        verify(CopiedLog(records), [0], until=Until(offset=3), folder=tmp_path / "kept")
    with pytest.raises(SettingsError, match="begins at offset 0, this one at 4"):
        verify(CopiedLog(records[4:]), [0], folder=tmp_path / "kept")
    heads = tmp_path / "kept" / "partition-0" / "heads"
    heads.write_bytes(heads.read_bytes()[:-1])
    with pytest.raises(SettingsError, match="was cut"):
        verify(CopiedLog(records), [0], folder=tmp_path / "kept")
    (tmp_path / "kept" / "audit.json").write_text('"0"')
    with pytest.raises(SettingsError, match="of format"):
        verify(CopiedLog(records), [0], folder=tmp_path / "kept")


def test_an_end_in_time_before_what_was_read_is_refused(records: Records, tmp_path: Path) -> None:
    until = Until(at=records[40].stamp)
    began = verify(CopiedLog(records), [0], until=until, folder=tmp_path / "kept")
    again = verify(CopiedLog(records), [0], until=until, folder=tmp_path / "kept")
    assert again.partitions[0].position == began.partitions[0].position
    with pytest.raises(SettingsError, match=r"through 20.*Z, --until ends at 20.*Z: choose a new folder"):
        verify(CopiedLog(records), [0], until=Until(at=records[40].stamp - 1), folder=tmp_path / "kept")


def test_the_command_says_what_it_took_over(records: Records, tmp_path: Path) -> None:
    export(CopiedLog(records), tmp_path / "files", [0])
    files = ["verify", "--files", str(tmp_path / "files"), "--resume", str(tmp_path / "kept")]
    began = CliRunner().invoke(app, [*files, "--until", "49"])
    assert began.exit_code == 0, began.output
    assert "earlier call" not in began.stdout
    found = CliRunner().invoke(app, files, env={"COLUMNS": "300"})
    assert found.exit_code == 0, found.output
    assert "offsets 0 to 49 were checked by an earlier call and not read again" in found.stdout
    assert CliRunner().invoke(app, [*files, "--until", "3"]).exit_code == 3


def test_the_first_interruption_asks_and_the_second_ends() -> None:
    with stoppable() as is_stopped:
        assert not is_stopped()
        os.kill(os.getpid(), signal.SIGINT)
        assert is_stopped()
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGTERM)


def test_a_copy_is_compared_once(records: Records, copies: Copies, tmp_path: Path) -> None:
    """What was found of it in an earlier call stands, although it cannot be compared any more."""
    verify(CopiedLog(records), [0], copies, folder=tmp_path / "kept")
    longer = [*records, RawRecord(len(records), records[-1].stamp, None, b"junk")]
    assert all(isinstance(held[0], Copy) for held in copies.values())
    only = verify(CopiedLog(longer), [0], copies, folder=tmp_path / "kept").partitions[0]
    assert (only.state, only.view, only.taken_over) == ("equal", "equal", len(records))
