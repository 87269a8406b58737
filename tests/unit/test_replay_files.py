"""Exported files: the log reads the same from them, what was changed is refused, state folded from them is equal."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from minutebook.errors import SettingsError
from minutebook.history.steps import Wanted
from minutebook.log.reader import next_head
from replay.files import MANIFEST, FileLog, export
from replay.importing import import_log
from replay.reading import Until
from replay.story import steps_in
from replay.verify import copies_in, verify
from tests.simulation.busy_log import BusyLog
from tests.simulation.copies import CopiedLog, copy_state, copy_view


@pytest.fixture(scope="module")
def records() -> CopiedLog:
    return CopiedLog(BusyLog(3).run(150).records)


def test_the_log_reads_the_same_from_files(records: CopiedLog, tmp_path: Path) -> None:
    export(records, tmp_path / "out", [0])
    log = FileLog(tmp_path / "out")
    assert log.bounds(0) == records.bounds(0)
    assert list(log.read(0, *log.bounds(0))) == list(records.read(0, *records.bounds(0)))
    assert list(log.read(0, 3, 7)) == list(records.read(0, 3, 7))
    report = verify(log, [0])
    assert report.ok
    assert report == verify(records, [0])
    wanted = Wanted("acme", "job-1")
    assert list(steps_in(log, wanted)) == list(steps_in(records, wanted))


def test_a_stretch_is_proved_to_be_a_part_of_the_chain(records: CopiedLog, tmp_path: Path) -> None:
    everything = list(records.read(0, *records.bounds(0)))
    since, until = everything[40], everything[90]
    manifest = export(records, tmp_path / "out", [0], since.stamp, Until(offset=until.offset))
    (stretch,) = manifest.stretches
    first = next(record.offset for record in everything if record.stamp >= since.stamp)
    assert (stretch.start, stretch.end) == (first, until.offset + 1)
    head = bytes(32)
    for record in everything[:first]:
        head = next_head(head, record)
    assert stretch.head_before == head.hex()
    report = verify(FileLog(tmp_path / "out"), [0])
    assert report.ok
    assert report.partitions[0].head == stretch.head_after
    assert report.partitions[0].unchecked == [f"this stretch begins at offset {first}: nothing can be folded"]
    assert report.partitions[0].digest == ""


@pytest.mark.parametrize("edit", ["last record", "end"])
def test_files_that_end_otherwise_than_they_were_exported_are_found(
    edit: str, records: CopiedLog, tmp_path: Path
) -> None:
    """Somebody has made the hash of the file anew, too."""
    everything = list(records.read(0, *records.bounds(0)))
    manifest = export(records, tmp_path / "out", [0])
    changed = everything[:-1]
    if edit == "last record":
        changed.append(everything[-1]._replace(key=b"k"))
    other = export(CopiedLog(changed), tmp_path / "other", [0])
    (tmp_path / "other" / "partition-0.avro").rename(tmp_path / "out" / "partition-0.avro")
    stretch = replace(other.stretches[0], head_after=manifest.stretches[0].head_after)
    manifest = replace(manifest, stretches=[stretch])
    (tmp_path / "out" / MANIFEST).write_bytes(msgspec.json.encode(manifest))
    (found,) = verify(FileLog(tmp_path / "out"), [0]).findings
    assert found.last == stretch.end - 1
    assert "another head than the files were exported with" in found.what


def test_a_changed_file_is_refused(records: CopiedLog, tmp_path: Path) -> None:
    export(records, tmp_path / "out", [0])
    path = tmp_path / "out" / "partition-0.avro"
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    with pytest.raises(SettingsError, match=r"partition-0\.avro is not the file that was exported"):
        FileLog(tmp_path / "out")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "holds no export"),
        ("{}", "holds no export"),
        ('{"format": 9, "topic": "t", "partitions": 1, "stretches": []}', "is of format 9, 1 is known"),
    ],
)
def test_what_is_no_export_is_refused(text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / MANIFEST).write_text(text)
    with pytest.raises(SettingsError, match=said):
        FileLog(tmp_path)


def test_a_partition_that_was_not_exported_is_named(records: CopiedLog, tmp_path: Path) -> None:
    export(CopiedLog([], []), tmp_path / "out", [1])
    with pytest.raises(SettingsError, match="partition 0 is not among the exported files"):
        FileLog(tmp_path / "out").bounds(0)


def test_a_folder_that_is_not_empty_is_left_alone(records: CopiedLog, tmp_path: Path) -> None:
    (tmp_path / "note").write_text("mine")
    with pytest.raises(SettingsError, match="is not empty"):
        export(records, tmp_path, [0])
    assert [path.name for path in tmp_path.iterdir()] == ["note"]


def test_imported_state_equals_what_owner_and_api_hold(records: CopiedLog, tmp_path: Path) -> None:
    export(records, tmp_path / "out", [0])
    (imported,) = import_log(FileLog(tmp_path / "out"), [0], tmp_path / "copies")
    everything = list(records.read(0, *records.bounds(0)))
    copies = copies_in(tmp_path / "copies")
    report = verify(records, [0], copies)
    assert report.ok
    assert (report.partitions[0].state, report.partitions[0].view) == ("equal", "equal")
    assert report.partitions[0].digest == imported.state
    copy_state(tmp_path / "live", 0, everything)
    copy_view(tmp_path / "live", [everything])
    live = copies_in(tmp_path / "live")
    assert verify(FileLog(tmp_path / "out"), [0], live).ok


def test_copies_are_found_in_a_folder_that_was_named_from_here(
    records: CopiedLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    export(records, Path("out"), [0])
    import_log(FileLog(Path("out")), [0], Path("copies"))
    assert verify(records, [0], copies_in(Path("copies"))).ok
    monkeypatch.chdir("/")
    assert verify(records, [0], copies_in(tmp_path / "copies")).ok


def test_an_import_needs_the_log_from_its_start_and_a_place_of_its_own(
    records: CopiedLog, tmp_path: Path
) -> None:
    stamp = next(iter(records.read(0, 40, 41))).stamp
    export(records, tmp_path / "part", [0], stamp)
    with pytest.raises(SettingsError, match="this needs the log from its first record on"):
        import_log(FileLog(tmp_path / "part"), [0], tmp_path / "copies")
    export(records, tmp_path / "whole", [0])
    import_log(FileLog(tmp_path / "whole"), [0], tmp_path / "copies", Until(offset=5))
    with pytest.raises(SettingsError, match="is not empty"):
        import_log(FileLog(tmp_path / "whole"), [0], tmp_path / "copies")
