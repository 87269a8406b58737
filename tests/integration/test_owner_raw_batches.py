"""Batches that no client of ours would make: what cannot be read is rejected, everything else goes on."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from minutebook.domain import events as facts
from minutebook.domain.records import FullPulse, Pulse, QueueOffer, Report
from minutebook.log.port import RawRecord
from minutebook.wire import codec, topics
from tests.crash.raw_worker import RawWorker, succeeded
from tests.crash.stack import Stack, home_of, job, key_of, now_ms
from tests.integration.answered import (
    assert_rejected_once,
    await_accepted,
    later_job,
    send_good,
)
from tests.simulation.raw_batches import GZIP, LZ4, SNAPPY, ZSTD, Raw, batch, bomb, produce

pytestmark = [pytest.mark.kafka, pytest.mark.slow]
GROWTH_BYTES_MAX = 256 << 20


@pytest.fixture(scope="module")
def stack(broker: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """One owner for all tests of this module."""
    made = Stack(broker.bootstrap_servers, tmp_path_factory.mktemp("owners"))
    owner = made.owner("o1")
    made.await_ready(owner)
    yield made
    assert owner.is_running, made.story()
    assert not owner.exits
    made.close()


def put(stack: Stack, topic: str, partition: int, data: bytes) -> int:
    return asyncio.run(produce(stack.kafka, topic, partition, data))


def peak_bytes(pid: int) -> int:
    """The most memory that a process has had so far."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) << 10


@pytest.mark.parametrize(
    ("topic", "value_bytes", "count"),
    [
        pytest.param(topics.COMMANDS, 1 << 30, 1, id="K17"),
        pytest.param(topics.COMMANDS, 2 << 20, 64, id="of many records"),
        pytest.param(topics.REPORTS, 64 << 20, 1, id="as a report"),
        pytest.param(topics.MAIL, 64 << 20, 1, id="as mail"),
    ],
)
def test_compression_bomb_is_rejected_in_little_memory(
    stack: Stack, topic: str, value_bytes: int, count: int
) -> None:
    (owner,) = stack.processes
    before = peak_bytes(owner.pid)
    data = bomb(value_bytes, count)
    assert len(data) < 2 << 20
    first = put(stack, topic, 1, data)
    for partition in (0, 2, 3, 1):
        send_good(stack, partition)

    for offset in range(first, first + count, max(1, count - 1)):
        reason = assert_rejected_once(stack, topic, RawRecord(offset, 0, None, b""), 1)
        assert "expands beyond" in reason
    assert peak_bytes(owner.pid) - before < GROWTH_BYTES_MAX


@pytest.mark.parametrize("codec_number", [0, GZIP, SNAPPY, LZ4, ZSTD])
@pytest.mark.row("K16")
def test_commands_with_header_names_of_any_bytes_are_applied(stack: Stack, codec_number: int) -> None:
    odd = [(b"\xff\xfe\x1b[31mraw%d" % number, b"\xff") for number in range(200)]
    commands = [later_job(2) for _ in range(3)]
    records = [
        Raw(codec.encode(one), key_of(one).encode(), headers)
        for one, headers in zip(commands, [[], odd, [(b"plain", None)]], strict=True)
    ]
    put(stack, topics.COMMANDS, 2, batch(records, codec_number))

    for command in commands:
        await_accepted(stack, command)
    send_good(stack, 2)
    (owner,) = stack.processes
    assert not owner.said("[31mraw")


@pytest.mark.parametrize("stamp", [-1, 0, 32_472_144_000_000])
@pytest.mark.row("K12")
def test_pulse_without_a_timestamp_counts_by_the_brokers(stack: Stack, stamp: int) -> None:
    command = job(run_at=now_ms(), task=f"t{now_ms()}")
    execution = f"{command.job_id}:{command.run_at}"
    place = home_of(command)
    stack.send(command)
    worker = RawWorker(stack, command.task)
    full = FullPulse(worker.worker, "0", [command.task], [QueueOffer("default")], 60_000, 30_000, [])
    pulse = codec.encode(Report(worker.session, 1, Pulse(1, -1), full))
    put(stack, topics.REPORTS, place, batch([Raw(pulse)], stamp=stamp))

    token = worker.await_grant(execution)
    done = Report(worker.session, 2, Pulse(0, token), None, succeeded(execution, token))
    put(stack, topics.REPORTS, place, batch([Raw(codec.encode(done))], stamp=stamp))
    worker.sequence = 2
    stack.until(
        "succeeded",
        lambda log: any(execution in e.executions for e in log.events(facts.AttemptsSucceeded)),
    )
