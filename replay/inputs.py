"""Where audits read what owners consumed: commands, mail and reports, while they are kept. Nothing is ever written."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from minutebook.log.admin import topic_ids
from minutebook.log.port import RawRecord
from minutebook.log.settings import KafkaSettings
from minutebook.wire import topics
from replay.files import data_in
from replay.reading import KafkaLog


class Inputs(Protocol):
    """The input topics, which do not grow while they are read. Pickled, they are the same, opened anew by who gets them."""

    @property
    def absent(self) -> str:
        """Why there are none at all; empty if there are."""
        ...

    def id_of(self, topic: str) -> str:
        """The topic's id; empty if nobody knows."""
        ...

    def bounds(self, topic: str, partition: int) -> tuple[int, int]:
        """Offset of the first record that is kept, and that after the last one; equal where nothing is."""
        ...

    def read(self, topic: str, partition: int, start: int, end: int) -> Iterator[RawRecord]:
        """Records from `start` up to and without `end`, as they lie."""
        ...

    def close(self) -> None:
        """Give back what was opened."""
        ...


class KafkaInputs:
    """Those of a broker. Every method raises KafkaError where it cannot be reached."""

    absent = ""

    def __init__(self, kafka: KafkaSettings) -> None:
        self._kafka = kafka
        self._ids = topic_ids(kafka)
        self._logs = {topic: KafkaLog(kafka, kafka.topic(topic)) for topic in topics.INPUTS}

    def __reduce__(self) -> tuple[type[KafkaInputs], tuple[KafkaSettings]]:
        """Its settings: a connection is nobody else's."""
        return KafkaInputs, (self._kafka,)

    def id_of(self, topic: str) -> str:
        """See `Inputs.id_of`."""
        return self._ids.get(topic, "")

    def bounds(self, topic: str, partition: int) -> tuple[int, int]:
        """See `Inputs.bounds`. Nothing is kept of a topic that is not there."""
        return self._logs[topic].bounds(partition) if topic in self._ids else (0, 0)

    def read(self, topic: str, partition: int, start: int, end: int) -> Iterator[RawRecord]:
        """See `Inputs.read`."""
        return self._logs[topic].read(partition, start, end)

    def close(self) -> None:
        """See `Inputs.close`."""
        for log in self._logs.values():
            log.close()


class FileInputs:
    """Those that lie beside an exported log, `<topic>-<partition>.avro` each, in the form of the log's own files."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        is_any = any(path for topic in topics.INPUTS for path in folder.glob(f"{topic}-*.avro"))
        self.absent = (
            ""
            if is_any
            else f"the inputs are not among the files in {folder}: ask where the broker keeps them"
        )

    def id_of(self, topic: str) -> str:
        """See `Inputs.id_of`: files have none."""
        return ""

    def bounds(self, topic: str, partition: int) -> tuple[int, int]:
        """See `Inputs.bounds`."""
        offsets = [record.offset for record in self._records(topic, partition)]
        return (offsets[0], offsets[-1] + 1) if offsets else (0, 0)

    def read(self, topic: str, partition: int, start: int, end: int) -> Iterator[RawRecord]:
        """See `Inputs.read`."""
        return (record for record in self._records(topic, partition) if start <= record.offset < end)

    def close(self) -> None:
        """See `Inputs.close`: nothing is open between calls."""

    def _records(self, topic: str, partition: int) -> Iterator[RawRecord]:
        path = self._folder / f"{topic}-{partition}.avro"
        if not path.is_file():
            return
        for datum in data_in(path):
            yield RawRecord(datum["offset"], datum["stamp"], datum["key"], datum["value"])
