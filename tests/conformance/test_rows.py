"""What every `Rows` must do: the suite runs on the one in memory and on RocksDB, and both on the same random steps."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from minutebook.store.memory import MemoryRows
from minutebook.store.port import Rows
from minutebook.store.rocks import RocksRows

FAMILIES = ("a", "b")


@pytest.fixture(params=["memory", "rocks"])
def rows(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Rows]:
    found: Rows = (
        MemoryRows(FAMILIES) if request.param == "memory" else RocksRows(tmp_path / "rows", FAMILIES)
    )
    yield found
    found.close()


def listed(
    rows: Rows, family: str, start: bytes = b"", end: bytes | None = None
) -> list[tuple[bytes, bytes]]:
    return list(rows.scan(family, start, end))


def put(rows: Rows, *keys: bytes) -> None:
    rows.write({"a": {key: b"of " + key for key in keys}}, [])


def test_a_written_row_is_read(rows: Rows) -> None:
    rows.write({"a": {b"k": b"v", b"": b"of no name"}}, [])
    assert rows.get("a", b"k") == b"v"
    assert rows.get("a", b"") == b"of no name"
    assert rows.get("a", b"other") is None


def test_families_are_apart(rows: Rows) -> None:
    rows.write({"a": {b"k": b"1"}, "b": {b"k": b"2"}}, [])
    assert (rows.get("a", b"k"), rows.get("b", b"k")) == (b"1", b"2")
    assert listed(rows, "b") == [(b"k", b"2")]


def test_none_deletes(rows: Rows) -> None:
    put(rows, b"x", b"y")
    rows.write({"a": {b"x": None, b"never there": None}}, [])
    assert [key for key, _ in listed(rows, "a")] == [b"y"]


def test_an_empty_value_is_a_row(rows: Rows) -> None:
    rows.write({"a": {b"k": b""}}, [])
    assert rows.get("a", b"k") == b""
    assert listed(rows, "a") == [(b"k", b"")]


def test_a_scan_goes_by_bytes_from_start_to_before_end(rows: Rows) -> None:
    put(rows, b"\x00", b"\x7f", b"\x80", b"\xff", b"\xff\xff", b"b", b"ab", b"a")
    assert [key for key, _ in listed(rows, "a")] == sorted(
        [b"\x00", b"\x7f", b"\x80", b"\xff", b"\xff\xff", b"b", b"ab", b"a"]
    )
    assert [key for key, _ in listed(rows, "a", b"a", b"b")] == [b"a", b"ab"]
    assert [key for key, _ in listed(rows, "a", b"aa", b"b\x00")] == [b"ab", b"b"]
    assert [key for key, _ in listed(rows, "a", b"\xff")] == [b"\xff", b"\xff\xff"]
    assert listed(rows, "a", b"c", b"c") == []


def test_a_scan_back_goes_from_before_end_to_start(rows: Rows) -> None:
    put(rows, b"a", b"ab", b"b", b"b\x00", b"c", b"\xff")
    found = [key for key, _ in rows.scan_back("a", b"a", b"b\x00")]
    assert found == [b"b", b"ab", b"a"]
    assert [key for key, _ in rows.scan_back("a", b"aa", b"c")] == [b"b\x00", b"b", b"ab"]
    assert [key for key, _ in rows.scan_back("a", b"", b"\xff\xff")][:2] == [b"\xff", b"c"]
    assert list(rows.scan_back("a", b"c", b"c")) == []
    assert next(rows.scan_back("a", b"d", b"e"), None) is None
    assert list(rows.scan_back("b", b"", b"z")) == []


def test_ranges_are_deleted_before_writes(rows: Rows) -> None:
    put(rows, b"1", b"2", b"3", b"4")
    rows.write({"a": {b"2": b"new", b"4": None}}, [("a", b"1", b"3")])
    assert listed(rows, "a") == [(b"2", b"new"), (b"3", b"of 3")]


def test_what_is_deleted_can_be_written_again(rows: Rows) -> None:
    put(rows, b"1")
    rows.write({}, [("a", b"0", b"9")])
    assert listed(rows, "a") == []
    put(rows, b"1")
    assert listed(rows, "a") == [(b"1", b"of 1")]


def test_nothing_written_changes_nothing(rows: Rows) -> None:
    put(rows, b"1")
    rows.write({}, [])
    assert listed(rows, "a") == [(b"1", b"of 1")]


def test_a_checkpoint_is_made_where_nothing_lies(rows: Rows, tmp_path: Path) -> None:
    put(rows, b"1")
    (tmp_path / "taken").mkdir()
    with pytest.raises((OSError, Exception)):
        rows.checkpoint(str(tmp_path / "taken"))
    rows.checkpoint(str(tmp_path / "copy"))
    assert any((tmp_path / "copy").iterdir())


def test_a_rocks_checkpoint_holds_what_was_there_then(tmp_path: Path) -> None:
    live = RocksRows(tmp_path / "live", FAMILIES)
    live.write({"a": {b"k": b"then"}}, [])
    live.checkpoint(str(tmp_path / "copy"))
    live.write({"a": {b"k": b"now"}}, [])
    copy = RocksRows(tmp_path / "copy", FAMILIES, is_read_only=True)
    assert copy.get("a", b"k") == b"then"
    copy.close()
    live.close()


def test_a_closed_rocks_store_opens_again_with_its_rows(tmp_path: Path) -> None:
    first = RocksRows(tmp_path / "rows", FAMILIES)
    first.write({"b": {b"k": b"v"}}, [])
    first.close()
    again = RocksRows(tmp_path / "rows", FAMILIES)
    assert listed(again, "b") == [(b"k", b"v")]
    again.close()


KEYS = st.binary(max_size=3)
WRITES = st.dictionaries(
    st.sampled_from(FAMILIES), st.dictionaries(KEYS, st.none() | st.binary(max_size=2), max_size=4)
)
RANGES = st.lists(
    st.tuples(st.sampled_from(FAMILIES), KEYS, KEYS).map(lambda r: (r[0], *sorted(r[1:]))), max_size=2
)
SCANS = st.tuples(st.sampled_from(FAMILIES), KEYS, st.none() | KEYS)


@pytest.fixture(scope="module")
def fresh_rocks(tmp_path_factory: pytest.TempPathFactory) -> Callable[[], RocksRows]:
    folder = tmp_path_factory.mktemp("rocks")
    numbers = iter(range(1 << 30))
    return lambda: RocksRows(folder / str(next(numbers)), FAMILIES)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=st.lists(st.tuples(WRITES, RANGES, SCANS), min_size=1, max_size=8))
def test_memory_and_rocks_agree_on_any_steps(fresh_rocks: Callable[[], RocksRows], steps: list) -> None:  # type: ignore[type-arg]
    memory, rocks = MemoryRows(FAMILIES), fresh_rocks()
    try:
        for writes, ranges, (family, start, end) in steps:
            for rows in (memory, rocks):
                rows.write(writes, ranges)
            assert listed(memory, family, start, end) == listed(rocks, family, start, end)
            assert memory.get(family, start) == rocks.get(family, start)
    finally:
        rocks.close()
