"""Topics are made as declared, made once, and anything else is refused with its remedy."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaAdminClient
from kafka.admin import ConfigResource, ConfigResourceType

from api.due_topics import KafkaDueTopics
from api.problems import Refused
from minutebook.errors import SettingsError
from minutebook.log import admin
from minutebook.log.admin import TopicSettings
from minutebook.log.settings import KafkaSettings
from minutebook.wire import topics

pytestmark = pytest.mark.kafka
ROOT = Path(__file__).parents[2]
P = 3
INBOX = 2
SETTINGS = TopicSettings(partitions=P, inbox_partitions=INBOX, replication=1)


@pytest.fixture
def kafka(broker: Any) -> Iterator[KafkaSettings]:
    """The shared broker, with a prefix of this test's own; its topics are deleted afterwards."""
    settings = KafkaSettings(
        bootstrap_servers=broker.bootstrap_servers, topic_prefix=f"t{uuid.uuid4().hex[:8]}."
    )
    yield settings
    client = KafkaAdminClient(**settings.kafka_python())
    client.delete_topics([name for name in client.list_topics() if name.startswith(settings.topic_prefix)])
    client.close()


def set_topic(kafka: KafkaSettings, topic: str, **settings: str) -> None:
    client = KafkaAdminClient(**kafka.kafka_python())
    changes = {name.replace("_", "."): value for name, value in settings.items()}
    client.alter_configs([ConfigResource(ConfigResourceType.TOPIC, kafka.topic(topic), changes)])
    client.close()


def make_topic(kafka: KafkaSettings, topic: str, partitions: int) -> None:
    client = KafkaAdminClient(**kafka.kafka_python())
    client.create_topics({kafka.topic(topic): {"num_partitions": partitions, "replication_factor": 1}})
    client.close()


def findings_of(kafka: KafkaSettings, topic: str, within_s: float = 40) -> list[admin.Finding]:
    """Findings on one topic, waited for: the broker's cache of settings lags a moment behind."""
    deadline = time.monotonic() + within_s
    while True:
        found = [one for one in admin.check(kafka, P, INBOX) if one.topic == kafka.topic(topic)]
        if found or time.monotonic() > deadline:
            return found
        time.sleep(0.05)


def test_create_makes_every_topic_as_declared(kafka: KafkaSettings) -> None:
    made = admin.create(kafka, SETTINGS)

    assert sorted(made) == sorted(kafka.topic(topic.name) for topic in topics.table(INBOX))
    assert admin.check(kafka, P, INBOX) == []


def test_create_twice_changes_nothing(kafka: KafkaSettings) -> None:
    admin.create(kafka, SETTINGS)
    before = admin.topic_ids(kafka)

    assert admin.create(kafka, TopicSettings(partitions=P + 1, inbox_partitions=INBOX + 1)) == []
    assert admin.topic_ids(kafka) == before


def test_create_completes_what_is_half_there(kafka: KafkaSettings) -> None:
    admin.create(kafka, SETTINGS)
    client = KafkaAdminClient(**kafka.kafka_python())
    client.delete_topics([kafka.topic(topics.REJECTED)])
    while kafka.topic(topics.REJECTED) in client.list_topics():
        time.sleep(0.05)
    client.close()

    assert admin.create(kafka, SETTINGS) == [kafka.topic(topics.REJECTED)]


def test_require_returns_ids_that_name_one_life_of_a_topic(kafka: KafkaSettings) -> None:
    admin.create(kafka, SETTINGS)
    before = admin.require(kafka, P, INBOX)
    client = KafkaAdminClient(**kafka.kafka_python())
    client.delete_topics([kafka.topic(topics.COMMANDS)])
    while kafka.topic(topics.COMMANDS) in client.list_topics():
        time.sleep(0.05)
    client.close()
    admin.create(kafka, SETTINGS)
    after = admin.require(kafka, P, INBOX)

    assert before.keys() == after.keys() == {topic.name for topic in topics.table(INBOX)}
    assert all(str(uuid.UUID(one)) == one for one in before.values())
    assert [name for name in before if before[name] != after[name]] == [topics.COMMANDS]


def test_missing_topics_are_refused_with_the_command_that_makes_them(kafka: KafkaSettings) -> None:
    with pytest.raises(SettingsError, match="minutebook topics create"):
        admin.require(kafka, P)


def test_another_number_of_partitions_is_refused(kafka: KafkaSettings) -> None:
    admin.create(kafka, SETTINGS)

    with pytest.raises(SettingsError, match=f"MINUTEBOOK_TOPICS_PARTITIONS={P}"):
        admin.require(kafka, P + 1)
    assert {one.topic for one in admin.check(kafka, P, INBOX + 1)} == {kafka.topic(topics.INBOX)}


@pytest.mark.parametrize(
    ("topic", "setting", "value"),
    [
        (topics.EVENTS, "retention.ms", "1000"),
        (topics.EVENTS, "retention.bytes", "1000000"),
        (topics.EVENTS, "cleanup.policy", "compact"),
        (topics.REPORTS, "message.timestamp.type", "CreateTime"),
        (topics.COMMANDS, "retention.ms", "1000"),
        (topics.COMMANDS, "max.message.bytes", "1000"),
    ],
)
def test_wrong_setting_is_found_with_its_remedy(
    kafka: KafkaSettings, topic: str, setting: str, value: str
) -> None:
    admin.create(kafka, SETTINGS)
    set_topic(kafka, topic, **{setting.replace(".", "_"): value})

    (finding,) = findings_of(kafka, topic)
    assert (finding.setting, finding.found) == (setting, value)
    assert f"--add-config {setting}={finding.wanted}" in finding.remedy


