"""Batches of commands, byte for byte as fastavro writes them, but faster.

Jobs of a batch have most in common: all but their ids and payloads. What several have alike is encoded once. Other commands
are left to fastavro, one by one.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable
from functools import cache, lru_cache
from operator import attrgetter
from typing import Any, Final

from fastavro import parse_schema, schemaless_writer

from minutebook.domain.commands import Command, SubmitJob
from minutebook.wire.numbers import as_varint
from minutebook.wire.schemas import newest

_OWN: Final = ("job_id", "command_id", "payload")
"""Fields that each job has for itself."""
_RARE: Final[dict[str, Any]] = {"policy": None, "timing": None, "tags": []}
"""Fields that few jobs have, as they are where a job has none. Their values are no keys of a cache."""
_END: Final = b"\0"
"""What follows the last block of an array."""

_size = lru_cache(maxsize=1_024)(as_varint)


class _Shared:
    """A stretch of fields that many jobs have alike."""

    def __init__(self, fields: list[Any]) -> None:
        self._names = [field["name"] for field in fields if field["name"] not in _RARE]
        self._schema = parse_schema(
            {"type": "record", "name": f"Shared{self._names[0]}", "fields": fields}, {}
        )
        self._get: Callable[[SubmitJob], Any] = attrgetter(*self._names)
        self._encoded = lru_cache(maxsize=1_024)(self._encode)

    def of(self, job: SubmitJob) -> bytes:
        """The fields of `job`."""
        return self._encoded(self._get(job))

    def _encode(self, values: Any) -> bytes:
        out = io.BytesIO()
        held = values if len(self._names) > 1 else (values,)
        schemaless_writer(out, self._schema, _RARE | dict(zip(self._names, held, strict=True)))
        return out.getvalue()


class _Jobs:
    """The stretches of `SubmitJob` around the fields that each job has for itself."""

    def __init__(self) -> None:
        branches = newest()["CommandBatch"].parsed["fields"][0]["type"]["items"]
        names = [branch["name"].rpartition(".")[2] for branch in branches]
        number = names.index(SubmitJob.__name__)
        self._branch = as_varint(number)
        stretches: list[list[Any]] = [[]]
        for field in branches[number]["fields"]:
            if field["name"] in _OWN:
                stretches.append([])
            else:
                stretches[-1].append(field)
        self._head, none, self._middle, self._tail = (
            _Shared(fields) if fields else None for fields in stretches
        )
        assert none is None, "job_id and command_id are neighbours"

    def encoded(self, job: SubmitJob) -> Iterable[bytes]:
        """`job`, which has none of what is rare, as an item of a batch."""
        assert self._head is not None
        assert self._middle is not None
        assert self._tail is not None
        job_id, command_id = job.job_id.encode(), job.command_id.encode()
        return (
            self._branch,
            self._head.of(job),
            _size(len(job_id)),
            job_id,
            _size(len(command_id)),
            command_id,
            self._middle.of(job),
            _size(len(job.payload)),
            job.payload,
            self._tail.of(job),
        )


@cache
def _jobs() -> _Jobs:
    return _Jobs()


@cache
def _union() -> Any:
    """The schema of an item."""
    return newest()["CommandBatch"].parsed["fields"][0]["type"]["items"]


def encode_batch(commands: list[Command], named: Callable[[Command], tuple[str, Any]]) -> bytes:
    """A `CommandBatch` with its ten-byte header. `named`: a command as a branch of a union of records."""
    parts = [newest()["CommandBatch"].header]
    if commands:
        parts.append(as_varint(len(commands)))
    jobs = _jobs()
    for command in commands:
        if isinstance(command, SubmitJob) and not (command.policy or command.timing or command.tags):
            parts += jobs.encoded(command)
        else:
            out = io.BytesIO()
            schemaless_writer(out, _union(), named(command))
            parts.append(out.getvalue())
    parts.append(_END)
    return b"".join(parts)
