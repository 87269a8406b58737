"""Frames to state: fold the events, then move the cursor. One code for owners, rebuilds and replay."""

from __future__ import annotations

import msgspec

from minutebook.domain import keys
from minutebook.domain.book import Book
from minutebook.domain.fold import fold
from minutebook.errors import BrokenFrameError, LogError
from minutebook.log.port import RawRecord
from minutebook.log.reader import FrameReader, Taken
from minutebook.wire.frames import Frame, placed

replace = msgspec.structs.replace


def fold_events(book: Book, frame: Frame) -> None:
    """Fold every event of a valid frame. Raises BrokenFrameError, whatever the fold met: the partition halts."""
    try:
        for event, token in placed(frame):
            fold(book, event, token, frame.now)
    except LogError:
        raise
    except Exception as error:
        raise BrokenFrameError(f"frame {frame.offset}: {type(error).__name__}: {error}") from error


def move_cursor(book: Book, reader: FrameReader, frame: Frame | None) -> None:
    """The cursor follows the record that `reader` just took; `frame` None = it was void."""
    cursor = replace(book.cursor, position=reader.position, head=reader.head, head_before=reader.head_before)
    if frame is None:
        cursor = replace(cursor, voids=[*cursor.voids, reader.position])
    else:
        cursor = replace(
            cursor,
            voids=[offset for offset in cursor.voids if offset > frame.outputs_sent_through],
            now=frame.now,
            inputs={item.topic: (item.topic_id, item.offset) for item in frame.inputs},
            outputs_sent_through=frame.outputs_sent_through,
            index_low=_index_low(frame, cursor.index_low),
            rules=frame.rules,
            tzdata=frame.tzdata,
        )
    book.advance(cursor)


def _index_low(frame: Frame, before: int) -> int:
    """Instant before which the time index holds nothing: that of the last row taken from it."""
    for part in reversed(frame.slices):
        if part.key:
            return keys.index_parts(part.key)[0]
    return before


def take(book: Book, reader: FrameReader, record: RawRecord) -> Frame | None:
    """Fold one record of the log into `book`, not yet committed. The frame, None if it was void."""
    found = reader.take(record)
    frame = found.frame if isinstance(found, Taken) else None
    if frame is not None:
        fold_events(book, frame)
    move_cursor(book, reader, frame)
    return frame
