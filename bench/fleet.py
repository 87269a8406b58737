"""`python -m bench.fleet [SESSIONS] [PARTITIONS]`: what a large fleet costs an owner process that serves all partitions.

The sessions are simulated by this process: real records on `worker-reports`, each session a full pulse to each partition
every 3 s and at most one report at once. First nothing runs (idle pulses), then one-off jobs come due, each granted to a
session that answers at once with its result (single results). One owner process, broker and API beside it.
"""

from __future__ import annotations

import argparse
import asyncio
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from itertools import cycle
from pathlib import Path
from time import monotonic, time, time_ns
from types import MappingProxyType
from typing import Final, NamedTuple

from confluent_kafka import OFFSET_END, Consumer, Producer, TopicPartition
from rich.console import Console

from bench.consumption import Consumption
from bench.producer import in_batches, send, submissions
from bench.results import Repetition, result, save, show
from bench.rig import Say
from bench.witness import TASK
from minutebook.cli.dev import stop_signals
from minutebook.domain.records import FullPulse, Inbox, Pulse, QueueOffer, Report, Succeeded
from minutebook.embedded.cluster import Cluster, ClusterSettings
from minutebook.errors import MinutebookError
from minutebook.ids import worker_of
from minutebook.log.admin import TopicSettings
from minutebook.log.settings import KafkaSettings
from minutebook.wire import codec, topics
from streams.settings import StreamsSettings

PULSE_S: Final = 3.0
OFFER: Final = 4
RATE: Final = 200
"""Jobs due a second while single results are measured."""
_WARM_S: Final = 15.0
_LEAD_S: Final = 15.0
_LATE_S: Final = 10.0
_ASK_S: Final = 5.0


class Options(NamedTuple):
    """How large the fleet is, and how long each part is measured."""

    sessions: int
    partitions: int
    seconds: float
    cluster: Callable[[ClusterSettings], Cluster] = Cluster
    environment: Mapping[str, str] = MappingProxyType({})

    def settings(self) -> dict[str, object]:
        """For the result file."""
        return {
            "processes": {"broker": 1, "owner": 1, "api": 1, "worker": 0, "load": 1},
            "partitions": self.partitions,
            "sessions": self.sessions,
            "pulse_s": PULSE_S,
            "pulses_per_s": round(self.sessions * self.partitions / PULSE_S, 1),
            "results_per_s": RATE,
            "measured_s": self.seconds,
        }


class Voice:
    """One session toward one partition: what it says next."""

    def __init__(self, session: str, partition: int) -> None:
        self.session = session
        self.partition = partition
        self.last_token = -1
        self._sequence = 0

    def pulse(self) -> Report:
        """A full pulse; nothing is held, for what is granted ends at once."""
        worker = worker_of(self.session)
        full = FullPulse(worker, "1", [TASK], [QueueOffer("default")], 10_000, int(PULSE_S * 1_000), [])
        return self._report(full, None)

    def ended(self, record: Inbox) -> Iterator[Report]:
        """A result for each grant in an inbox record, one record each."""
        it = record.granted
        for place, row in enumerate(it.rows if it is not None else ()):
            assert it is not None
            self.last_token = (record.frame << 16) + row
            tenant = it.tenants[it.tenant[place]]
            yield self._report(
                None, Succeeded([tenant], [0], [it.executions[place]], [self.last_token], [0], [0])
            )

    def _report(self, full: FullPulse | None, succeeded: Succeeded | None) -> Report:
        self._sequence += 1
        return Report(self.session, self._sequence, Pulse(OFFER, self.last_token), full, succeeded)


class Sessions:
    """All sessions: pulses in turn, evenly over time, and results as grants come in."""

    def __init__(self, kafka: KafkaSettings, options: Options, inbox_partitions: int) -> None:
        names = [f"fleet{number:04}.0" for number in range(options.sessions)]
        self.voices = {(name, p): Voice(name, p) for name in names for p in range(options.partitions)}
        self.pulses = self.results = 0
        self._reports = kafka.topic(topics.REPORTS)
        self._producer = Producer(kafka.confluent() | {"linger.ms": 0, "acks": "all"})
        self._consumer = Consumer(
            kafka.confluent() | {"group.id": "nobody", "enable.auto.commit": False, "fetch.wait.max.ms": 10}
        )
        inbox = kafka.topic(topics.INBOX)
        self._consumer.assign([TopicPartition(inbox, p, OFFSET_END) for p in range(inbox_partitions)])

    def run(self, is_over: Callable[[], bool]) -> None:
        """Speak and listen until `is_over`."""
        turn, began, sent = cycle(self.voices.values()), monotonic(), 0
        per_s = len(self.voices) / PULSE_S
        while not is_over():
            while sent < (monotonic() - began) * per_s:
                self._send(next(turn), None)
                sent += 1
            self._listen()
        self._producer.flush()
        self._consumer.close()

    def _listen(self) -> None:
        for message in self._consumer.consume(500, 0.002):
            value = message.value()
            record = codec.decode(value if isinstance(value, bytes) else None)
            if isinstance(record, Inbox):
                voice = self.voices[record.session, record.partition]
                for report in voice.ended(record):
                    self._send(voice, report)
        self._producer.poll(0)

    def _send(self, voice: Voice, report: Report | None) -> None:
        self.pulses += report is None
        self.results += report is not None
        value = codec.encode(report or voice.pulse())
        self._producer.produce(self._reports, value, partition=voice.partition)


