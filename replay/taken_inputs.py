"""Records of one input topic and partition, in the order in which the frames of its owners consumed them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator

from minutebook.log.port import RawRecord
from replay.inputs import Inputs


class TakenInputs:
    """`heard` is told each record once, when it is first read."""

    def __init__(
        self, inputs: Inputs, topic: str, partition: int, heard: Callable[[RawRecord], None] | None = None
    ) -> None:
        self._inputs = inputs
        self._topic = topic
        self._partition = partition
        self._heard = heard
        self._next = 0
        """Offset of the first record that was not taken yet."""
        self._bounds: tuple[int, int] | None = None
        self._ahead: deque[RawRecord] = deque()
        self._source: Iterator[RawRecord] | None = None
        self._peeked: RawRecord | None = None
        self.reason = ""
        """Why the last records asked for cannot be had."""

    def take(self, topic_id: str, through: int) -> list[RawRecord] | None:
        """The next records, through an offset; None where they cannot be had, for `reason`. Raises KafkaError."""
        first, self._next = self._next, max(self._next, through + 1)
        if through < first:
            return []
        self.reason = self._why_not(topic_id, first, through)
        if self.reason:
            return None
        self.read_ahead(through)
        found: list[RawRecord] = []
        while self._ahead and self._ahead[0].offset <= through:
            found.append(self._ahead.popleft())
        return [record for record in found if record.offset >= first]

    def _why_not(self, topic_id: str, first: int, through: int) -> str:
        if self._inputs.absent:
            return "the inputs are not at hand"
        known = self._inputs.id_of(self._topic)
        if known and topic_id and known != topic_id:
            return f"{self._topic} was made again since"
        kept_from, end = self._kept()
        if first >= kept_from and self._source is None:
            kept_from, end = self._open()
        return f"{self._topic} is not kept for as long" if first < kept_from or through >= end else ""

    def _kept(self) -> tuple[int, int]:
        """What of the topic was kept when it was asked for, once the log's own end is known."""
        if self._bounds is None:
            self._bounds = self._inputs.bounds(self._topic, self._partition)
        return self._bounds

    def _open(self) -> tuple[int, int]:
        """Begin to read. What is kept by now: the first records may have gone meanwhile."""
        self._bounds = start, end = self._inputs.bounds(self._topic, self._partition)
        self._source = self._inputs.read(self._topic, self._partition, start, end)
        self._peeked = next(self._source, None)
        return self._bounds

    def read_ahead(self, through: int) -> None:
        """Read, and tell of, what lies up to an offset, without taking it. Raises KafkaError."""
        if self._inputs.absent or through < self._kept()[0]:
            return
        if self._source is None:
            self._open()
        while self._source is not None and self._peeked is not None and self._peeked.offset <= through:
            self._ahead.append(self._peeked)
            if self._heard is not None:
                self._heard(self._peeked)
            self._peeked = next(self._source, None)
