"""The topics, declared once: partitions, policy, retention, and what a key is.

`partition_of` is the one place that turns a key into a partition: Kafka's default murmur2 of the key's UTF-8 bytes,
so that any language's default Java-compatible producer lands right.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Final, NamedTuple

COMMANDS: Final = "job-commands"
REPORTS: Final = "worker-reports"
MAIL: Final = "partition-mail"
EVENTS: Final = "job-events"
INBOX: Final = "worker-inbox"
DEAD_LETTERS: Final = "dead-letters"
REJECTED: Final = "rejected-records"
ALERTS: Final = "alerts"
DUE: Final = "executions-due."
"""Before the name of an open queue."""
INPUTS: Final = (REPORTS, MAIL, COMMANDS)
"""Input topics in the order in which a cycle takes them."""

MESSAGE_BYTES_MAX: Final = 4 << 20

_HOUR_MS: Final = 3_600_000
_DAY_MS: Final = 24 * _HOUR_MS


class Topic(NamedTuple):
    """How one topic is made. `partitions` None = P; `retention_ms` -1 = for ever."""

    name: str
    partitions: int | None
    retention_ms: int
    is_append_time: bool
    writer: str
    key: str

    def settings(self) -> dict[str, str]:
        """Topic settings as Kafka names them."""
        return {
            "cleanup.policy": "delete",
            "retention.ms": str(self.retention_ms),
            "max.message.bytes": str(MESSAGE_BYTES_MAX),
            "message.timestamp.type": "LogAppendTime" if self.is_append_time else "CreateTime",
        }


def table(inbox_partitions: int) -> tuple[Topic, ...]:
    """Every fixed topic of one installation."""
    return (
        Topic(COMMANDS, None, 7 * _DAY_MS, True, "API, producers; workers: tasks", "<tenant>/<job id>"),
        Topic(REPORTS, None, 2 * _DAY_MS, True, "workers; owners: ticks", "none, explicit partition"),
        Topic(MAIL, None, 7 * _DAY_MS, False, "owners", "none, explicit partition"),
        Topic(EVENTS, None, -1, True, "the owner of the partition", "none"),
        Topic(INBOX, inbox_partitions, _HOUR_MS // 6, True, "owners", "worker id"),
        Topic(DEAD_LETTERS, None, 90 * _DAY_MS, False, "owners", "<tenant>/<job id>"),
        Topic(REJECTED, None, 30 * _DAY_MS, False, "owners", "as received"),
        Topic(ALERTS, 1, 30 * _DAY_MS, False, "owners", "tenant"),
    )


def due_topic(queue: str) -> Topic:
    """The due topic of an open queue. One partition: in a share group one that waits for a dead member would stand still."""
    return Topic(DUE + queue, 1, 2 * _DAY_MS, False, "owners", "execution id")


_SEED: Final = 0x9747B28C
_M: Final = 0x5BD1E995
_MASK: Final = 0xFFFFFFFF


def murmur2(data: bytes) -> int:
    """Kafka's 32-bit murmur2 of `data`, unsigned. Source: org.apache.kafka.common.utils.Utils."""
    return _finished(_SEED ^ len(data), data)


def _mixed(h: int, words: Iterable[int]) -> int:
    """The state `h` after whole words of four bytes."""
    for k in words:
        k = k * _M & _MASK
        h = (h * _M & _MASK) ^ ((k ^ k >> 24) * _M & _MASK)
    return h


def _finished(h: int, data: bytes) -> int:
    """The hash that the state `h` becomes with the last bytes."""
    length = len(data)
    h = _mixed(h, struct.unpack_from(f"<{length >> 2}I", data))
    rest = length & 3
    if rest:
        h ^= int.from_bytes(data[-rest:], "little")
        h = h * _M & _MASK
    h = (h ^ h >> 13) * _M & _MASK
    return h ^ h >> 15


def partition_of(key: str, partitions: int) -> int:
    """The partition of `key` among `partitions`."""
    return (murmur2(key.encode()) & 0x7FFFFFFF) % partitions


def ending_in(partition: int, partitions: int, start: str, endings: Iterable[str]) -> str | None:
    """The first of `endings`, all equally long, with which `start` is a key of `partition`; None if none is.

    What they have in common is hashed once.
    """
    data, state = start.encode(), None
    whole = len(data) >> 2
    for ending in endings:
        if state is None:
            state = _mixed(_SEED ^ len(data) + len(ending), struct.unpack_from(f"<{whole}I", data))
        if (_finished(state, data[whole << 2 :] + ending.encode()) & 0x7FFFFFFF) % partitions == partition:
            return ending
    return None