def test_longer_retention_and_larger_messages_are_accepted(kafka: KafkaSettings) -> None:
    admin.create(kafka, SETTINGS)
    set_topic(kafka, topics.COMMANDS, retention_ms="-1", max_message_bytes=str(6 << 20))
    set_topic(
        kafka, topics.REPORTS, retention_ms=str(30 * 86_400_000), retention_bytes="5"
    )  # the last change
    findings_of(kafka, topics.REPORTS)

    assert {(one.topic, one.setting) for one in admin.check(kafka, P)} == {
        (kafka.topic(topics.REPORTS), "retention.bytes")
    }


def test_topic_made_by_hand_is_compared_too(kafka: KafkaSettings) -> None:
    make_topic(kafka, topics.EVENTS, P)
    admin.create(kafka, SETTINGS)

    found = {one.setting for one in findings_of(kafka, topics.EVENTS)}
    assert found >= {"retention.ms", "message.timestamp.type"}


def test_short_retention_gets_short_segments(kafka: KafkaSettings) -> None:
    """Kafka deletes whole segments: with the default of a week, ten minutes of retention keep a week."""
    admin.create(kafka, SETTINGS)
    client = KafkaAdminClient(**kafka.kafka_python())
    name = kafka.topic(topics.INBOX)
    resource = ConfigResource(ConfigResourceType.TOPIC, name, ["segment.ms", "retention.ms"])
    found = client.describe_configs([resource], config_filter="all")["topic"][name]
    client.close()

    assert int(found["segment.ms"]["value"]) < int(found["retention.ms"]["value"])


def test_replication_beyond_the_brokers_is_refused(kafka: KafkaSettings) -> None:
    with pytest.raises(SettingsError, match="job-commands"):
        admin.create(kafka, TopicSettings(partitions=P, inbox_partitions=INBOX, replication=99))


def test_due_topic_is_made_once_and_its_share_group_starts_at_the_oldest_record(kafka: KafkaSettings) -> None:
    assert admin.create_due(kafka, SETTINGS, "mail")
    assert not admin.create_due(kafka, SETTINGS, "mail")
    name = kafka.topic("executions-due.mail")
    client = KafkaAdminClient(**kafka.kafka_python())
    resource = ConfigResource(ConfigResourceType.GROUP, name, ["share.auto.offset.reset"])
    found = client.describe_configs([resource], config_filter="all")["group"][name]
    (topic,) = client.describe_topics([name])
    client.close()

    assert found["share.auto.offset.reset"]["value"] == "earliest"
    assert len(topic["partitions"]) == 1


def test_due_topic_that_is_not_as_declared_is_found_and_refused(kafka: KafkaSettings) -> None:
    admin.create(kafka, SETTINGS)
    make_topic(kafka, "executions-due.mail", 2)
    (finding, *_) = [one for one in findings_of(kafka, "executions-due.mail") if one.setting == "partitions"]
    assert (finding.found, finding.wanted) == ("2", "1")
    with pytest.raises(SettingsError, match="make it anew"):
        admin.create_due(kafka, SETTINGS, "mail")


async def test_due_topic_that_the_broker_refuses_is_a_problem_of_the_api(kafka: KafkaSettings) -> None:
    await KafkaDueTopics(kafka, SETTINGS).make("a.b")
    with pytest.raises(Refused, match="invalid"):  # the broker takes a.b and a_b for one
        await KafkaDueTopics(kafka, SETTINGS).make("a_b")


def topics_command(kafka: KafkaSettings, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {
        **os.environ,
        "MINUTEBOOK_KAFKA_BOOTSTRAP_SERVERS": kafka.bootstrap_servers,
        "MINUTEBOOK_KAFKA_TOPIC_PREFIX": kafka.topic_prefix,
        "MINUTEBOOK_TOPICS_INBOX_PARTITIONS": str(INBOX),
    }
    command = [sys.executable, "-m", "minutebook.cli", "topics", *arguments]
    return subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, check=False)


def test_command_creates_checks_and_names_the_remedy(kafka: KafkaSettings) -> None:
    before = topics_command(kafka, "check", "--partitions", str(P))
    made = topics_command(kafka, "create", "--partitions", str(P), "--open", "mail")
    after = topics_command(kafka, "check", "--partitions", str(P))
    other = topics_command(kafka, "create", "--partitions", str(P + 1))

    assert (before.returncode, made.returncode, after.returncode, other.returncode) == (1, 0, 0, 2)
    assert "minutebook topics create" in before.stdout
    assert kafka.topic(topics.EVENTS) in made.stdout.split()
    assert kafka.topic("executions-due.mail") in made.stdout.split()
    assert f"MINUTEBOOK_TOPICS_PARTITIONS={P}" in other.stderr


def test_command_says_that_kafka_does_not_answer() -> None:
    found = topics_command(KafkaSettings(bootstrap_servers="127.0.0.1:1"), "check")

    assert found.returncode == 5
    assert "127.0.0.1:1" in found.stderr
