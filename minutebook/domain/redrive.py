"""A dead execution runs again: the same id and history, a new generation, with an edited payload if wished."""

from __future__ import annotations

import hashlib

from minutebook.domain import events as facts
from minutebook.domain import keys
from minutebook.domain.book import Book
from minutebook.domain.commands import REASON_CHARS_MAX, RedriveExecution
from minutebook.domain.discard import check_not_discarded, dead_one
from minutebook.domain.events import Event
from minutebook.domain.refusal import Refusal
from minutebook.domain.state import Job, Spec
from minutebook.domain.submit import check_payload


def redrive(book: Book, job: Job, command: RedriveExecution, stamp: int) -> Event:
    """The event of a redrive. Raises Refusal where the execution is not dead, was so too long ago, or was discarded."""
    key = keys.execution_row(command.tenant, command.execution)
    dead = dead_one(book, key, "redriven", "submit a new job for it")
    check_not_discarded(dead)
    payload = shelved(book, key, dead.version).payload
    is_edited = command.payload is not None and command.payload != payload
    if command.payload is not None:
        check_payload(command.payload)
    return facts.ExecutionRedriven(
        tenant=command.tenant,
        job_id=command.job_id,
        command_id=command.command_id,
        actor=command.actor,
        reason=command.reason[:REASON_CHARS_MAX],
        accepted_at=stamp,
        execution=command.execution,
        attempt=dead.attempt + 1,
        generation=dead.generation + 1,
        version=job.last_version + 1 if is_edited else dead.version,
        is_edited=is_edited,
        payload=command.payload if is_edited and command.payload is not None else b"",
        payload_sha256=hashlib.sha256(command.payload if is_edited and command.payload else payload).digest(),
    )


def shelved(book: Book, key: bytes, version: int) -> Spec:
    """The version that a dead execution ran with. Raises Refusal once its day is forgotten."""
    spec = book.remembered(book.shelf, keys.spec_row(keys.job_of_execution(key), version))
    if spec is None:
        raise Refusal("not_dead", "execution", "dead for more than 8 days: submit a new job for it")
    return spec
