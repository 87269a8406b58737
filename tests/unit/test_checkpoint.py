"""Manifests of copies: written last, read back with full paths, the newest per partition."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, cast

import pytest

from minutebook.errors import SettingsError
from minutebook.log.checkpoint import MANIFEST, Copy, newest, read_manifest, write_manifest
from streams.host import Host


def copy(partition: int, position: int, path: str = "rows") -> Copy:
    return Copy(partition=partition, position=position, head="ab" * 32, path=path)


def made(folder: Path, *copies: Copy, at_ns: int = 0) -> Path:
    folder.mkdir(parents=True)
    write_manifest(folder, copies)
    os.utime(folder / MANIFEST, ns=(at_ns, at_ns))
    return folder


def test_a_manifest_is_read_back_with_full_paths(tmp_path: Path) -> None:
    folder = made(tmp_path / "one", copy(0, 5, "rows"), copy(1, 6, str(tmp_path / "one" / "other")))
    assert read_manifest(folder / MANIFEST) == [
        copy(0, 5, str(folder / "rows")),
        copy(1, 6, str(folder / "other")),
    ]
    assert [path.name for path in folder.iterdir()] == [MANIFEST]


def test_a_folder_of_copies_may_be_moved(tmp_path: Path) -> None:
    made(tmp_path / "one", copy(0, 5, str(tmp_path / "one" / "rows"))).rename(tmp_path / "two")
    assert read_manifest(tmp_path / "two" / MANIFEST)[0].path == str(tmp_path / "two" / "rows")


def test_the_copy_that_reaches_furthest_counts(tmp_path: Path) -> None:
    made(tmp_path / "streams" / "a", copy(0, 5), copy(1, 9), at_ns=3)
    made(tmp_path / "streams" / "b", copy(0, 7), at_ns=1)
    made(tmp_path / "streams" / "c", copy(1, 9), at_ns=4)
    made(tmp_path / "view" / "d", copy(0, 99), at_ns=9)
    found = newest(tmp_path, "streams")
    assert {partition: Path(one.path).parent.name for partition, one in found.items()} == {0: "b", 1: "c"}
    assert newest(tmp_path, "view")[0].position == 99


def test_an_unfinished_copy_is_not_seen(tmp_path: Path) -> None:
    (tmp_path / "streams" / "a" / "rows").mkdir(parents=True)
    assert newest(tmp_path, "streams") == {}
    assert newest(tmp_path / "nowhere", "view") == {}


@pytest.mark.parametrize("text", ["", "{", "[{}]", '{"partition": 0}'])
def test_nonsense_is_no_manifest(tmp_path: Path, text: str) -> None:
    folder = made(tmp_path / "streams" / "a")
    (folder / MANIFEST).write_text(text)
    with pytest.raises(SettingsError, match="no manifest"):
        newest(tmp_path, "streams")


class OneOwner:
    """As much of an owner as a copy needs."""

    partition, state = 0, "serving"

    def __init__(self, fault: Exception | None = None) -> None:
        self._fault = fault

    def checkpoint(self, folder: Path) -> dict[str, object]:
        folder.mkdir()
        (folder / "rows").write_text("rows")
        if self._fault is not None:
            raise self._fault
        return {"partition": 0, "position": 5, "head": "ab" * 32, "path": str(folder)}


def host_with(owner: OneOwner) -> Host:
    host = Host(cast(Any, None))
    host._owners[0] = cast(Any, owner)
    return host


def test_owners_copies_name_the_folder_in_which_they_are(tmp_path: Path) -> None:
    (made_copy,) = host_with(OneOwner()).checkpoint(tmp_path / "streams" / "a")
    assert (Path(str(made_copy["path"])) / "rows").read_text() == "rows"
    assert newest(tmp_path, "streams")[0].path == made_copy["path"]
    assert [path.name for path in (tmp_path / "streams").iterdir()] == ["a"]


def test_a_copy_that_fails_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="full"):
        host_with(OneOwner(OSError("full"))).checkpoint(tmp_path / "streams" / "a")
    assert list(tmp_path.iterdir()) == []
