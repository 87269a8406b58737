"""Fetches of many partitions: what our rows write and read is what aiokafka's own would."""

from __future__ import annotations

from io import BytesIO
from typing import Any

import pytest
from aiokafka.protocol.fetch import FetchRequest, FetchRequest_v11, FetchResponse_v11
from aiokafka.protocol.types import Array, Bytes, Int16, Int32, Int64, Schema
from hypothesis import given, settings
from hypothesis import strategies as st

from minutebook.log.fetch_rows import AskedRow, FoundRow, use_rows

ASKED = Schema(("", Int32), ("", Int32), ("", Int64), ("", Int64), ("", Int32))
FOUND = Schema(
    ("", Int32),
    ("", Int16),
    ("", Int64),
    ("", Int64),
    ("", Int64),
    ("", Array(("", Int64), ("", Int64))),
    ("", Int32),
    ("", Bytes),
)
INT, LONG = st.integers(-(2**31), 2**31 - 1), st.integers(-(2**63), 2**63 - 1)
TRANSACTIONS = st.none() | st.lists(st.tuples(LONG, LONG), max_size=2)
ROW = st.tuples(
    INT, st.integers(-(2**15), 2**15 - 1), LONG, LONG, LONG, TRANSACTIONS, INT, st.none() | st.binary()
)


@given(st.tuples(INT, INT, LONG, LONG, INT))
@settings(deadline=None)
def test_what_is_asked_is_written_as_aiokafka_writes_it(row: tuple[int, ...]) -> None:
    assert AskedRow(ASKED).encode(row) == ASKED.encode(row)


@given(ROW, st.binary(max_size=3))
@settings(deadline=None)
def test_what_was_found_is_read_as_aiokafka_reads_it(row: tuple[Any, ...], rest: bytes) -> None:
    data = BytesIO(FOUND.encode(row) + rest)
    assert FoundRow(FOUND).decode(data) == row
    assert data.read() == rest


@given(ROW, st.integers(0, 60))
@settings(deadline=None)
def test_an_answer_that_ends_early_is_refused(row: tuple[Any, ...], length: int) -> None:
    whole = FOUND.encode(row)
    if length < len(whole):
        with pytest.raises(ValueError):
            FoundRow(FOUND).decode(BytesIO(whole[:length]))


def test_every_consumer_of_the_process_uses_them_once() -> None:
    use_rows()
    use_rows()
    asked = FetchRequest(500, 1, 9, 1, [("t", [(3, 7, 8)])])
    row = asked.build(FetchRequest_v11).SCHEMA.fields[7].array_of.fields[1].array_of
    assert isinstance(row, AskedRow)
    found = FetchResponse_v11.SCHEMA.fields[3].array_of.fields[1].array_of
    assert isinstance(found, FoundRow)
    assert not isinstance(row._whole, AskedRow)
    assert not isinstance(found._whole, FoundRow)
