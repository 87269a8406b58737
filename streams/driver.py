"""Faust's Kafka driver, with what faust-streaming 0.15.3 offers no setting for.

It lets the broker hold a fetch for 1.5 s, and aiokafka has one fetch under way at a time: a partition that was not yet
drained when the fetch went out is not in it, so its next records would wait out the others' silence. It reads
uncommitted records of transactions. And it takes at most 1 MiB a partition.

What a fetch brings of a partition is handed on as one message, for a message costs Faust more than an idle pulse costs
an owner; idle pulses alone are kept back until they have gathered (`streams/gathering.py`); and the more reports a fetch
brings, the longer the next one waits for more.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from aiokafka import ConsumerRecord, TopicPartition
from faust.transport.drivers.aiokafka import AIOKafkaConsumerThread, Consumer

from minutebook.log.fetching import wait_longer_for_all
from minutebook.log.port import RawRecord
from minutebook.wire import topics
from streams.gathering import Gathering

FETCH_WAIT_MS: Final = 50
GATHER_MAX_S: Final = 0.025
GATHER_RECORD_S: Final = 0.001
"""Each report that was fetched delays the next fetch by so much: some hundred a second delay nothing to speak of."""


class InputThread(AIOKafkaConsumerThread):
    """The thread that Faust fetches in."""

    _brought = 0

    def _create_worker_consumer(self, transport: Any) -> Any:
        consumer = super()._create_worker_consumer(transport)
        consumer._fetch_max_wait_ms = FETCH_WAIT_MS
        consumer._isolation_level = "read_committed"
        consumer._max_partition_fetch_bytes = topics.MESSAGE_BYTES_MAX + (1 << 20)
        return consumer

    async def on_start(self) -> None:
        """Faust's, then the fetches are delayed, and may wait longer."""
        await super().on_start()
        consumer = self._ensure_consumer()
        wait_longer_for_all(consumer)
        fetcher: Any = consumer._fetcher
        self._fetch = fetcher._proc_fetch_request
        fetcher._proc_fetch_request = self._fetch_later

    async def _fetch_later(self, *request: Any) -> bool:
        """A fetch, once more had time to gather; like aiokafka's, one that is cancelled brought nothing."""
        try:
            await asyncio.sleep(delay_s(self._brought))
        except asyncio.CancelledError:
            return False
        has_brought = bool(await self._fetch(*request))
        if not has_brought:
            self._brought = 0
        return has_brought

    async def _fetch_records(self, *arguments: Any, **more: Any) -> Any:
        found = await super()._fetch_records(*arguments, **more)
        if found:
            self._brought = reports_among(found)
        return found


class InputConsumer(Consumer):
    """Faust's consumer on that thread. `is_news` says of a partition's report whether it must not wait for others."""

    def __init__(self, *arguments: Any, is_news: Callable[[int, RawRecord], bool], **more: Any) -> None:
        super().__init__(*arguments, **more)
        self._gathering = Gathering(is_news)

    def _new_consumer_thread(self) -> Any:
        return InputThread(self, loop=self.loop, beacon=self.beacon)

    async def _getmany(self, active_partitions: Any, timeout: float) -> Any:
        now = asyncio.get_running_loop().time
        wait_s = self._gathering.wait_s(now(), timeout)
        return self._gathering.sift(await super()._getmany(active_partitions, wait_s), now())

    async def on_partitions_revoked(self, revoked: Any) -> None:
        """Faust's; what is kept back of these partitions is for who has them next."""
        self._gathering.forget(revoked)
        await super().on_partitions_revoked(revoked)

    async def _add_gap(self, tp: Any, offset_from: int, offset_to: int) -> None:
        """Faust remembers offsets that it did not see. Here they are those of records that came with the last one."""

    def _new_offset(self, tp: Any) -> int | None:
        """What to commit: after the last message that its agent has taken, for agents take them in order."""
        acked = self._acked[tp]
        if not acked:
            return None
        offset = int(max(acked)) + 1
        acked.clear()
        self._acked_index[tp].clear()
        return offset


def reports_among(found: Mapping[TopicPartition, Sequence[ConsumerRecord]]) -> int:
    """How many reports of workers a fetch brought; 0 if it brought anything else too, for commands and mail have senders
    that wait.
    """
    counts = {place.topic: 0 for place in found}
    for place, records in found.items():
        counts[place.topic] += len(records)
    is_mixed = any(count for topic, count in counts.items() if not topic.endswith(topics.REPORTS))
    return 0 if is_mixed else sum(counts.values())


def delay_s(brought: int) -> float:
    """How long a fetch waits after one that brought so many reports."""
    return min(GATHER_MAX_S, brought * GATHER_RECORD_S)
