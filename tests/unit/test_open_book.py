"""A store is opened as it is, or thrown away and folded anew: by another version of fold it is not read."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from minutebook.domain.book import FAMILIES, FORMAT
from minutebook.domain.state import Cursor
from minutebook.store.rocks import RocksRows
from streams.recovery import open_book


def stored(folder: Path, cursor: Cursor) -> None:
    """A store that holds nothing but its cursor."""
    rows = RocksRows(folder, FAMILIES)
    rows.write({"cursor": {b"": msgspec.msgpack.encode(cursor)}}, [])
    rows.close()


@pytest.mark.parametrize(("of_format", "position"), [(FORMAT, 7), (FORMAT - 1, -1), (FORMAT + 1, -1)])
def test_rows_of_another_format_are_folded_anew(tmp_path: Path, of_format: int, position: int) -> None:
    stored(tmp_path / "p", Cursor(position=7, format=of_format))
    book = open_book(tmp_path / "p")
    assert (book.cursor.position, book.cursor.format) == (position, FORMAT)
    book.rows.close()


def test_a_store_from_before_formats_had_numbers_is_folded_anew(tmp_path: Path) -> None:
    stored(tmp_path / "p", Cursor(position=7, format=FORMAT))
    rows = RocksRows(tmp_path / "p", FAMILIES)
    written = msgspec.msgpack.decode(rows.get("cursor", b"") or b"")
    rows.write({"cursor": {b"": msgspec.msgpack.encode(written[:-2])}}, [])
    rows.close()
    book = open_book(tmp_path / "p")
    assert book.cursor.position == -1
    book.rows.close()
