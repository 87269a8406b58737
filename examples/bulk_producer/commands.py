"""Jobs to records of `job-commands`: batches of one partition each, by the schema files; no line of minutebook is imported.

A job is a dict with the fields of `submit-job`; `job_id` and `task` are required, and `command_id` must be the same when the
job is sent again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from examples.open_queue.records import Records, partition_of

COMMANDS_MAX = 500
"""Commands of a batch, at most."""
BYTES_MAX = 900_000
"""Bytes of payloads after which a batch goes out; a record ends at 1 MiB."""
OVERHEAD_BYTES = 1_000
"""What a command takes beside its payload, about."""


class Record(NamedTuple):
    """A record for `job-commands`."""

    partition: int
    key: bytes
    value: bytes


def batches(
    jobs: Iterable[dict[str, Any]], tenant: str, partitions: int, now_ms: int, records: Records
) -> Iterator[Record]:
    """`jobs`, which may be endless, as full batches of one partition; in each partition in their order.

    At most one batch for each partition is held meanwhile.
    """
    lanes: dict[int, list[dict[str, Any]]] = defaultdict(list)
    sizes: dict[int, int] = defaultdict(int)
    for job in jobs:
        lane = partition_of(f"{tenant}/{job['job_id']}", partitions)
        size = OVERHEAD_BYTES + len(job.get("payload", b""))
        if lanes[lane] and (len(lanes[lane]) == COMMANDS_MAX or sizes[lane] + size > BYTES_MAX):
            yield _batch(lane, lanes.pop(lane), records)
            sizes[lane] = 0
        lanes[lane].append({"tenant": tenant, "issued_at": now_ms, "actor": "bulk", **job})
        sizes[lane] += size
    for lane, rest in lanes.items():
        yield _batch(lane, rest, records)


def _batch(partition: int, commands: list[dict[str, Any]], records: Records) -> Record:
    """One record, under the key of any of its commands."""
    key = f"{commands[0]['tenant']}/{commands[0]['job_id']}".encode()
    datum = {"commands": [("minutebook.SubmitJob", command) for command in commands]}
    return Record(partition, key, records.encode("CommandBatch", datum))
