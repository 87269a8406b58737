"""The settings of the page make the configurations of all Kafka clients."""

from __future__ import annotations

import os
from pathlib import Path

import faust
import httpx
import pytest
from aiokafka import AIOKafkaConsumer

from minutebook.environment import require_known_names
from minutebook.log.kafka import producer
from minutebook.log.settings import KafkaSettings
from streams.app import _credentials
from tests.docs.pages import ROOT, blocks

PAGE = ROOT / "docs" / "how-to" / "secure-kafka.md"
USER = {
    "sasl_mechanism": "SCRAM-SHA-512",
    "sasl_plain_username": "minutebook",
    "sasl_plain_password": "hidden",
}


@pytest.fixture
def kafka(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> KafkaSettings:
    """As the page says, but for the files."""
    (block,) = blocks(PAGE, "ini")
    (tmp_path / "password").write_text("hidden\n")
    files = {
        "/run/secrets/kafka-password": str(tmp_path / "password"),
        "/etc/minutebook/ca.pem": str(Path(httpx.__file__).parents[1] / "certifi" / "cacert.pem"),
    }
    for line in block.text.splitlines():
        name, _, value = line.partition("=")
        monkeypatch.setenv(name, files.get(value, value))
    require_known_names(os.environ, KafkaSettings)
    return KafkaSettings()


async def test_asyncio_clients_take_them(kafka: KafkaSettings) -> None:
    made = kafka.aiokafka()
    context = made.pop("ssl_context")
    assert context.check_hostname
    assert made == USER | {
        "bootstrap_servers": ["kafka-1.example:9093", "kafka-2.example:9093", "kafka-3.example:9093"],
        "security_protocol": "SASL_SSL",
    }
    for client in (producer(kafka), AIOKafkaConsumer(**kafka.aiokafka())):
        await client.stop()


def test_the_administrators_client_takes_the_same(kafka: KafkaSettings) -> None:
    made = kafka.kafka_python()
    assert {name: made[name] for name in USER} == USER
    assert made["ssl_context"].check_hostname


def test_librdkafka_takes_them(kafka: KafkaSettings) -> None:
    made = kafka.confluent()
    assert made["security.protocol"] == "SASL_SSL"
    assert (made["sasl.mechanism"], made["sasl.username"], made["sasl.password"]) == tuple(USER.values())
    assert made["ssl.ca.location"] == kafka.ssl_ca_file


def test_owners_take_them(kafka: KafkaSettings) -> None:
    made = _credentials(kafka)
    assert isinstance(made, faust.SASLCredentials)
    assert (str(made.mechanism.value), made.username, made.password) == tuple(USER.values())
    assert made.protocol.value == "SASL_SSL"
