"""The embedded broker against a real Kafka: life, death, and what it says when it cannot start."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import ShareConsumer
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import NewTopic

from minutebook.embedded import (
    Broker,
    BrokerRunningError,
    BrokerStartError,
    JarDamagedError,
    JarFetchError,
    PortTakenError,
    jars,
)

pytestmark = pytest.mark.kafka
TOPIC = "notes"


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A broker of this module's own, since some tests end it."""
    with Broker(tmp_path_factory.mktemp("own-kafka")) as started:
        create_topic(started)
        yield started


def create_topic(broker: Broker) -> None:
    admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers)
    admin.create_topics([NewTopic(TOPIC, 1, 1)])
    admin.close()


def append(broker: Broker, *values: bytes) -> None:
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers, acks="all")
    for value in values:
        producer.send(TOPIC, value).get(timeout=20)
    producer.close()


def read_all(broker: Broker) -> list[bytes]:
    consumer = KafkaConsumer(bootstrap_servers=broker.bootstrap_servers, auto_offset_reset="earliest")
    partition = TopicPartition(TOPIC, 0)
    consumer.assign([partition])
    consumer.seek_to_beginning(partition)
    end = consumer.end_offsets([partition])[partition]
    values: list[bytes] = []
    while consumer.position(partition) < end:
        for records in consumer.poll(timeout_ms=500).values():
            values += [record.value for record in records]
    consumer.close()
    return values


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return False
    return state != "Z"


def eventually(condition: Callable[[], bool], within_s: float = 60) -> bool:
    deadline = time.monotonic() + within_s
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.05)
    return condition()


def test_broker_keeps_records_through_stop_and_kill(running: Broker) -> None:
    address = running.bootstrap_servers
    append(running, b"before the stop")
    running.stop()
    running.start()
    append(running, b"before the kill")
    killed = running.pid
    running.kill()
    assert not alive(killed)
    running.start()
    append(running, b"after it")

    assert running.bootstrap_servers == address
    assert read_all(running) == [b"before the stop", b"before the kill", b"after it"]


def test_start_of_a_running_broker_changes_nothing(running: Broker) -> None:
    pid = running.pid
    running.start()
    assert running.pid == pid


def test_second_broker_on_a_folder_is_refused(running: Broker) -> None:
    second = Broker(running.log_file.parent)
    with pytest.raises(BrokerRunningError, match=rf"held by process {os.getpid()}\..*another data folder"):
        second.start()
    assert alive(running.pid)


def test_share_group_takes_what_was_queued_before_it(running: Broker) -> None:
    append(running, b"for whoever comes")
    admin = AdminClient({"bootstrap.servers": running.bootstrap_servers})
    earliest = ConfigEntry("share.auto.offset.reset", "earliest", incremental_operation=AlterConfigOpType.SET)
    group = ConfigResource(ResourceType.GROUP, "sharers", incremental_configs=[earliest])
    for done in admin.incremental_alter_configs([group]).values():
        done.result(20)
    consumer = ShareConsumer({"bootstrap.servers": running.bootstrap_servers, "group.id": "sharers"})
    consumer.subscribe([TOPIC])
    try:
        assert eventually(lambda: any(one.value() == b"for whoever comes" for one in consumer.poll(1.0)))
    finally:
        consumer.close()


def test_start_from_a_thread_that_ends_leaves_the_broker_alive(tmp_path: Path) -> None:
    broker = Broker(tmp_path)
    thread = threading.Thread(target=broker.start)
    thread.start()
    thread.join()
    try:
        assert broker.running
        create_topic(broker)
        assert alive(broker.pid)
    finally:
        broker.stop()


def test_broker_dies_with_its_parent_when_that_is_killed(tmp_path: Path) -> None:
    script = (
        "import sys, time; from pathlib import Path; from minutebook.embedded import Broker\n"
        "broker = Broker(Path(sys.argv[1])); broker.start(); print(broker.pid, flush=True); time.sleep(600)"
    )
    root = Path(__file__).parents[2]
    with subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path)], stdout=subprocess.PIPE, text=True, cwd=root
    ) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        assert alive(pid)
        assert os.getsid(pid) != os.getsid(parent.pid), "Ctrl-C of the parent's terminal would reach it"
        parent.send_signal(signal.SIGKILL)
        parent.wait()
    assert eventually(lambda: not alive(pid))
    with Broker(tmp_path) as again:
        assert again.running


def test_damaged_file_is_refused_before_the_start(tmp_path: Path) -> None:
    cache = tmp_path / "jars"
    shutil.copytree(jars.default_cache(), cache, ignore=shutil.ignore_patterns(".*", "*.aot"))
    damaged = cache / jars.read_lock()[0].file_name
    content = bytearray(damaged.read_bytes())
    content[100] ^= 1
    damaged.write_bytes(content)
    broker = Broker(tmp_path / "data", jar_cache=cache)
    with pytest.raises(
        JarDamagedError, match=r"not the pinned .*Delete the folder .* run `make setup` again"
    ):
        broker.start()
    assert not broker.running


def test_download_that_fails_names_the_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("NO_PROXY", "")
    monkeypatch.setenv("no_proxy", "")
    lock = tmp_path / "one.lock"
    lock.write_text(f"org.slf4j:slf4j-api:2.0.20 1 {'0' * 64}\n")
    with pytest.raises(JarFetchError, match=r"slf4j-api.*Check the network.*`make setup` again"):
        jars.fetch(tmp_path / "cache", lock_file=lock)


def test_taken_port_is_named(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(PortTakenError, match=f"Port {port} .* in use .* choose another port"):
            Broker(tmp_path, port).start()


def test_failed_start_shows_the_log_and_frees_the_folder(tmp_path: Path) -> None:
    broken = Broker(tmp_path, jvm_options=["-XX:NoSuchOption"])
    with pytest.raises(
        BrokerStartError, match=r"ended with code 1(.|\n)*Last lines of .*kafka\.log:\n(.|\n)*NoSuchOption"
    ):
        broken.start()
    with Broker(tmp_path) as repaired:
        assert repaired.running


def test_pid_and_address_before_the_start_are_refused(tmp_path: Path) -> None:
    broker = Broker(tmp_path)
    with pytest.raises(BrokerStartError, match=r"call start\(\)"):
        _ = broker.pid
    with pytest.raises(BrokerStartError, match=r"call start\(\)"):
        _ = broker.bootstrap_servers
