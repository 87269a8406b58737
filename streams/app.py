"""The Faust app: it forms the group, assigns partitions and delivers raw records, and no more.

No table, no timer, no web server, no codec: topics are raw bytes, agents hand records to the owners' feeds and go on.
A message is what a fetch brought of a partition, with idle pulses that came before (`streams/driver.py`).
An agent never raises, for an exception in an agent acknowledges and loses the record.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterable
from functools import partial
from typing import Any

import faust
import structlog
from aiokafka import AIOKafkaConsumer, TopicPartition

from minutebook.clock import Clock
from minutebook.ids import Instant
from minutebook.log.admin import TopicSettings, require
from minutebook.log.kafka import KafkaEventLog, producer, reader
from minutebook.log.settings import KafkaSettings
from minutebook.loop_lag import LoopLag
from minutebook.wire import topics
from streams import health, metrics
from streams.assignor import FairAssignor
from streams.deliveries import watch_deliveries
from streams.driver import InputConsumer
from streams.gauges import HostCollector
from streams.host import Host, leave
from streams.process import Bounds, Burst, Process
from streams.settings import StreamsSettings
from streams.tables import NoTables
from streams.watchdog import watch

log = structlog.get_logger()


def make_faust(kafka: KafkaSettings, settings: StreamsSettings) -> Any:
    """The Faust app, without agents."""
    return faust.App(
        settings.group,
        broker=[f"aiokafka://{address}" for address in kafka.bootstrap_servers.split(",")],
        broker_credentials=_credentials(kafka),
        store="memory://",
        datadir=str(settings.data_dir / "faust"),
        web_enabled=False,
        topic_disable_leader=True,
        topic_allow_declare=False,
        consumer_group_instance_id=settings.instance_id,
        consumer_auto_offset_reset="earliest",
        broker_session_timeout=settings.session_timeout_s,
        broker_heartbeat_interval=settings.session_timeout_s / 5,
        broker_max_poll_interval=60.0,
        broker_max_poll_records=2_000,
        stream_buffer_maxsize=256,
        stream_wait_empty=False,
        PartitionAssignor=FairAssignor,
        TableManager=NoTables,
    )


def _credentials(kafka: KafkaSettings) -> Any:
    if kafka.security_protocol == "PLAINTEXT":
        return None
    if kafka.sasl_username is None:
        return faust.SSLCredentials(context=kafka.ssl_context())
    return faust.SASLCredentials(
        username=kafka.sasl_username,
        password=kafka.password() or "",
        mechanism=kafka.sasl_mechanism,
        ssl_context=kafka.ssl_context(),
    )


def attach(app: Any, kafka: KafkaSettings, host: Host) -> None:
    """Our consumer, one agent a topic, each listed by name, and the group's signals."""
    app.transport.Consumer = partial(InputConsumer, is_news=host.is_news)
    for topic in topics.INPUTS:
        _add_agent(app, kafka, host, topic)

    @app.on_partitions_assigned.connect
    async def on_assigned(sender: Any, assigned: Any, **kwargs: Any) -> None:
        await host.assigned(_by_partition(kafka, assigned))

    @app.on_partitions_revoked.connect
    async def on_revoked(sender: Any, revoked: Any, **kwargs: Any) -> None:
        await host.revoked(set(_by_partition(kafka, revoked)))


def _by_partition(kafka: KafkaSettings, places: Any) -> dict[int, set[str]]:
    names = {kafka.topic(topic): topic for topic in topics.INPUTS}
    found: dict[int, set[str]] = defaultdict(set)
    for place in places:
        if place.topic in names:
            found[place.partition].add(names[place.topic])
    return found


def _add_agent(app: Any, kafka: KafkaSettings, host: Host, topic: str) -> None:
    source = app.topic(
        kafka.topic(topic), key_type=bytes, value_type=bytes, key_serializer="raw", value_serializer="raw"
    )

    async def take(stream: Any) -> None:
        try:
            async for event in stream.events():
                host.offer(topic, event.message.partition, event.message.value)
        except asyncio.CancelledError:
            raise
        except BaseException:
            log.exception("agent_failed", topic=topic)
            leave(f"agent of {topic} failed")

    app.agent(source, name=f"minutebook.{topic}", concurrency=1)(take)


