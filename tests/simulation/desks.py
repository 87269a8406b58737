"""Owners of several partitions in memory, on one clock, with mail between them. No Kafka, no waiting."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from minutebook import ids
from minutebook.domain import events as facts
from minutebook.domain.commands import CancelOperation, StartOperation
from minutebook.domain.events import Event
from minutebook.domain.operation import OperationFilter
from minutebook.domain.outputs import ToPartition, outputs
from minutebook.log.draft import Draft
from minutebook.wire import codec, topics
from minutebook.wire.frames import decode_frame
from tests.simulation.desk import T0, Desk

TENANT = "acme"
DUE_CYCLES = 3
"""Cycles after which what is due and finds no worker is on record as queued."""


class Desks:
    """`partitions` desks; `cycle` goes round all of them."""

    def __init__(self, partitions: int = 3) -> None:
        self.desks = [Desk(number, partitions) for number in range(partitions)]

    @property
    def now(self) -> int:
        return self.desks[0].now

    def desk_of(self, key: str) -> Desk:
        """The owner of what has that key."""
        return self.desks[topics.partition_of(key, len(self.desks))]

    # -- what comes in

    def know_queue(self, name: str) -> None:
        """A queue that everybody may use is known everywhere."""
        for desk in self.desks:
            draft = Draft(desk.book, desk.reader.position + 1, desk.now)
            draft.add(facts.QueueCopied(name, 1, False, []))
            desk.keep(draft, desk.core)

    def submit(self, *jobs: str, tenant: str = TENANT, **fields: object) -> None:
        """Jobs that are due now."""
        for job_id in jobs:
            self.desk_of(ids.job_key(tenant, job_id)).submit(job_id, tenant=tenant, **fields)

    def give_up(
        self, name: str, *, error_type: str = "E", cause: str = "attempts", tenant: str = TENANT
    ) -> None:
        """A queued execution is dead from now on."""
        desk = self.desk_of(ids.job_key(tenant, ids.job_of(name)))
        row = desk.book.execution(f"{tenant}\0{name}".encode())
        assert row is not None
        assert row.status == "queued"
        draft = Draft(desk.book, desk.reader.position + 1, desk.now)
        draft.add(facts.AttemptsLost([tenant], "session_died", [0], [name], [-1], [""], [0], [False]))
        where = (row.version, row.generation, row.attempt, row.scheduled_at, row.due_at, desk.now)
        draft.add(facts.ExecutionDead(tenant, name, *where, cause, error_type, "no"))
        desk.keep(draft, desk.core)

    def dead(self, *jobs: str, tenant: str = TENANT, **why: str) -> list[str]:
        """Jobs whose one execution is given up now; their executions."""
        fields = {name: why.pop(name) for name in ("task", "queue", "limit") if name in why}
        self.submit(*jobs, tenant=tenant, **fields)
        at = self.now
        for _ in range(DUE_CYCLES):
            self.cycle()
        names = [ids.execution_id(job_id, at) for job_id in jobs]
        for name in names:
            self.give_up(name, tenant=tenant, **why)
        return names

    def start(
        self,
        operation: str = "op",
        rate_per_s: int = 0,
        tenant: str = TENANT,
        kind: str = "redrive",
        **wanted: object,
    ) -> None:
        """Redrive all that fit, unless another kind is given."""
        command = StartOperation(
            tenant=tenant,
            operation=operation,
            command_id=operation,
            issued_at=self.now,
            actor="anna",
            reason="fixed",
            kind=kind,
            filter=OperationFilter(**wanted),  # type: ignore[arg-type]  # as the caller says
            rate_per_s=rate_per_s,
        )
        self.home(operation, tenant).command(command)

    def cancel(self, operation: str = "op", command_id: str = "stop", tenant: str = TENANT) -> None:
        command = CancelOperation(
            tenant=tenant, operation=operation, command_id=command_id, issued_at=self.now, actor="ben"
        )
        self.home(operation, tenant).command(command)

    def home(self, operation: str = "op", tenant: str = TENANT) -> Desk:
        return self.desk_of(ids.operation_key(tenant, operation))

    # -- frames

    def cycle(self, after_ms: int = 0) -> list[Event]:
        """One cycle of each owner, `after_ms` later, and its mail; what all frames say."""
        self.wait(after_ms)
        return [event for desk in self.desks for event in self.one(desk)]

    def wait(self, ms: int) -> None:
        """Time passes everywhere."""
        for desk in self.desks:
            desk.now += ms

    def one(self, desk: Desk) -> list[Event]:
        """One cycle of one owner, and its mail."""
        events = desk.cycle()
        for output in outputs(desk.book, desk.last.placed, desk.partition, desk.partitions, desk.now):
            if isinstance(output, ToPartition):
                self.desks[output.partition].inputs[topics.MAIL].add(codec.encode(output.record), desk.now)
        return events

    def log(self, kind: type[Event]) -> Iterator[tuple[int, int, Event]]:
        """(partition, time, event) of all events of a kind that are on record."""
        for desk in self.desks:
            for record in desk.records:
                frame = decode_frame(record.value)
                for event in frame.events:
                    if isinstance(event, kind):
                        yield desk.partition, frame.now, event

    def redriven(self) -> list[str]:
        """Executions that were redriven, as often as they were."""
        return [event.execution for _, _, event in self.log(facts.ExecutionRedriven)]  # type: ignore[union-attr]

    def ended(self) -> list[facts.OperationEnded]:
        return [event for _, _, event in self.log(facts.OperationEnded)]  # type: ignore[misc]

    def until_ended(self, cycles: int = 400, after_ms: int = 100) -> facts.OperationEnded:
        """Go on until an operation has ended."""
        for _ in range(cycles):
            found = [event for event in self.cycle(after_ms) if isinstance(event, facts.OperationEnded)]
            if found:
                return found[0]
        raise AssertionError("no operation has ended")


def jobs(count: int, prefix: str = "j") -> Sequence[str]:
    """Ids of so many jobs."""
    return [f"{prefix}{number:03}" for number in range(count)]


__all__ = ["T0", "TENANT", "Desks", "jobs"]
