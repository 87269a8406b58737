"""`minutebook doctor` on a real broker: all well, then each fault planted in the cluster."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaAdminClient, KafkaProducer
from kafka.admin import ConfigResource, ConfigResourceType

from minutebook.log import admin
from minutebook.log.admin import TopicSettings
from minutebook.log.settings import KafkaSettings
from minutebook.wire import topics
from tests.integration.test_topics_admin import kafka as kafka  # the fixture

pytestmark = pytest.mark.kafka
ROOT = Path(__file__).parents[2]
SETTINGS = TopicSettings(partitions=2, inbox_partitions=2, replication=1)


def doctor(kafka: KafkaSettings) -> Iterator[tuple[str, str, str]]:
    environment = {
        "PATH": os.environ["PATH"],
        "MINUTEBOOK_KAFKA_BOOTSTRAP_SERVERS": kafka.bootstrap_servers,
        "MINUTEBOOK_KAFKA_TOPIC_PREFIX": kafka.topic_prefix,
        "MINUTEBOOK_TOPICS_PARTITIONS": "2",
        "MINUTEBOOK_TOPICS_INBOX_PARTITIONS": "2",
    }
    command = [
        sys.executable,
        "-m",
        "minutebook.cli",
        "doctor",
        "--no-api",
        "--group",
        kafka.topic("g"),
        "-o",
        "json",
    ]
    done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, check=False)
    found = json.loads(done.stdout)
    assert done.returncode == any(one["state"] == "fail" for one in found), done.stderr
    for one in found:
        assert bool(one["remedy"]) == (one["state"] != "ok")
        yield one["check"], one["state"], one["found"]


def states(kafka: KafkaSettings, *checks: str) -> dict[str, str]:
    return {check: state for check, state, _ in doctor(kafka) if check in checks}


def test_faults_of_a_cluster_are_found(kafka: KafkaSettings) -> None:
    before = list(doctor(kafka))
    assert ("topics", "fail") in {(check, state) for check, state, _ in before}
    assert {(check, state) for check, state, _ in before} >= {
        ("broker", "ok"),
        ("features", "ok"),
        ("clock", "ok"),
        ("owners", "fail"),
    }
    admin.create(kafka, SETTINGS)
    admin.create_due(kafka, SETTINGS, "mail")
    well = states(kafka, "topics", "replicas", "groups", "lag", "schemas", "clock")
    assert well == dict.fromkeys(("topics", "replicas", "groups", "lag", "schemas", "clock"), "ok")

    plant(kafka)
    ill = states(kafka, "topics", "groups", "lag", "schemas")
    assert ill == {"topics": "fail", "groups": "warn", "lag": "warn", "schemas": "fail"}


def plant(kafka: KafkaSettings) -> None:
    """A topic with another retention, a share group that starts late, a thousand commands of a strange form."""
    client = KafkaAdminClient(**kafka.kafka_python())
    resources: list[Any] = [
        ConfigResource(ConfigResourceType.TOPIC, kafka.topic(topics.EVENTS), {"retention.ms": "1000"}),
        ConfigResource(
            ConfigResourceType.GROUP, kafka.topic(topics.DUE + "mail"), {"share.auto.offset.reset": "latest"}
        ),
    ]
    client.alter_configs(resources)
    client.close()
    producer = KafkaProducer(**kafka.kafka_python())
    for _ in range(1_000):
        producer.send(kafka.topic(topics.COMMANDS), b"{}", partition=0)
    producer.flush()
    producer.close()


def test_nothing_is_left_of_a_look(kafka: KafkaSettings) -> None:
    client = KafkaAdminClient(**kafka.kafka_python())
    list(doctor(kafka))
    assert not [name for name in client.list_topics() if name.startswith(kafka.topic("doctor-"))]
    client.close()
