"""The window over sorted rows: bounded memory, nothing slips between what is loaded and what is stored."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from minutebook.store.memory import MemoryRows
from streams.window import LATE_MAX, Window


def _rows(*keys: bytes) -> MemoryRows:
    rows = MemoryRows(["f"])
    rows.write({"f": dict.fromkeys(keys, b"")}, [])
    return rows


def _drained(window: Window) -> list[bytes]:
    found = []
    while (key := window.head()) is not None:
        window.pop()
        found.append(key)
    return found


def test_rows_come_in_order_across_loads() -> None:
    keys = [b"%03d" % number for number in range(50)]
    window = Window(_rows(*keys), "f", b"", None, loaded_max=7)
    assert not window.is_all_loaded()
    assert _drained(window) == keys


def test_rows_are_taken_up_to_a_bound_and_a_number() -> None:
    window = Window(_rows(b"1", b"2", b"3", b"4", b"5"), "f", b"", None)
    window.remove([b"2"])
    assert window.take(b"5", 2) == [b"1"]
    assert window.take(b"5", 9) == [b"3", b"4"]
    assert window.take(b"5", 9) == []
    assert _drained(window) == [b"5"]


def test_bounds_are_kept() -> None:
    window = Window(_rows(b"a", b"b", b"c", b"d"), "f", b"b", b"d")
    assert _drained(window) == [b"b", b"c"]


def test_a_row_written_behind_the_loaded_ones_is_found_in_the_store() -> None:
    rows = _rows(*(b"%d" % number for number in range(5)))
    window = Window(rows, "f", b"", None, loaded_max=2)
    rows.write({"f": {b"9": b""}}, [])
    window.put(b"9")
    assert len(window) == 2
    assert _drained(window) == [b"0", b"1", b"2", b"3", b"4", b"9"]


def test_a_row_written_before_the_loaded_ones_comes_first() -> None:
    window = Window(_rows(b"5", b"6"), "f", b"", None)
    window.put(b"1")
    window.put(b"55")
    assert _drained(window) == [b"1", b"5", b"55", b"6"]


def test_coming_rows_are_named_once_in_order_up_to_the_bound() -> None:
    window = Window(_rows(b"1", b"2", b"3", b"4"), "f", b"", None)
    window.remove([b"2"])
    assert window.coming(b"4", 2) == [b"1"]
    assert window.coming(b"4", 9) == [b"3"]
    assert window.coming(b"4", 9) == []
    assert window.coming(b"5", 9) == [b"4"]


def test_rows_put_out_of_order_are_sorted_in_when_they_are_many() -> None:
    window = Window(_rows(), "f", b"", None)
    keys = [b"%04d" % number for number in range(2 * LATE_MAX)]
    for key in reversed(keys):
        window.put(key)
    assert window.coming(b"9", 9) == keys[-1:]
    window.load_ahead()
    assert window.coming(b"9", len(keys)) == keys
    assert _drained(window) == keys


def test_a_removed_row_does_not_come() -> None:
    window = Window(_rows(b"1", b"2", b"3"), "f", b"", None)
    window.remove([b"1"])
    window.remove([b"3"])
    assert _drained(window) == [b"2"]


def test_a_row_put_back_comes_again_once() -> None:
    window = Window(_rows(b"1", b"2"), "f", b"", None)
    assert window.head() == b"1"
    window.pop()
    window.put(b"1")
    window.put(b"1")
    assert _drained(window) == [b"1", b"2"]


def test_memory_is_bounded_and_what_is_trimmed_comes_back() -> None:
    rows = _rows()
    window = Window(rows, "f", b"", None, loaded_max=10)
    keys = [b"%03d" % number for number in range(100)]
    for key in reversed(keys):
        rows.write({"f": {key: b""}}, [])
        window.put(key)
        assert len(window) <= 20
    assert _drained(window) == keys


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(["put", "remove", "pop", "take"]), st.integers(0, 30)), max_size=80)
)
def test_a_window_equals_a_sorted_set(steps: list[tuple[str, int]]) -> None:
    rows = MemoryRows(["f"])
    window = Window(rows, "f", b"", None, loaded_max=4)
    wanted: set[bytes] = set()
    for what, number in steps:
        key = b"%02d" % number
        if what == "put":
            wanted.add(key)
            window.put(key)
            rows.write({"f": {key: b""}}, [])
        elif what == "remove":
            wanted.discard(key)
            window.remove([key])
            rows.write({"f": {key: None}}, [])
        elif what == "take":
            before = sorted(row for row in wanted if row < key)
            found = window.take(key, 3)
            assert found == before[: len(found)]
            assert bool(found) == bool(before)
            wanted.difference_update(found)
            rows.write({"f": dict.fromkeys(found)}, [])
        else:
            head = window.head()
            assert head == (min(wanted) if wanted else None)
            if head is not None:
                window.pop()
                wanted.discard(head)
                rows.write({"f": {head: None}}, [])
    assert _drained(window) == sorted(wanted)


def test_a_window_whose_loaded_rows_are_taken_may_hold_more_in_the_store() -> None:
    window = Window(_rows(b"1", b"2", b"3"), "f", b"", None, loaded_max=2)
    for _ in range(2):
        assert window.head() is not None
        window.pop()
    assert len(window) == 0
    assert window.may_hold_any()
    assert _drained(window) == [b"3"]
    assert not window.may_hold_any()
