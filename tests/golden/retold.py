"""A log in which one frame says something else than its owner decided; the chain is whole again behind it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from minutebook.log.port import RawRecord
from minutebook.log.reader import FrameReader
from minutebook.wire.frames import Frame, decode_frame, encode_frame

replace = msgspec.structs.replace


def retold(
    records: Sequence[RawRecord], offset: int | None, edit: Callable[[Frame], Frame]
) -> list[RawRecord]:
    """`records` with the frame at `offset` as `edit` makes it; None: all of them."""
    reader, found = FrameReader(), list[RawRecord]()
    for record in records:
        frame = decode_frame(record.value)
        if frame.offset == record.offset:
            frame = edit(frame) if offset in (None, record.offset) else frame
            record = record._replace(value=encode_frame(replace(frame, head=reader.head)))
        reader.own(record, frame.now)
        found.append(record)
    return found
