"""What every kind of bulk operation has to say about its executions or jobs; `operation_steps` does the rest alike for all."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from minutebook.domain.book import Book
from minutebook.domain.events import Event
from minutebook.domain.operation import OperationFact
from minutebook.domain.rows import rows_of


class Found(NamedTuple):
    """What is at one place: the row of an execution or job if it is meant, and whether nothing can be done to that."""

    place: bytes
    execution: bytes | None
    is_refused: bool = False


class Kind(NamedTuple):
    """A kind of operation. Where nothing of it can be done in this partition, `rows` and `total` raise Refusal.

    `rows(book, fact, through)`: all places behind the place `through`, in order. `lane(book, place)`: start of the keys of
    the queued set among which the execution there would wait; None if that is not known. `act(book, fact, executions,
    now)`: what is decided on these; each event must be folded before the next is asked for. `most(book, fact)`: on how
    many at once. `total(book, fact)`: how many are meant; None = they are counted place by place. `done(event)`: how
    many of those acted on an event is about that refuses nothing. `done(event)`: how many
    of those acted on an event is about, where it is no refusal.
    """

    rows: Callable[[Book, OperationFact, bytes], Iterator[Found]]
    lane: Callable[[Book, bytes], bytes | None]
    act: Callable[[Book, OperationFact, Sequence[bytes], int], Iterator[Event]]
    most: Callable[[Book, OperationFact], int] | None = None
    total: Callable[[Book, OperationFact], int] | None = None
    done: Callable[[Event], int] = rows_of
