"""The owner of one partition: takes it over, then decides, appends, folds and sends, cycle by cycle.

State changes only after the frame is valid in the log. Anything that this process cannot be sure of ends it: the next
owner reads the log and knows.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final

import structlog

from minutebook.domain import events as facts
from minutebook.domain.book import Book
from minutebook.domain.events import Event
from minutebook.domain.outputs import Output, ToSession, outputs
from minutebook.domain.records import Tick
from minutebook.domain.rules import RULES, SETTINGS_DIGEST
from minutebook.errors import ClockError, OwnershipLostError
from minutebook.grant_spans import with_spans
from minutebook.log.apply import move_cursor, take
from minutebook.log.draft import Draft
from minutebook.log.port import Ack, RawRecord
from minutebook.log.reader import FrameReader
from minutebook.schedule import TZDATA_VERSION
from minutebook.wire import codec, topics
from minutebook.wire.frames import Frame, InputPosition, decode_frame, encode_frame, placed
from streams import metrics
from streams.claiming import claim
from streams.counting import Counting
from streams.cycle import Cycle
from streams.due_records import DueRecords
from streams.feed import Feed
from streams.granting import Granting
from streams.outbox import Outbox
from streams.process import Process
from streams.recovery import check_inputs, check_position, fold_to_end, open_book
from streams.sessions import Sessions
from streams.taken import Redo, Taken
from streams.window_of_reports import WINDOW_MS, rebuild_sessions

QUIET_INPUTS_MAX: Final = 10_000
QUIET_MS: Final = 3_600_000
IDLE_MAX_S: Final = 1.0
TICK_SLACK_MS: Final = 20
COMMANDS_LINGER_S: Final = 0.002
BURST_GAP_S: Final = 0.06
"""Between frames of a partition while more waits than is offered: offers and results that gather meanwhile share one."""

log = structlog.get_logger()


class Owner:
    """One partition's one writer, as far as this process knows."""

    def __init__(self, partition: int, process: Process, halt: Callable[[int, BaseException], None]) -> None:
        self.partition = partition
        self.state = "opening"
        self.left = 0
        self.skew_ms = 0
        self.book: Book | None = None
        self.feeds: dict[str, Feed] = {}
        self._process = process
        self._halt = halt
        self.is_stopping = False
        self._wake = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._offset_ms = 0
        self._inputs: dict[str, int] = {}
        self._quiet_inputs = 0
        self._reports_end = 0
        self._framed_at = 0.0
        self._refused: list[facts.OutputRefused] = []
        self._opened_at = process.clock.monotonic()

    # -- life

    async def run(self) -> None:
        """Take over and serve until cancelled. Raises LogError (halt), OwnershipLostError or AppendUnknownError."""
        try:
            await self._take_over()
            self.state = "serving"
            metrics.REBALANCE.observe(self._process.clock.monotonic() - self._opened_at)
            log.info(
                "partition_served",
                partition=self.partition,
                epoch=self._book.cursor.epoch,
                position=self._reader.position,
            )
            while not self.is_stopping:
                await self._cycle()
                self._check_outbox()
        finally:
            self.state = "closed"

    def _check_outbox(self) -> None:
        """Raises what ended the outbox: nothing would be sent any more, and nobody would know."""
        for task in self._tasks:
            if task.done():
                task.result()

    def stop(self) -> None:
        """Ask `run` to end after the cycle under way."""
        self.is_stopping = True
        self._wake.set()

    def epoch(self) -> int:
        """Epoch of this ownership, 0 before the store is open."""
        return 0 if self.book is None else self.book.cursor.epoch

    def position(self) -> int:
        """Last record folded, -1 before any."""
        return -1 if self.book is None else self.book.cursor.position

    def oldest_input_at(self) -> int | None:
        """Stamp of the oldest input that waits, ms; None if none waits."""
        stamps = [stamp for feed in self.feeds.values() if (stamp := feed.oldest_stamp()) is not None]
        return min(stamps, default=None)

    @property
    def granting(self) -> Granting:
        """What waits and who takes it; only while serving."""
        return self._core.granting

    def due_faults(self) -> dict[str, str]:
        """Open queues whose due records do not go out at present, and why."""
        return self._due_records.faults if self.state == "serving" else {}

    async def close(self) -> None:
        """Give the partition up; the append in flight was awaited before."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for feed in self.feeds.values():
            await feed.close()
        if self.book is not None:
            self.book.rows.close()
            self.book = None

    def offer(self, topic: str, records: Iterable[RawRecord]) -> None:
        """Raw records of an input topic from its agent."""
        feed = self.feeds.get(topic)
        if feed is not None:
            feed.offer(records)

    def is_news(self, report: RawRecord) -> bool:
        """Whether a report on its way here must not wait for others."""
        return self.state != "serving" or self._core.is_news(report)

    def checkpoint(self, folder: Path) -> dict[str, object]:
        """A consistent copy of the committed state in `folder`: partition, position, chain head."""
        cursor = self._book.cursors.get(b"")
        self._book.rows.checkpoint(str(folder))
        position, head = (-1, "") if cursor is None else (cursor.position, cursor.head.hex())
        return {"partition": self.partition, "position": position, "head": head, "path": str(folder)}

    # -- taking over

    async def _take_over(self) -> None:
        process, partition = self._process, self.partition
        self._book = self.book = open_book(process.data_dir / f"partition-{partition}")
        self.state = "recovering"
        await check_position(self._book, process.events, partition)
        self._reader = await fold_to_end(self._book, process.events, partition, self._progress)
        bounds = await process.input_bounds(partition, self._book.cursor.now - WINDOW_MS)
        check_inputs(self._book, process.topic_ids, bounds.first)
        self._inputs = self._applied()
        self._open_outbox(self._book.cursor.outputs_sent_through)
        await self._claim(bounds.reports_from)
        self._open_core(Sessions(self._book))
        await self._send_again(self._outbox.sent_through + 1)
        await rebuild_sessions(
            process.kafka,
            self._core.sessions,
            partition,
            bounds.reports_from,
            self._inputs[topics.REPORTS] + 1,
            self._reader.position,
        )
        self._start_leases()
        self._reports_end = bounds.end[topics.REPORTS]
        for topic, end in bounds.end.items():
            self.feeds[topic].catch_up(end)

    def _applied(self) -> dict[str, int]:
        """Last offset of each input topic that the log says was consumed."""
        return {topic: self._book.cursor.inputs.get(topic, ("", -1))[1] for topic in topics.INPUTS}

    def _progress(self, left: int) -> None:
        self.left = left

    async def _claim(self, reports_from: int) -> None:
        """Append OwnershipTaken until it is valid."""
        while True:
            draft = Draft(self._book, self._reader.position + 1, self._now())
            claim(draft, self._book, self._process, self.partition, reports_from)
            sent_at = self._clock()
            ack = await self._append(draft)
            if ack is not None:
                self._set_clock(sent_at, ack.stamp)
                return
            await self._read_on()

    def _set_clock(self, sent_at: int, stamp: int) -> None:
        """The broker stamped between sending and ack: only as far as it lies outside of that is the clock moved."""
        self._offset_ms += stamp - min(max(stamp, sent_at), self._clock())
        if abs(self._offset_ms) > self._process.clock_bound_ms:
            raise ClockError(f"this machine's clock is {-self._offset_ms} ms off the broker's: set it right")

    def _open_outbox(self, sent_through: int) -> None:
        self._outbox = Outbox(
            self._process.producer,
            self._process.kafka,
            self.partition,
            self._process.inbox_partitions,
            sent_through,
            self._granted,
            self._output_refused,
            lambda topic, offset: self._core.rejected.pop((topic, offset), None),
        )
        self._tasks.append(asyncio.create_task(self._outbox.run(), name=f"outbox {self.partition}"))
        self._due_records = DueRecords(
            self._process.producer,
            self._process.kafka,
            self.partition,
            lambda: self._core.open_queues,
            self._now,
            self._wake.set,
        )
        self._tasks.append(asyncio.create_task(self._due_records.run(), name=f"due {self.partition}"))

    async def _send_again(self, first: int) -> None:
        """Outputs that no frame says were acknowledged; grants only of what still runs."""
        voids = set(self._book.cursor.voids)
        async for record in self._process.events.read(self.partition, first, self._reader.position + 1):
            if record.offset not in voids:
                await self._send_outputs(
                    placed(decode_frame(record.value)), record.offset, self._book.cursor.now
                )

    async def _send_outputs(self, events: Iterable[tuple[Event, int]], frame: int, start_at: int) -> None:
        follow = outputs(self._book, events, self.partition, self._process.partitions, start_at)
        found = with_spans(self._book, follow, start_at)
        self._counting.outputs(found, start_at)
        for output in found:
            if isinstance(output, ToSession):
                self._core.sessions.overruns.granted(output, start_at)
        await self._outbox.send(frame, self._core.telling.with_counts(found, start_at))

    def _open_core(self, sessions: Sessions) -> None:
        process = self._process
        if not self.feeds:
            self.feeds = {
                topic: Feed(
                    process.kafka,
                    topic,
                    self.partition,
                    self._inputs[topic] + 1,
                    self._wake.set,
                    lambda error: self._halt(self.partition, error),
                )
                for topic in topics.INPUTS
            }
        self._core = Cycle(
            self._book,
            self.feeds,
            sessions,
            self.partition,
            process.partitions,
            process.owner_id,
            process.clock.monotonic,
            process.burst,
        )
        self._counting = Counting(self._book)

    def _start_leases(self) -> None:
        """A session that runs something and was not heard in the window gets a full lease from here."""
        for session in self._core.sessions:
            if session.stamp < 0:
                session.stamp = self._book.cursor.now
            session.sent_at.update({token >> 16: self._book.cursor.now for token in session.unacknowledged})

    # -- cycles

    def _clock(self) -> int:
        return self._process.clock.now() + self._offset_ms

    def _now(self) -> int:
        return max(self._clock(), self._book.cursor.now)

    async def _cycle(self) -> None:
        await self._wait()
        cycle = self._core
        if self._clock() < self._book.cursor.now:
            metrics.CLOCK_CLAMPED.add()
        if not cycle.can_grant and self.feeds[topics.REPORTS].has_all_below(self._reports_end):
            cycle.can_grant = True
        try:
            draft, taken = cycle.decide(self._reader.position + 1, self._now())
        except Redo:
            return
        self._counting.acknowledged(cycle.sessions.acknowledged)
        refused = len(self._refused)
        for event in self._refused:
            draft.add(event)
        for topic, records in taken.inputs.items():
            self._inputs[topic] = records[-1].offset
            self._quiet_inputs += len(records)
        if draft.events or self._is_frame_owed(draft.now):
            await self._make_durable(draft, taken, refused)
        else:
            cycle.sessions.plan_over()
        replies = cycle.replies(draft.now)
        if replies:
            await self._outbox.reply(replies)
        self._due_records.publish()
        await self._tick()

    def _is_frame_owed(self, now: int) -> bool:
        """Consumed inputs that decided nothing still move the offsets in a frame now and then."""
        if not self._quiet_inputs:
            return False
        return self._quiet_inputs >= QUIET_INPUTS_MAX or now - self._book.cursor.now >= QUIET_MS

    async def _make_durable(self, draft: Draft, taken: Taken, refused: int) -> None:
        epoch = self._book.cursor.epoch
        if await self._append(draft, self._core) is None:
            self._core.restore(taken)
            await self._decide_again(epoch)
            return
        self._quiet_inputs = 0
        del self._refused[:refused]
        self._counting.frame(draft.placed, draft.now, self._core.decided)
        await self._send_outputs(draft.placed, draft.offset, draft.now)

    async def _append(self, draft: Draft, cycle: Cycle | None = None) -> Ack | None:
        """Append the frame and commit it; None if the record is void because another came first.

        Raises ClockError where the clock alone made it void, or is off the other way.
        """
        frame = self._frame(draft)
        value = encode_frame(frame)
        started = self._process.clock.monotonic()
        ack = await self._process.events.append(self.partition, value)
        self._framed_at = self._process.clock.monotonic()
        metrics.FRAME_APPEND.observe(self._framed_at - started)
        if ack.offset != draft.offset:
            metrics.VOID_FRAMES.add(("offset",))
            self._book.discard()
            return None
        bound_ms = self._process.clock_bound_ms
        is_valid = self._reader.own(RawRecord(ack.offset, ack.stamp, None, value), draft.now)
        if not is_valid:
            metrics.VOID_FRAMES.add(("clock",))
        if not is_valid or draft.now > ack.stamp + bound_ms or ack.stamp > self._now() + bound_ms:
            raise ClockError(
                f"the broker's clock is {ack.stamp - draft.now} ms from this machine's: set it right"
            )
        self.skew_ms = ack.stamp - draft.now
        move_cursor(self._book, self._reader, frame)
        if cycle is not None:
            cycle.follow(draft)
        before = self._process.clock.monotonic()
        self._book.commit()
        metrics.STORE_WRITE.observe(self._process.clock.monotonic() - before)
        return ack

    def _frame(self, draft: Draft) -> Frame:
        cursor = self._book.cursor
        ids = self._process.topic_ids
        return Frame(
            offset=draft.offset,
            head=self._reader.head,
            owner=self._process.owner_id,
            epoch=cursor.epoch,
            now=draft.now,
            rules=RULES,
            tzdata=TZDATA_VERSION,
            settings=SETTINGS_DIGEST,
            inputs=[InputPosition(topic, ids[topic], self._inputs[topic]) for topic in topics.INPUTS],
            slices=draft.slices,
            outputs_sent_through=self._outbox.sent_through,
            events=draft.events,
        )

    async def _read_on(self) -> None:
        """After a void append: fold what others wrote."""
        end = await self._process.events.end(self.partition)
        reader = FrameReader(self._book.cursor.position, self._book.cursor.head)
        async for record in self._process.events.read(self.partition, reader.position + 1, end):
            take(self._book, reader, record)
            self._book.commit()
        self._reader = reader
        self._inputs = self._applied()
        self._outbox.sent_through = max(self._outbox.sent_through, self._book.cursor.outputs_sent_through)

    async def _decide_again(self, epoch: int) -> None:
        """The frame was void. Raises OwnershipLostError if somebody else owns the partition; only otherwise the same
        inputs are decided again, on the new head."""
        await self._read_on()
        cursor = self._book.cursor
        if cursor.epoch > epoch:
            raise OwnershipLostError(f"{cursor.owner} has taken partition {self.partition}")
        can_grant = self._core.can_grant
        self._open_core(self._core.sessions)
        self._core.can_grant = can_grant

    # -- waiting

    async def _wait(self) -> None:
        """Until an input is there or the next row of the time index, or of a deadline, is due."""
        is_in_burst = self._core.is_in_burst(self._now())
        has_inputs = any(feed.waiting for feed in self.feeds.values())
        if self._refused or (self._core.has_news() if is_in_burst else has_inputs):
            await asyncio.sleep(self._linger_s())
            return
        self._wake.clear()
        delay_s = min(self._idle_s(), BURST_GAP_S) if has_inputs else self._idle_s()
        if delay_s <= 0:
            await asyncio.sleep(0)
            return
        if self._core.due.read_ahead(self._now()):
            await asyncio.sleep(0)
            return
        handle = asyncio.get_running_loop().call_later(delay_s, self._wake.set)
        try:
            await self._wake.wait()
        finally:
            handle.cancel()

    def _linger_s(self) -> float:
        """How long to let more inputs gather: a frame costs the same for one result as for hundreds.

        Nothing lingers on the way of what is due: only commands alone, and in a burst offers and results.
        """
        if self._core.is_in_burst(self._now()):
            gap_s = self._framed_at + BURST_GAP_S - self._process.clock.monotonic()
            return max(0.0, min(gap_s, self._due_in_s()))
        return 0.0 if self.feeds[topics.REPORTS].waiting else COMMANDS_LINGER_S

    def _due_in_s(self) -> float:
        due_at = self._core.due.next_due_at()
        return IDLE_MAX_S if due_at is None else (due_at - self._clock()) / 1000

    def _idle_s(self) -> float:
        now = self._clock()
        deadline = self._core.sessions.next_deadline(now)
        delays = [IDLE_MAX_S, self._due_in_s(), self._core.operating.wait_s(now)]
        next_at = self._core.next_at()
        if next_at is not None:
            delays.append((next_at - now) / 1000)
        if deadline is not None and self._core.reports.tick_sent_at is None:
            delays.append((deadline + TICK_SLACK_MS - now) / 1000)
        if self._core.can_grant and self._core.granting.has_grantable(self._now()):
            return 0.0
        if self._due_records.is_behind():
            return 0.0
        return min(delays)

    async def _tick(self) -> None:
        """A check is due that no report has answered yet: mark the time on the broker's clock."""
        reports = self._core.reports
        now = self._now()
        deadline = self._core.sessions.next_deadline(now)
        if deadline is None or reports.tick_sent_at is not None or now < deadline + TICK_SLACK_MS:
            return
        reports.tick_number += 1
        reports.tick_sent_at, reports.tick_acknowledged_at = now, None
        tick = codec.encode(Tick(self._process.owner_id, reports.tick_number))
        sent = await self._process.producer.send(
            self._process.kafka.topic(topics.REPORTS), tick, partition=self.partition
        )
        sent.add_done_callback(self._tick_taken)

    def _tick_taken(self, sent: asyncio.Future[Any]) -> None:
        """The broker has the mark, or never will: then another one is sent."""
        reports = self._core.reports
        if sent.cancelled() or sent.exception() is not None:
            reports.tick_sent_at = None
        else:
            reports.tick_acknowledged_at = self._now()

    # -- what the outbox says

    def _granted(self, session: str, frame: int, stamp: int) -> None:
        known = self._core.sessions.get(session)
        if known is not None:
            known.sent_at[frame] = stamp

    def _output_refused(self, frame: int, output: Output, reason: str) -> None:
        self._refused.append(facts.OutputRefused(frame, type(output).__name__, reason))
        if isinstance(output, ToSession) and output.record.granted is not None:
            session = self._core.sessions.get(output.session)
            if session is not None:
                session.sent_at[frame] = 0
        self._wake.set()
