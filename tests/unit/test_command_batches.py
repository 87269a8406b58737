"""Batches of commands are written as fastavro writes them, whatever their jobs have in common."""

from __future__ import annotations

import io

from fastavro import schemaless_writer
from hypothesis import given, settings
from hypothesis import strategies as st

from minutebook.domain.commands import CancelJob, Command, SubmitJob
from minutebook.domain.policy import Policy
from minutebook.domain.timing import Timing
from minutebook.wire import codec, schemas
from minutebook.wire.codec import CommandBatch, decode, encode

NAMES = st.sampled_from(["a", "b" * 128, "job-1"])
MAYBE = st.one_of(st.none(), st.integers(-(1 << 62), 1 << 62))


@st.composite
def submissions(draw: st.DrawFn) -> SubmitJob:
    return SubmitJob(
        tenant=draw(NAMES),
        job_id=draw(NAMES),
        command_id=draw(NAMES),
        issued_at=draw(st.integers(0, 1 << 50)),
        actor=draw(NAMES),
        task=draw(NAMES),
        payload=draw(st.binary(max_size=2_000)),
        queue=draw(NAMES),
        run_at=draw(MAYBE),
        delay_ms=draw(MAYBE),
        cron=draw(st.one_of(st.none(), st.text(max_size=300))),
        zone=draw(st.sampled_from(["UTC", "Europe/Berlin"])),
        is_keyed=draw(st.booleans()),
        priority=draw(st.integers(0, 9)),
        notify=draw(st.text(max_size=200)),
        policy=draw(st.sampled_from([None, Policy(max_attempts=3, non_retryable=["E"])])),
        timing=draw(st.sampled_from([None, Timing(jitter_ms=5)])),
        tags=draw(st.lists(NAMES, max_size=2, unique=True)),
    )


CANCEL = CancelJob(tenant="a", job_id="b", command_id="c", issued_at=1, actor="key", reason="why")
BATCHES: st.SearchStrategy[list[Command]] = st.lists(st.one_of(submissions(), st.just(CANCEL)), max_size=8)


@given(BATCHES)
@settings(max_examples=150, deadline=None)
def test_bytes_are_those_of_fastavro(commands: list[Command]) -> None:
    schema = schemas.newest()["CommandBatch"]
    out = io.BytesIO()
    out.write(schema.header)
    schemaless_writer(out, schema.parsed, {"commands": [codec.named(command) for command in commands]})
    assert encode(CommandBatch(commands)) == out.getvalue()
    assert decode(out.getvalue()) == CommandBatch(commands)
