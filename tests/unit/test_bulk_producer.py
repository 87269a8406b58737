"""The recipe for producers of their own: what it writes is what the real owner takes, by the schema files alone."""

from __future__ import annotations

import ast
from itertools import count, islice
from pathlib import Path

from examples.bulk_producer.__main__ import jobs
from examples.bulk_producer.commands import COMMANDS_MAX, batches
from examples.open_queue.records import Records
from minutebook.domain.commands import SubmitJob
from minutebook.domain.events import JobSubmitted
from minutebook.ids import job_key
from minutebook.wire import topics
from minutebook.wire.codec import BATCH_BYTES_MAX, CommandBatch, decode
from tests.simulation.desk import T0, Desk

PARTITIONS = 8
RECORDS = Records()
FOLDER = Path(__file__).parents[2] / "examples" / "bulk_producer"


def commands(value: bytes) -> list[SubmitJob]:
    batch = decode(value)
    assert isinstance(batch, CommandBatch)
    return [command for command in batch.commands if isinstance(command, SubmitJob)]


def test_every_job_is_in_a_batch_of_its_partition() -> None:
    made = list(batches(jobs(5_000, "t", T0), "acme", PARTITIONS, T0, RECORDS))
    found = []
    for record in made:
        assert len(record.value) < BATCH_BYTES_MAX
        for command in commands(record.value):
            assert topics.partition_of(job_key("acme", command.job_id), PARTITIONS) == record.partition
            found.append(command.job_id)
        assert record.key.decode() in {job_key("acme", name) for name in found}
    assert sorted(found) == sorted(f"bulk-{number}" for number in range(5_000))
    assert sum(len(commands(record.value)) == COMMANDS_MAX for record in made) >= PARTITIONS - 2


def test_large_payloads_end_a_batch_and_an_endless_source_is_no_trouble() -> None:
    endless = (
        {"job_id": f"a-{number}", "command_id": f"c-{number}", "task": "t", "payload": b"1" * 200_000}
        for number in count()
    )
    for record in islice(batches(endless, "acme", 1, T0, RECORDS), 3):
        assert len(commands(record.value)) == 4
        assert len(record.value) < BATCH_BYTES_MAX


def test_owner_takes_what_is_written_and_a_repeat_changes_nothing() -> None:
    desk = Desk()
    (record,) = batches(jobs(3, "t", T0 + 60_000), "acme", 1, T0, RECORDS)
    desk.inputs[topics.COMMANDS].add(record.value, T0, record.key)
    first = [event for event in desk.cycle() if isinstance(event, JobSubmitted)]
    assert [event.job_id for event in first] == ["bulk-0", "bulk-1", "bulk-2"]
    desk.inputs[topics.COMMANDS].add(record.value, T0, record.key)
    assert [event for event in desk.cycle() if isinstance(event, JobSubmitted)] == []


def test_recipe_imports_nothing_of_ours() -> None:
    for path in FOLDER.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            modules = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            modules += [name.name for name in node.names] if isinstance(node, ast.Import) else []
            assert not any(module.split(".")[0] == "minutebook" for module in modules), path
