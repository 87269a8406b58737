"""What a cycle takes out of memory for a frame in the making, and how it starts anew."""

from __future__ import annotations

from typing import NamedTuple

from minutebook.log.port import RawRecord


class Redo(Exception):
    """An input on which `decide` failed: (topic, offset)."""

    def __init__(self, topic: str, offset: int) -> None:
        super().__init__(f"{topic} {offset}")
        self.place = (topic, offset)


class Taken(NamedTuple):
    """What a cycle took out of memory, to be put back if its frame is void."""

    due: list[bytes]
    queued: list[bytes]
    inputs: dict[str, list[RawRecord]]
