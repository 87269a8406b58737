"""What a cluster says of itself, of groups, replicas and its clock: facts, judged elsewhere.

Nothing of an installation is changed. To measure the clock, a topic of one partition is made, written to once, and deleted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from typing import Any, Final, NamedTuple

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType, OffsetSpec
from kafka.errors import CoordinatorNotAvailableError, GroupIdNotFoundError, KafkaError
from tenacity import retry, retry_if_exception_type, stop_after_attempt, wait_fixed

from minutebook.clock import Clock
from minutebook.log.settings import KafkaSettings
from minutebook.wire.topics import DUE, EVENTS, INPUTS, MESSAGE_BYTES_MAX

_BOOTSTRAP_MS: Final = 5_000
_ANSWER_S: Final = 10
_POLLS_MAX: Final = 20
_POLL_MS: Final = 500
_TRIES: Final = 10
_SHARE_START: Final = "share.auto.offset.reset"
_HEADER_BYTES: Final = 10


class Broker(NamedTuple):
    """Version of the brokers, how many there are, and the features that are switched on, by name."""

    version: tuple[int, ...]
    brokers: int
    features: Mapping[str, int]


class Partition(NamedTuple):
    """A partition: its topic with prefix, how many replicas it has, how many are in sync, and whether it has a leader."""

    topic: str
    partition: int
    replicas: int
    in_sync: int
    has_leader: bool


class Group(NamedTuple):
    """A group: its members, and by topic without prefix the records that it has not committed."""

    members: int
    lag: Mapping[str, int]


class ClockReading(NamedTuple):
    """How far this machine's clock is ahead of the broker's, in ms, give or take half of how long the answer took."""

    ahead_ms: int
    uncertain_ms: int


class Survey:
    """Asks the brokers. Every method raises KafkaError where they do not answer or refuse."""

    def __init__(self, kafka: KafkaSettings, client: KafkaAdminClient) -> None:
        self._kafka = kafka
        self._client = client

    def broker(self) -> Broker:
        """What the brokers are."""
        brokers = self._client.describe_cluster()["brokers"]
        versions = [self._client.get_broker_version_data(one["broker_id"]).broker_version for one in brokers]
        features = {
            name: levels["finalized"][1]
            for name, levels in self._client.describe_features().items()
            if "finalized" in levels
        }
        return Broker(min(map(tuple, versions)), len(brokers), features)

    def partitions(self) -> list[Partition]:
        """All partitions of this installation's topics that exist."""
        names = [name for name in self._client.list_topics() if self._is_ours(name)]
        return [
            Partition(
                topic["name"],
                one["partition_index"],
                len(one["replica_nodes"]),
                len(one["isr_nodes"]),
                one["leader_id"] >= 0,
            )
            for topic in (self._client.describe_topics(names) if names else ())
            for one in topic["partitions"]
        ]

    def share_starts(self) -> dict[str, str]:
        """Where the share group of each open queue starts, by the name of its due topic."""
        names = [name for name in self._client.list_topics() if name.startswith(self._kafka.topic(DUE))]
        if not names:
            return {}
        resources = [ConfigResource(ConfigResourceType.GROUP, name, [_SHARE_START]) for name in names]
        found = self._client.describe_configs(resources, config_filter="all").get("group", {})
        return {name: found.get(name, {}).get(_SHARE_START, {}).get("value") or "" for name in names}

    def group(self, name: str) -> Group:
        """The group of the owners."""
        members, committed = self._group(name)
        ours = {self._kafka.topic(topic): topic for topic in INPUTS}
        places = self._places(ours)
        ends = self._offsets(places, OffsetSpec.LATEST)
        starts = self._offsets(places, OffsetSpec.EARLIEST)
        lag = dict.fromkeys(INPUTS, 0)
        for place in places:
            at = committed[place].offset if place in committed else -1
            lag[ours[place.topic]] += max(ends[place] - max(at, starts[place]), 0)
        return Group(len(members), lag)

    @retry(
        retry=retry_if_exception_type(CoordinatorNotAvailableError),
        stop=stop_after_attempt(_TRIES),
        wait=wait_fixed(1),
        reraise=True,
    )
    def _group(self, name: str) -> tuple[list[Any], dict[TopicPartition, Any]]:
        """Members and commits; none of a group that is not there. The first question to a new cluster has no coordinator."""
        try:
            members = self._client.describe_groups([name])[name]["members"]
        except GroupIdNotFoundError:
            return [], {}
        return members, self._client.list_group_offsets([name])[name]

    def last_headers(self) -> dict[str, bytes]:
        """The first ten bytes of the last record of each partition with one: `<topic>-<partition>` -> bytes."""
        places = self._places(map(self._kafka.topic, (EVENTS, *INPUTS)))
        ends, starts = self._offsets(places, OffsetSpec.LATEST), self._offsets(places, OffsetSpec.EARLIEST)
        wanted = {place: ends[place] - 1 for place in places if ends[place] > starts[place]}
        settings: dict[str, Any] = {
            "group_id": None,
            "enable_auto_commit": False,
            "auto_offset_reset": "none",
            "max_partition_fetch_bytes": MESSAGE_BYTES_MAX + (1 << 20),
            "bootstrap_timeout_ms": _BOOTSTRAP_MS,
            "metrics_enabled": False,
        }
        with closing(KafkaConsumer(**self._kafka.kafka_python(), **settings)) as consumer:
            return dict(_heads(consumer, wanted))

    def clock(self, clock: Clock, topic: str) -> ClockReading:
        """How far `clock` is ahead of the broker's, by a record on `topic`, which is made for it and deleted."""
        name = self._kafka.topic(topic)
        configs = {"message.timestamp.type": "LogAppendTime", "retention.ms": "60000"}
        made = {name: {"num_partitions": 1, "replication_factor": 1, "configs": configs}}
        self._client.create_topics(made)
        try:
            self._client.wait_for_topics([name])
            settings = {"acks": 1, "bootstrap_timeout_ms": _BOOTSTRAP_MS, "metrics_enabled": False}
            with closing(KafkaProducer(**self._kafka.kafka_python(), **settings)) as producer:
                producer.send(name, b"connect").get(_ANSWER_S)
                sent_at = clock.now()
                stamp = producer.send(name, b"measure").get(_ANSWER_S).timestamp
                heard_at = clock.now()
        finally:
            self._client.delete_topics([name])
        return ClockReading((sent_at + heard_at) // 2 - stamp, (heard_at - sent_at + 1) // 2)

    def _is_ours(self, name: str) -> bool:
        known = (self._kafka.topic(topic) for topic in (EVENTS, *INPUTS))
        return name in known or name.startswith(self._kafka.topic(DUE))

    def _places(self, names: Iterable[str]) -> list[TopicPartition]:
        described = self._client.describe_topics(list(names))
        return [
            TopicPartition(topic["name"], one["partition_index"])
            for topic in described
            if not topic["error_code"]
            for one in topic["partitions"]
        ]

    def _offsets(self, places: list[TopicPartition], spec: OffsetSpec) -> dict[TopicPartition, int]:
        found = self._client.list_partition_offsets(dict.fromkeys(places, spec)) if places else {}
        return {place: at.offset for place, at in found.items()}


@contextmanager
def surveying(kafka: KafkaSettings) -> Iterator[Survey]:
    """A survey of the cluster. Raises KafkaError where no broker answers."""
    with closing(KafkaAdminClient(**kafka.kafka_python(), bootstrap_timeout_ms=_BOOTSTRAP_MS)) as client:
        yield Survey(kafka, client)


def _heads(consumer: KafkaConsumer, wanted: Mapping[TopicPartition, int]) -> Iterator[tuple[str, bytes]]:
    consumer.assign(list(wanted))
    for place, offset in wanted.items():
        consumer.seek(place, offset)
    missing = set(wanted)
    for _ in range(_POLLS_MAX):
        if not missing:
            return
        for place, records in consumer.poll(timeout_ms=_POLL_MS).items():
            if records and place in missing:
                missing.discard(place)
                yield f"{place.topic}-{place.partition}", bytes(records[0].value or b"")[:_HEADER_BYTES]
    raise KafkaError(f"{len(missing)} partitions bring no record")
