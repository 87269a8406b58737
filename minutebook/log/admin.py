"""The topics of one installation: made, compared with the table, and named by the ids that the broker gave
them.

Nothing here is ever altered or deleted: a topic that is not as declared is reported with the remedy, and the
process that found it does not start.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

import structlog
from kafka import KafkaAdminClient
from kafka.admin import ConfigResource, ConfigResourceType
from kafka.errors import KafkaError, TopicAlreadyExistsError, for_code
from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict

from minutebook.errors import SettingsError
from minutebook.log.settings import KafkaSettings
from minutebook.wire.topics import DUE, Topic, due_topic, table

_BOOTSTRAP_MS: Final = 10_000
_SEGMENT_MS_MAX: Final = 7 * 24 * 3_600_000
_FOR_EVER: Final = -1
_COMPARED: Final = (
    "cleanup.policy",
    "retention.ms",
    "retention.bytes",
    "max.message.bytes",
    "message.timestamp.type",
    "min.insync.replicas",
)

log = structlog.get_logger()


class TopicSettings(BaseSettings):
    """How topics are made. Environment names start with `MINUTEBOOK_TOPICS_`. `partitions` is P: fixed for
    life.
    """

    model_config = SettingsConfigDict(env_prefix="MINUTEBOOK_TOPICS_", frozen=True, extra="ignore")

    partitions: int = Field(
        default=8, description="P: partitions of every topic but the inbox; fixed for life"
    )
    inbox_partitions: int = Field(default=16, description="partitions of `worker-inbox`")
    replication: int = Field(default=1, description="copies of each partition; 3 where brokers may be lost")


class Finding(NamedTuple):
    """One thing that is not as declared: which topic and setting, what was found and wanted, and what to do."""

    topic: str
    setting: str
    found: str
    wanted: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.topic}: {self.setting} is {self.found}, wanted {self.wanted}. {self.remedy}"


class Existing(NamedTuple):
    """A topic as the broker has it. `topic_id` is the UUID of this life of the topic: made anew, it gets
    another one.
    """

    name: str
    topic_id: str
    partitions: int
    replicas: int
    settings: Mapping[str, str]


def create(kafka: KafkaSettings, settings: TopicSettings) -> list[str]:
    """Make the topics that are not there and wait until each partition has a leader. Returns the names made,
    prefix included.

    Changes nothing that exists; safe in several processes at once. Raises SettingsError if the broker
    refuses, KafkaError if it cannot be reached.
    """
    with _client(kafka) as client:
        wanted = {kafka.topic(topic.name): topic for topic in table(settings.inbox_partitions)}
        there = {found["name"] for found in client.describe_topics(list(wanted)) if not found["error_code"]}
        missing = {name: _request(topic, settings) for name, topic in wanted.items() if name not in there}
        made = _create(client, missing) if missing else []
        client.wait_for_topics(list(wanted))
        return made


def create_due(kafka: KafkaSettings, settings: TopicSettings, queue: str) -> bool:
    """Make the due topic of an open queue, if it is not there, and let its share group start at the oldest record.

    The share group is named as the topic. True if the topic was made. Raises SettingsError if the broker refuses, or
    the topic is there and not as declared; KafkaError if the broker cannot be reached.
    """
    topic = due_topic(queue)
    name = kafka.topic(topic.name)
    with _client(kafka) as client:
        is_there = not client.describe_topics([name])[0]["error_code"]
        if not is_there:
            _create(client, {name: _request(topic, settings)})
            client.wait_for_topics([name])
        _start_group_at_oldest(client, name)
        existing = _read(client, kafka, [topic]) if is_there else {}
    findings = list(_findings(kafka, topic, existing, settings.partitions)) if is_there else []
    if findings:
        raise SettingsError("\n".join(map(str, findings)))
    return not is_there


def _start_group_at_oldest(client: KafkaAdminClient, group: str) -> None:
    """A share group starts at the end unless told otherwise: what was published before its first member would be passed
    over. A broker without share groups is left alone: a classic group needs no setting there."""
    resource = ConfigResource(ConfigResourceType.GROUP, group, {"share.auto.offset.reset": "earliest"})
    try:
        client.alter_configs([resource], raise_on_unknown=False)
    except (KafkaError, ValueError) as error:
        log.warning("share_group_not_set", group=group, error=str(error))


def check(kafka: KafkaSettings, partitions: int, inbox_partitions: int | None = None) -> list[Finding]:
    """What is not as declared, for P = `partitions`; empty if all is well. `inbox_partitions` None accepts
    any number of them.

    Raises KafkaError if the broker cannot be reached.
    """
    with _client(kafka) as client:
        existing = _read(client, kafka, table(1))
        due = [due_topic(name.removeprefix(kafka.topic(DUE))) for name in _due_names(client, kafka)]
        existing_due = _read(client, kafka, due) if due else {}
    findings = _compare(kafka, existing, partitions, inbox_partitions)
    return findings + [
        finding for topic in due for finding in _findings(kafka, topic, existing_due, partitions)
    ]


def require(kafka: KafkaSettings, partitions: int, inbox_partitions: int | None = None) -> dict[str, str]:
    """Refuse to go on unless every topic is as declared: called at the start of each process.

    Returns `topic_ids`. Raises SettingsError naming each fault with its remedy, KafkaError if the broker
    cannot be reached.
    """
    with _client(kafka) as client:
        existing = _read(client, kafka, table(1))
    findings = _compare(kafka, existing, partitions, inbox_partitions)
    if findings:
        raise SettingsError("\n".join(map(str, findings)))
    return _ids(kafka, existing)


def topic_ids(kafka: KafkaSettings) -> dict[str, str]:
    """The broker's id of each declared topic that exists, as UUID text, by its name without prefix.

    A topic deleted and made again has another id: a frame that names ids cannot be mistaken about its inputs.
    """
    with _client(kafka) as client:
        return _ids(kafka, _read(client, kafka, table(1)))


@contextmanager
def _client(kafka: KafkaSettings) -> Iterator[KafkaAdminClient]:
    client = KafkaAdminClient(**kafka.kafka_python(), bootstrap_timeout_ms=_BOOTSTRAP_MS)
    try:
        yield client
    finally:
        client.close()


def _request(topic: Topic, settings: TopicSettings) -> dict[str, Any]:
    configs = topic.settings() | {"min.insync.replicas": str(max(1, settings.replication - 1))}
    if topic.retention_ms != _FOR_EVER:
        # Kafka deletes whole segments: with the default of a week, ten minutes of retention would keep a
        # week.
        configs["segment.ms"] = str(min(_SEGMENT_MS_MAX, topic.retention_ms // 4))
    return {
        "num_partitions": topic.partitions or settings.partitions,
        "replication_factor": settings.replication,
        "configs": configs,
    }


def _create(client: KafkaAdminClient, missing: dict[str, dict[str, Any]]) -> list[str]:
    answers = client.create_topics(missing, raise_errors=False)["topics"]
    for answer in answers:
        if answer["error_code"] not in (0, TopicAlreadyExistsError.errno):
            reason = answer["error_message"] or for_code(answer["error_code"]).__name__
            raise SettingsError(f"The broker refuses the topic {answer['name']}: {reason}")
    return [answer["name"] for answer in answers if answer["error_code"] == 0]


def _due_names(client: KafkaAdminClient, kafka: KafkaSettings) -> list[str]:
    """Due topics that are there."""
    return sorted(name for name in client.list_topics() if name.startswith(kafka.topic(DUE)))


def _read(client: KafkaAdminClient, kafka: KafkaSettings, declared: Iterable[Topic]) -> dict[str, Existing]:
    names = [kafka.topic(topic.name) for topic in declared]
    described = [found for found in client.describe_topics(names) if not found["error_code"]]
    if not described:
        return {}
    resources = [
        ConfigResource(ConfigResourceType.TOPIC, found["name"], list(_COMPARED)) for found in described
    ]
    configs = client.describe_configs(resources, config_filter="all")["topic"]
    return {
        found["name"]: Existing(
            found["name"],
            str(found["topic_id"]),
            len(found["partitions"]),
            min(len(partition["replica_nodes"]) for partition in found["partitions"]),
            {name: entry["value"] for name, entry in configs[found["name"]].items()},
        )
        for found in described
    }


def _ids(kafka: KafkaSettings, existing: Mapping[str, Existing]) -> dict[str, str]:
    names = {kafka.topic(topic.name): topic.name for topic in table(1)}
    return {names[name]: found.topic_id for name, found in existing.items()}


def _compare(
    kafka: KafkaSettings, existing: Mapping[str, Existing], partitions: int, inbox_partitions: int | None
) -> list[Finding]:
    declared = table(inbox_partitions or 0)
    return [finding for topic in declared for finding in _findings(kafka, topic, existing, partitions)]


def _findings(
    kafka: KafkaSettings, topic: Topic, existing: Mapping[str, Existing], partitions: int
) -> Iterator[Finding]:
    name = kafka.topic(topic.name)
    found = existing.get(name)
    if found is None:
        yield Finding(name, "topic", "missing", "there", "Run `minutebook topics create`.")
        return
    wanted = partitions if topic.partitions is None else topic.partitions
    yield from _partition_findings(topic, found, wanted)
    yield from _setting_findings(topic, found)


def _partition_findings(topic: Topic, found: Existing, wanted: int) -> Iterator[Finding]:
    """Partitions: never to be changed once the first job is there, since a job's partition is a function of
    their number.
    """
    if wanted in (0, found.partitions):
        return
    remedy = f"Start with MINUTEBOOK_TOPICS_PARTITIONS={found.partitions}: the number is fixed for life."
    if topic.name.startswith(DUE):
        remedy = "Delete the topic and make it anew: what is still unclaimed is published again."
    elif topic.partitions is not None:
        remedy = f"Start with MINUTEBOOK_TOPICS_INBOX_PARTITIONS={found.partitions}, or make the topic anew."
    yield Finding(found.name, "partitions", str(found.partitions), str(wanted), remedy)


def _setting_findings(topic: Topic, found: Existing) -> Iterator[Finding]:
    wanted = topic.settings() | {"retention.bytes": str(_FOR_EVER)}
    for setting, value in wanted.items():
        has = found.settings.get(setting, "")
        if not _is_enough(setting, has, value):
            yield Finding(found.name, setting, has or "unknown", value, _remedy(found.name, setting, value))
    if found.replicas >= 3 and int(found.settings.get("min.insync.replicas", 1)) < 2:
        # The broker's default lets one replica acknowledge alone: what it acknowledged is lost with it.
        setting = "min.insync.replicas"
        yield Finding(found.name, setting, "1", "2", _remedy(found.name, setting, "2"))


def _is_enough(setting: str, has: str, wanted: str) -> bool:
    """Longer retention and larger messages do no harm; everything else must be equal."""
    if setting == "max.message.bytes":
        return has.isdecimal() and int(has) >= int(wanted)
    if setting == "retention.ms" and int(wanted) != _FOR_EVER:
        return has == str(_FOR_EVER) or (has.isdecimal() and int(has) >= int(wanted))
    return has == wanted


def _remedy(name: str, setting: str, value: str) -> str:
    return f"Run `kafka-configs.sh --alter --topic {name} --add-config {setting}={value}` on the broker."
