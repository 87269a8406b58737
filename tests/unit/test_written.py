"""A file is written whole or stays as it was, for each that somebody relies on later."""

from __future__ import annotations

import resource
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from minutebook.errors import SettingsError
from minutebook.history.ledger import Range
from minutebook.log.written import write_whole
from replay.completeness import completeness
from replay.heads import Head, Heads, write_heads
from replay.verbs import completeness as verb
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
