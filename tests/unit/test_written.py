"""A file or folder is written whole or stays as it was, for each that somebody relies on later."""

from __future__ import annotations

import os
import resource
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest

from minutebook.errors import SettingsError
from minutebook.history.ledger import Range
from minutebook.log.written import UNFINISHED, folders_whole, write_whole
from replay.completeness import completeness
from replay.files import FileLog, export
from replay.heads import Head, Heads, write_heads
from replay.importing import import_log
from replay.reading import Advance, unheard
from replay.verbs import completeness as verb
from replay.verify import copies_in, verify
from tests.simulation.busy_log import BusyLog
from tests.simulation.copies import CopiedLog

HEADS = Heads(log_id="a", partitions={number: Head(position=1, head="0" * 64) for number in range(64)})


@pytest.fixture
def full_disk() -> Iterator[None]:
    """No file may grow beyond a hundred bytes: what is written breaks off in the middle."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)
    signal.signal(signal.SIGXFSZ, handler)


def keep_heads(folder: Path) -> None:
    write_heads(folder / "heads.json", HEADS)


def keep_report(folder: Path) -> None:
    verb._keep(completeness(CopiedLog([]), [0], Range(0, 86_399_999)), folder)


@pytest.mark.parametrize(
    ("keep", "names"),
    [
        (keep_heads, ["heads.json"]),
        (keep_report, ["completeness-1970-01-01.html", "completeness-1970-01-01.json"]),
    ],
)
@pytest.mark.usefixtures("full_disk")
def test_what_was_there_stays_until_the_new_one_is_whole(
    keep: Callable[[Path], None], names: list[str], tmp_path: Path
) -> None:
    for name in names:
        (tmp_path / name).write_text("before")
    with pytest.raises((OSError, SettingsError)):
        keep(tmp_path)
    assert [(tmp_path / name).read_text() for name in names] == ["before"] * len(names)


def test_a_file_is_replaced(tmp_path: Path) -> None:
    for data in (b"one", b"two"):
        write_whole(tmp_path / "file", data)
    assert (tmp_path / "file").read_bytes() == b"two"
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    with pytest.raises(FileExistsError):
        write_whole(tmp_path / "file", b"three", is_new=True)
    assert (tmp_path / "file").read_bytes() == b"two"


def test_what_a_killed_process_left_of_a_file_is_used_anew(tmp_path: Path) -> None:
    (tmp_path / ".file.unfinished").write_bytes(b"half of a longer text")
    write_whole(tmp_path / "file", b"whole")
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("file", b"whole")]


def test_a_path_that_is_no_file_stays(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(FileExistsError, match="is no file"):
        write_whole(tmp_path / "pipe", b"one")
    assert [path.name for path in tmp_path.iterdir()] == ["pipe"]


def test_many_writers_of_one_file_leave_one_of_their_texts(tmp_path: Path) -> None:
    texts = [str(number).encode() * 100_000 for number in range(8)]
    with ThreadPoolExecutor(len(texts)) as pool:
        list(pool.map(lambda text: write_whole(tmp_path / "file", text), texts))
    assert (tmp_path / "file").read_bytes() in texts
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


# -- folders


def export_files(folder: Path, advance: Advance = unheard) -> None:
    export(LOG, folder / "out", [0], advance=advance)


def import_copies(folder: Path, advance: Advance = unheard) -> None:
    import_log(LOG, [0], folder / "out", advance=advance)


LOG = CopiedLog(BusyLog(3).run(30).records)
WRITERS = [export_files, import_copies]


def die(partition: int, records: int) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def fail(partition: int, records: int) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize("write", WRITERS)
def test_a_folder_that_cannot_be_finished_is_not_there(
    write: Callable[[Path, Advance], None], tmp_path: Path
) -> None:
    with pytest.raises(KeyboardInterrupt):
        write(tmp_path, fail)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("write", WRITERS)
def test_the_call_after_one_that_was_killed_begins_anew(
    write: Callable[[Path, Advance], None], tmp_path: Path
) -> None:
    process = get_context("spawn").Process(target=write, args=(tmp_path, die))
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    assert any(path.name.endswith(".unfinished") for path in tmp_path.rglob("*"))
    write(tmp_path, unheard)
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    assert not any(UNFINISHED in path.name for path in tmp_path.rglob("*"))
    if write is import_copies:
        assert verify(LOG, [0], copies_in(tmp_path / "out")).ok
    else:
        assert verify(FileLog(tmp_path / "out"), [0]).ok


def test_folders_that_were_filled_when_somebody_was_killed_become_all(tmp_path: Path) -> None:
    """It came to move the first of two."""
    targets = [tmp_path / "a" / "x", tmp_path / "b" / "x"]
    process = get_context("fork").Process(target=_killed_between, args=(tmp_path / "work", targets))
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    assert [target.exists() for target in targets] == [True, False]
    with pytest.raises(SettingsError, match="is not empty"), folders_whole(tmp_path / "work", targets):
        pass
    assert [(target / "file").read_text() for target in targets] == ["whole", "whole"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"]


def _killed_between(work: Path, targets: list[Path]) -> None:
    move = os.replace

    def move_once(source: Path, target: Path) -> None:
        move(source, target)
        if target == targets[0]:
            die(0, 0)

    os.replace = move_once  # in this process alone
    with folders_whole(work, targets) as folders:
        for folder in folders:
            (folder / "file").write_text("whole")


def test_what_is_somebody_elses_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "out.unfinished").mkdir()
    (tmp_path / "out.unfinished" / "note").write_text("mine")
    with pytest.raises(SettingsError, match="move it away"):
        export_files(tmp_path)
    assert [path.name for path in tmp_path.rglob("*")] == ["out.unfinished", "note"]


def test_two_at_once_do_not_meet(tmp_path: Path) -> None:
    work, targets = tmp_path / "work", [tmp_path / "out"]
    with folders_whole(work, targets) as (folder,):
        with pytest.raises(SettingsError, match="another process writes"), folders_whole(work, targets):
            pass
        (folder / "file").write_text("first")
    assert (tmp_path / "out" / "file").read_text() == "first"
