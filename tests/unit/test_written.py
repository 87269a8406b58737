"""A file or folder is written whole or stays as it was, for each that somebody relies on later."""

from __future__ import annotations

import os
import resource
import signal
import stat
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest

from minutebook.client import keys
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
    verb._keep(completeness(CopiedLog([]), [0], Range(0, 86_399_999)), folder, is_of_all=True)


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


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize(("before", "asked", "after"), [(0o640, 0o666, 0o640), (0o644, 0o600, 0o600)])
def test_a_file_that_is_replaced_keeps_its_rights_of_those_asked_for(
    before: int, asked: int, after: int, tmp_path: Path
) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"one")
    path.chmod(before)
    write_whole(path, b"two", mode=asked)
    assert (path.read_bytes(), mode_of(path)) == (b"two", after)


def test_what_the_api_knows_of_a_key_keeps_its_rights(tmp_path: Path) -> None:
    keys.main(tmp_path)
    (tmp_path / "keys.json").chmod(0o640)
    keys.main(tmp_path)
    assert [mode_of(tmp_path / name) for name in ("keys.json", "api-key")] == [0o640, 0o600]


def test_of_many_who_make_a_new_file_one_is_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a file system without hard links, too."""
    monkeypatch.delattr(os, "link")

    def make(text: bytes) -> bytes | None:
        try:
            write_whole(tmp_path / "file", text, is_new=True)
        except FileExistsError:
            return None
        return text

    with ThreadPoolExecutor(8) as pool:
        texts = [str(number).encode() * 100_000 for number in range(8)]
        (first,) = [text for text in pool.map(make, texts) if text is not None]
    assert (tmp_path / "file").read_bytes() == first
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


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

    pytest.MonkeyPatch().setattr(os, "replace", move_once)  # in this process alone
    with folders_whole(work, targets) as folders:
        for folder in folders:
            (folder / "file").write_text("whole")


def test_who_was_killed_while_saying_that_all_is_filled_leaves_nothing_behind_a_call_that_fails(
    tmp_path: Path,
) -> None:
    work, targets = tmp_path / "work", [tmp_path / "out"]
    process = get_context("fork").Process(target=_killed_before_it_says_so, args=(work, targets))
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    assert (work / ".complete.unfinished").exists()
    with pytest.raises(KeyboardInterrupt), folders_whole(work, targets):
        raise KeyboardInterrupt
    assert list(tmp_path.iterdir()) == []


def _killed_before_it_says_so(work: Path, targets: list[Path]) -> None:
    pytest.MonkeyPatch().setattr(os, "replace", lambda source, target: die(0, 0))  # in this process alone
    with folders_whole(work, targets):
        pass


def test_an_interrupt_between_two_folders_takes_the_first_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    targets, move = [tmp_path / "x", tmp_path / "y"], os.replace

    def interrupted(source: Path, target: Path) -> None:
        if target == targets[1]:
            raise KeyboardInterrupt
        move(source, target)

    monkeypatch.setattr(os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt), folders_whole(tmp_path / "work", targets):
        pass
    assert list(tmp_path.iterdir()) == []


def test_an_empty_folder_keeps_its_mode_and_the_work_is_for_its_owner_alone(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir(0o700)
    with folders_whole(tmp_path / "work", [tmp_path / "out"]) as (folder,):
        assert mode_of(tmp_path / "work") == 0o700
        (folder / "file").write_text("whole")
    assert mode_of(tmp_path / "out") == 0o700
    assert (tmp_path / "out" / "file").read_text() == "whole"


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