class InputBounds:
    """Asks the broker for the bounds of a partition's input topics."""

    def __init__(self, kafka: KafkaSettings) -> None:
        self._kafka = kafka
        self._consumer: AIOKafkaConsumer = reader(kafka)

    async def start(self) -> None:
        """Connect."""
        await self._consumer.start()

    async def stop(self) -> None:
        """Disconnect."""
        await self._consumer.stop()

    async def ends(self, places: Iterable[tuple[str, int]]) -> dict[tuple[str, int], int]:
        """End offset of each (input topic, partition), all in one request a broker."""
        named = {
            TopicPartition(self._kafka.topic(topic), number): (topic, number) for topic, number in places
        }
        found = await self._consumer.end_offsets(list(named)) if named else {}
        return {named[place]: end for place, end in found.items()}

    async def __call__(self, partition: int, window_at: int) -> Bounds:
        """Bounds now; the window of reports starts at the first one stamped `window_at` or later."""
        places = {topic: TopicPartition(self._kafka.topic(topic), partition) for topic in topics.INPUTS}
        first = await self._consumer.beginning_offsets(list(places.values()))
        end = await self._consumer.end_offsets(list(places.values()))
        reports = places[topics.REPORTS]
        found = (await self._consumer.offsets_for_times({reports: max(window_at, 0)}))[reports]
        return Bounds(
            {topic: first[place] for topic, place in places.items()},
            {topic: end[place] for topic, place in places.items()},
            end[reports] if found is None else found.offset,
        )


class Service:
    """Everything of the owners' process beside Faust: clients, owners, health port, watchdog."""

    def __init__(
        self, kafka: KafkaSettings, settings: StreamsSettings, clock: Clock, process_id: str
    ) -> None:
        self._kafka = kafka
        self._settings = settings
        self._clock = clock
        self._owner_id = f"{settings.instance_id}/{process_id}"
        self._events = KafkaEventLog(kafka)
        self._bounds = InputBounds(kafka)
        self._producer = producer(kafka, linger_ms=0)

    async def start(self, app: Any) -> None:
        """Connect and attach to `app`. Raises SettingsError where topics are not as declared."""
        names = await asyncio.to_thread(require, self._kafka, TopicSettings().partitions)
        await self._events.start_clients()
        await self._bounds.start()
        await self._producer.start()
        partitions = len(await self._producer.partitions_for(self._kafka.topic(topics.EVENTS)))
        inbox = len(await self._producer.partitions_for(self._kafka.topic(topics.INBOX)))
        self.host = Host(self._process(names, partitions, inbox))
        attach(app, self._kafka, self.host)
        lag = LoopLag(self._clock)
        metrics.REGISTRY.register(HostCollector(self.host, self._clock, lag, self._settings.data_dir))
        web = health.make_app(
            self.host, metrics.REGISTRY, self._settings.checkpoint_dir, self._checkpoint_name
        )
        self._web = await health.serve(web, self._settings.health_host, self._settings.health_port)
        self._watchdogs = [
            asyncio.create_task(lag.run(), name="loop lag"),
            asyncio.create_task(
                watch(self.host, self._clock, self._settings.stuck_after_s, leave), name="watchdog"
            ),
            asyncio.create_task(
                watch_deliveries(self.host, self._bounds.ends, leave), name="watchdog of deliveries"
            ),
        ]

    def _process(self, names: dict[str, str], partitions: int, inbox_partitions: int) -> Process:
        return Process(
            kafka=self._kafka,
            events=self._events,
            producer=self._producer,
            clock=self._clock,
            data_dir=self._settings.data_dir,
            owner_id=self._owner_id,
            log_id=names[topics.EVENTS],
            partitions=partitions,
            inbox_partitions=inbox_partitions,
            topic_ids=names,
            clock_bound_ms=self._settings.clock_bound_ms,
            input_bounds=self._bounds,
            burst=Burst(),
        )

    def _checkpoint_name(self) -> str:
        return f"{self._settings.instance_id}-{Instant(self._clock.now())}"

    async def stop(self) -> None:
        """Close the owners, then everything they use."""
        for watchdog in self._watchdogs:
            watchdog.cancel()
        await asyncio.gather(*self._watchdogs, return_exceptions=True)
        await self.host.close()
        await self._web.cleanup()
        await self._producer.stop()
        await self._events.stop_clients()
        await self._bounds.stop()
