"""Files and folders that are there whole or not at all, whatever dies meanwhile."""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from minutebook.errors import SettingsError

UNFINISHED: Final = "unfinished"
_MARKER: Final = "minutebook-unfinished"
"""In each folder of unfinished work, locked for as long as somebody is at it."""
_COMPLETE: Final = "complete"


def write_whole(path: Path, data: bytes, *, mode: int = 0o666, is_new: bool = False) -> None:
    """Put `data` into `path` in one step: written beside it, made durable, then renamed. What a process that was killed left
    beside it is used anew; two at once come one after the other. With `is_new` it is left as it is where it is there; else the
    new one has its rights, of those in `mode`, and its owner if this process may give it away.

    Raises OSError, and FileExistsError for a new file that is there or a path that is no file; `path` is then as it was.
    """
    path = path.resolve()
    _check_replaceable(path, is_new=is_new)
    unfinished = unfinished_of(path)
    descriptor = _opened_alone(unfinished, mode)
    try:
        _check_replaceable(path, is_new=is_new)  # another writer may have been first
        _take_rights(path, descriptor, mode)
        with os.fdopen(descriptor, "wb", closefd=False) as out:
            out.truncate(0)
            out.write(data)
            out.flush()
            os.fsync(descriptor)
        os.replace(unfinished, path)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise
    finally:
        os.close(descriptor)
    _sync_folder(path.parent)


def unfinished_of(path: Path) -> Path:
    """Where a file is that `write_whole` has not finished."""
    return path.with_name(f".{path.name}.{UNFINISHED}")


def _check_replaceable(path: Path, *, is_new: bool) -> None:
    if path.exists() and (is_new or not path.is_file()):
        raise FileExistsError(f"{path} {'is there already' if path.is_file() else 'is no file'}")


def _take_rights(path: Path, descriptor: int, mode: int) -> None:
    """Rights and owner of the file at `path`, if it is there, for the one that replaces it; as far as this process may, and the
    file system knows them.
    """
    if not path.exists():
        return
    before = path.stat()
    with suppress(OSError):
        os.fchown(descriptor, before.st_uid, before.st_gid)
    with suppress(OSError):
        # Its owner may write it in any case: what a killed process left is opened again.
        os.fchmod(descriptor, before.st_mode & mode | stat.S_IWUSR)


def _opened_alone(path: Path, mode: int) -> int:
    """A descriptor of the file at `path`, which nobody else has until it is closed."""
    while True:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW, mode)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        if _is_at(path, descriptor):
            return descriptor
        os.close(descriptor)  # who had it before renamed it


def _is_at(path: Path, descriptor: int) -> bool:
    with suppress(FileNotFoundError):
        return os.path.samestat(os.stat(path), os.fstat(descriptor))
    return False


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def beside(folder: Path) -> Path:
    """Where the work is for a folder that is not whole yet."""
    return folder.with_name(f"{folder.name}.{UNFINISHED}")


@contextmanager
def folders_whole(work: Path, targets: Sequence[Path]) -> Iterator[list[Path]]:
    """New folders to fill, one for each of `targets`, in `work` on the same disk. Left without an error they become the targets,
    all of them; else nothing stays. What a process that was killed left in `work` is removed by the next call, but where all was
    filled its folders become the targets first. Nothing else is deleted; who fills the folders makes the files durable. `work` is
    for its owner alone, and a target that was there, empty, keeps its mode; the folder above it must be writable.

    Raises SettingsError where a target holds something, somebody else is at work there, or `work` is no such folder; OSError.
    """
    made = _make(work, 0o700)
    descriptor = _take(work)
    try:
        _finish_earlier(work, targets)
        for target in targets:
            _check_free(target)
        folders = [work / str(number) for number in range(len(targets))]
        for folder, target in zip(folders, targets, strict=True):
            folder.mkdir()
            if target.is_dir():
                shutil.copymode(target, folder)
        yield folders
        for target in targets:
            made += _make(target.parent)
        _publish(work, targets)
        made.clear()
    finally:
        _clear(work, len(targets))
        (work / _MARKER).unlink(missing_ok=True)
        os.close(descriptor)
        with suppress(OSError):  # something else is in it
            work.rmdir()
        for folder in reversed(made):
            with suppress(OSError):  # as above, or gone
                folder.rmdir()


def _check_free(target: Path) -> None:
    if not target.exists():
        return
    if not target.is_dir() or any(target.iterdir()):
        raise SettingsError(f"{target} is not empty: choose a new folder")
    if target.is_mount():
        raise SettingsError(f"{target} is a mount point: choose a new folder inside it")


def _make(folder: Path, mode: int = 0o777) -> list[Path]:
    """Make a folder, of that mode, and those above it; the ones that were not there."""
    made = [one for one in (folder, *folder.parents) if not one.exists()][::-1]
    folder.mkdir(mode, parents=True, exist_ok=True)
    return made


def _take(work: Path) -> int:
    """The lock on `work`, as an open descriptor."""
    marker = work / _MARKER
    if not marker.is_file() and any(work.iterdir()):
        raise SettingsError(f"{work} is there, and no work that was left unfinished: move it away")
    descriptor = os.open(marker, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        is_ours = _is_at(marker, descriptor)
    except BlockingIOError:
        is_ours = False
    if not is_ours:
        os.close(descriptor)
        raise SettingsError(f"another process writes into {work}: wait until it is done")
    return descriptor


def _finish_earlier(work: Path, targets: Sequence[Path]) -> None:
    """What a process that was killed filled becomes the targets; what it did not is removed."""
    if (work / _COMPLETE).is_file():
        for number, target in enumerate(targets):
            if (work / str(number)).is_dir():
                with suppress(OSError):  # something else is there by now
                    os.replace(work / str(number), target)
    _clear(work, len(targets))


def _publish(work: Path, targets: Sequence[Path]) -> None:
    """All folders of `work` become the targets, or none."""
    write_whole(work / _COMPLETE, b"")
    moved: list[tuple[Path, Path]] = []
    try:
        for number, target in enumerate(targets):
            os.replace(work / str(number), target)
            moved.append((target, work / str(number)))
    except BaseException:
        for target, folder in moved:
            os.replace(target, folder)
        raise
    for target in targets:
        _sync_folder(target.parent)


def _clear(work: Path, count: int) -> None:
    for marker in (work / _COMPLETE, unfinished_of(work / _COMPLETE)):
        marker.unlink(missing_ok=True)
    for number in range(count):
        shutil.rmtree(work / str(number), ignore_errors=True)