@contextmanager
def running(options: Options) -> Iterator[Cluster]:
    """A fresh cluster with one owner process and no worker; afterwards nothing of it is left."""
    folder = Path(tempfile.mkdtemp(prefix="minutebook-fleet-"))
    settings = ClusterSettings(
        data_dir=folder,
        owners=1,
        workers=0,
        topics=TopicSettings(partitions=options.partitions),
        environment=options.environment,
    )
    cluster = options.cluster(settings)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()
        shutil.rmtree(folder, ignore_errors=True)


@asynccontextmanager
async def speaking(cluster: Cluster, options: Options) -> AsyncIterator[Sessions]:
    """The sessions of a running cluster, in a thread of their own."""
    sessions = Sessions(cluster.kafka, options, TopicSettings().inbox_partitions)
    is_over = asyncio.Event()
    thread = asyncio.create_task(asyncio.to_thread(sessions.run, is_over.is_set))
    try:
        yield sessions
    finally:
        is_over.set()
        await thread


async def measured(cluster: Cluster, options: Options, say: Say) -> Repetition:
    """Idle pulses, then single results, of one fleet."""
    used = Consumption(lambda: cluster.processes)
    async with speaking(cluster, options) as sessions:
        await asyncio.sleep(_WARM_S)
        idle, pulses, _ = await _part(used, sessions, options.seconds)
        behind = await asyncio.to_thread(unread, cluster.kafka, options.partitions)
        say(f"idle: owner {idle['owner']:.1%} of a core, {pulses / options.seconds:,.0f} pulses a second")
        first = int((time() + _LEAD_S) * 1_000)
        due = [first + number * 1_000 // RATE for number in range(int(RATE * (options.seconds + 1)))]
        await send(cluster.kafka, list(in_batches(submissions("fleet", due), options.partitions)))
        await asyncio.sleep(max(0.0, first / 1_000 - time()) + 0.5)
        busy, busy_pulses, results = await _part(used, sessions, options.seconds)
        await asyncio.sleep(_LATE_S)
        say(
            f"results: owner {busy['owner']:.1%} of a core, {results / options.seconds:,.0f} results a second"
        )
    return Repetition(
        lost=len(due) - sessions.results,
        peak_rss_mib={kind: round(mib, 1) for kind, mib in sorted(used.peak_rss_mib.items())},
        more={
            "idle_share_of_core": _rounded(idle),
            "idle_pulses_per_s": round(pulses / options.seconds, 1),
            "idle_unread_s": round(behind * options.seconds / pulses, 1),
            "owner_us_per_idle_pulse": round(idle["owner"] * options.seconds / pulses * 1e6, 1),
            "results_share_of_core": _rounded(busy),
            "results_pulses_per_s": round(busy_pulses / options.seconds, 1),
            "results_per_s": round(results / options.seconds, 1),
            "owner_us_per_single_result": round(
                (busy["owner"] - idle["owner"]) * options.seconds / max(1, results) * 1e6, 1
            ),
        },
    )


def unread(kafka: KafkaSettings, partitions: int) -> int:
    """Reports that the owners' group has not read, by its last commit: that may be 3 s old."""
    asking = Consumer(kafka.confluent() | {"group.id": StreamsSettings().group})
    places = [TopicPartition(kafka.topic(topics.REPORTS), partition) for partition in range(partitions)]
    read = {place.partition: max(0, place.offset) for place in asking.committed(places, timeout=_ASK_S)}
    ends = {place.partition: asking.get_watermark_offsets(place, timeout=_ASK_S)[1] for place in places}
    asking.close()
    return sum(end - read[partition] for partition, end in ends.items())


async def _part(used: Consumption, sessions: Sessions, seconds: float) -> tuple[dict[str, float], int, int]:
    """Share of a core that each kind of process uses meanwhile; pulses and results that were sent."""
    used.sample()
    from_ns, pulses, results = time_ns(), sessions.pulses, sessions.results
    await asyncio.sleep(seconds)
    used.sample()
    to_ns = time_ns()
    spent = used.cpu_between(from_ns, to_ns)
    shares = {kind: cpu_s * 1e9 / (to_ns - from_ns) for kind, cpu_s in spent.items()}
    return shares, sessions.pulses - pulses, sessions.results - results


def _rounded(shares: dict[str, float]) -> dict[str, float]:
    return {kind: round(share, 3) for kind, share in sorted(shares.items())}


def main() -> int:
    """Measure what the command line asks for. Returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m bench.fleet", description=__doc__)
    parser.add_argument("sessions", nargs="?", type=int, default=200)
    parser.add_argument("partitions", nargs="?", type=int, default=32)
    parser.add_argument("--seconds", type=float, default=30.0, help="of each part (%(default)s)")
    parser.add_argument("--repetitions", type=int, default=3, help="%(default)s")
    given = parser.parse_args()
    console = Console(soft_wrap=True)
    options = Options(given.sessions, given.partitions, given.seconds)
    found = []
    with stop_signals():
        try:
            for number in range(given.repetitions):
                console.print(
                    f"fleet: {options.sessions} sessions, {options.partitions} partitions, repetition {number + 1}"
                )
                with running(options) as cluster:
                    found.append(
                        asyncio.run(measured(cluster, options, lambda line: console.print(f"  {line}")))
                    )
        except MinutebookError as error:
            print(f"error: {error}", file=sys.stderr)
            return 1
        except KeyboardInterrupt:
            return 130
    written = result("fleet", options.sessions, options.settings(), found)
    show(written, console)
    console.print(f"written to {save(written)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
