"""Runs in the installation in memory, by the owner's own rules: what is due is granted to one worker, or queued."""

from __future__ import annotations

from typing import Any

from minutebook.domain import events as facts
from minutebook.domain import keys
from minutebook.domain.due import due_granted_event, due_of, queued_event
from minutebook.domain.events import Event
from minutebook.domain.fold import fold
from minutebook.domain.operation_steps import advance
from minutebook.domain.operations import count_of, counted
from minutebook.domain.records import Failed, Progress, Report, Succeeded
from minutebook.domain.results import decide_report
from minutebook.ids import job_of
from tests.api.memory import Installation

SESSION = "w.1"


def come(world: Installation, *, is_granted: bool = True) -> None:
    """Whatever is due by now, in every partition, is granted or queued; what has expired is said."""
    for partition, book in enumerate(world.log.books):
        now = world.clock.now()
        bound = keys.index_bound(now + 1)
        found = [due_of(book, key, now) for key, _ in book.index.scan(b"") if key < bound]
        events: list[Event] = [event for _, said in found for event in said]
        rows = [row for some, _ in found for row in some]
        if rows and is_granted:
            events.append(facts.SessionStarted(SESSION, "worker-1", ["t"], 10_000, 3_000))
            events.append(due_granted_event(rows, [SESSION] * len(rows)))
        elif rows:
            events.append(queued_event(rows))
        if events:
            world.log.append(partition, events)


def fail(
    world: Installation, name: str, error_type: str = "E", *, is_permanent: bool = True, tenant: str = "acme"
) -> None:
    """The running attempt fails; for good where it is permanent."""
    failed = Failed(tenant, name, _token(world, tenant, name), error_type, "why", is_permanent)
    _report(world, tenant, name, failed=[failed])


def succeed(world: Installation, name: str, result: bytes = b"", *, tenant: str = "acme") -> None:
    """The running attempt succeeds."""
    results = [result] if result else []
    done = Succeeded([tenant], [0], [name], [_token(world, tenant, name)], [1], [1], results)
    _report(world, tenant, name, succeeded=done)


def tell(world: Installation, name: str, fraction: float, text: str, *, tenant: str = "acme") -> None:
    """The running attempt tells how far it is."""
    _report(
        world, tenant, name, progress=[Progress(tenant, name, _token(world, tenant, name), fraction, text)]
    )


def _token(world: Installation, tenant: str, name: str) -> int:
    book = world.log.books[world.services.view.partition_of_job(tenant, job_of(name))]
    running = book.running.get(keys.execution_row(tenant, name))
    assert running is not None, f"{name} does not run"
    return running.token


def _report(world: Installation, tenant: str, name: str, **said: Any) -> None:
    partition = world.services.view.partition_of_job(tenant, job_of(name))
    book = world.log.books[partition]
    for events in decide_report(book, Report(SESSION, 1, **said), world.clock.now(), {}):
        world.log.append(partition, events)


def operate(world: Installation) -> None:
    """Every partition takes the next step of its shares of operations, and its home hears of it."""
    for partition, book in enumerate(world.log.books):
        for _, share in list(book.shares.scan(b"")):
            events: list[Event] = []
            for event in advance(book, share, world.clock.now()):
                fold(book, event, 0, world.clock.now())
                events.append(event)
            book.discard()
            if events:
                world.log.append(partition, events)
            told = [event for event in events if isinstance(event, facts.OperationAdvanced)]
            for event in told:
                if event.is_reported and event.home != partition:
                    home = world.log.books[event.home]
                    world.log.append(event.home, counted(home, partition, count_of(event)))


def operate_to_the_end(world: Installation) -> None:
    """Until no partition has a share left; time passes."""
    while any(list(book.shares.scan(b"")) for book in world.log.books):
        world.clock.advance(100)
        operate(world)
