"""Several partitions' desks and the mail between them, workers with a session at each. No Kafka, no waiting: mail arrives
when it is delivered by hand, in order of each sender, and again after a restart.
"""

from __future__ import annotations

import random
from collections import defaultdict, deque
from collections.abc import Callable, Iterator
from typing import Any

from minutebook import ids
from minutebook.domain.commands import DeclareLimit, DeleteLimit, LimitCommand, PauseLimit
from minutebook.domain.events import Event
from minutebook.domain.outputs import ToPartition, outputs
from minutebook.domain.records import Mail
from minutebook.wire import codec, topics
from tests.simulation.desk import T0, Desk, Hand, results

TENANT = "acme"
RESENT = 3
"""So many of the last pieces of mail go out again after a restart."""


class Office:
    """The desks of `partitions`, which share a clock, and `workers` that are served by each."""

    def __init__(self, partitions: int, workers: int) -> None:
        self.now = T0
        self.desks = [Desk(partition, partitions) for partition in range(partitions)]
        self.workers = [[Hand(desk, f"w{number}.0") for desk in self.desks] for number in range(workers)]
        self.running: dict[tuple[int, int], dict[str, int]] = defaultdict(dict)
        """Executions with their tokens, by worker and partition."""
        self.events: list[tuple[int, int, Event]] = []
        """(partition, token, event) in the order in which they became valid."""
        self.on_frame: Callable[[], None] = lambda: None
        """Called after every cycle."""
        self._mail: dict[tuple[int, int], deque[Mail]] = defaultdict(deque)
        self._sent: dict[int, deque[ToPartition]] = defaultdict(lambda: deque(maxlen=RESENT))
        self._commands = iter(range(1 << 30))

    # -- what comes in

    def submit(self, job_id: str, limit: str = "", **fields: object) -> None:
        """A job, due now."""
        partition = topics.partition_of(ids.job_key(TENANT, job_id), len(self.desks))
        desk = self.desks[partition]
        desk.now = self.now
        desk.submit(job_id, limit=limit, **fields)

    def home(self, limit: str) -> Desk:
        """Desk of the limit's home."""
        return self.desks[topics.partition_of(ids.limit_key(TENANT, limit), len(self.desks))]

    def declare(self, limit: str, **bounds: int) -> None:
        """A limit, or a change of it."""
        self._command(DeclareLimit(**self._about(limit), **bounds))

    def pause(self, limit: str, for_ms: int | None) -> None:
        """A pause of a limit; None ends it."""
        self._command(PauseLimit(**self._about(limit), for_ms=for_ms))

    def delete(self, limit: str) -> None:
        """A limit is no more."""
        self._command(DeleteLimit(**self._about(limit)))

    def _about(self, limit: str) -> dict[str, Any]:
        command_id = f"c{next(self._commands)}"
        return {"tenant": TENANT, "name": limit, "command_id": command_id, "issued_at": self.now}

    def _command(self, command: LimitCommand) -> None:
        desk = self.home(command.name)
        desk.now = self.now
        desk.command(command)

    # -- what happens

    def cycle(self, partition: int, *, is_void: bool = False) -> list[Event]:
        """One cycle of one partition; its mail is on its way, its grants are with the workers."""
        desk = self.desks[partition]
        desk.now = self.now
        if is_void:
            return desk.void()
        events = desk.cycle()
        self.events += [(partition, token, event) for event, token in desk.last.placed]
        for output in outputs(desk.book, desk.last.placed, partition, len(self.desks), self.now):
            if isinstance(output, ToPartition):
                self._sent[partition].append(output)
                self._mail[partition, output.partition].append(output.record)
        for number, hands in enumerate(self.workers):
            self.running[number, partition].update(hands[partition].take())
        self.on_frame()
        return events

    def deliver(self, sender: int, receiver: int, most: int = 1_000) -> None:
        """Mail on its way between two partitions arrives, up to so much of it."""
        waiting = self._mail[sender, receiver]
        for _ in range(min(most, len(waiting))):
            self.desks[receiver].inputs[topics.MAIL].add(codec.encode(waiting.popleft()), self.now)

    def deliver_all(self) -> None:
        """All mail arrives."""
        for sender, receiver in list(self._mail):
            self.deliver(sender, receiver)

    def restart(self, partition: int) -> None:
        """An owner's memory is gone; the last of its mail goes out again, and every worker says what it holds."""
        desk = self.desks[partition]
        desk.open()
        for session in desk.sessions:
            session.stamp = max(session.stamp, self.now)
        for output in self._sent[partition]:
            self._mail[partition, output.partition].append(output.record)
        for number in range(len(self.workers)):
            self.pulse(number, partition, 0, is_full=True)

    def pulse(
        self, worker: int, partition: int, offer: int, ended: int = 0, back: int = 0, *, is_full: bool = False
    ) -> None:
        """A worker offers slots to a partition, and says that its first runs have ended, or come back unstarted."""
        if self.desks[partition].sessions.is_over(self.workers[worker][partition].name):
            self._start_anew(worker, partition)
        running = self.running[worker, partition]
        names = sorted(running)
        done = [(name, running.pop(name)) for name in names[:ended]]
        returned = [(name, running.pop(name)) for name in names[ended : ended + back]]
        desk = self.desks[partition]
        desk.now = self.now
        self.workers[worker][partition].pulse(
            offer,
            held=sorted(running.values()) if is_full else None,
            succeeded=results(done, TENANT) if done else None,
            handed_back=returned,
        )

    def lose(self, worker: int, partition: int) -> None:
        """A worker's lease at a partition is over; whatever it ran is lost."""
        desk = self.desks[partition]
        hand = self.workers[worker][partition]
        session = desk.sessions.get(hand.name)
        if session is None or session.stamp < 0:
            return
        desk.sessions.evidence = max(desk.sessions.evidence, session.lease_end() + 1)
        self._start_anew(worker, partition)

    def _start_anew(self, worker: int, partition: int) -> None:
        """The next life of a worker, which holds nothing."""
        self.running[worker, partition].clear()
        life = int(self.workers[worker][partition].name.rpartition(".")[2]) + 1
        self.workers[worker][partition] = Hand(self.desks[partition], f"w{worker}.{life}")

    def places(self) -> Iterator[tuple[int, int]]:
        """Every worker at every partition."""
        return ((number, place) for number in range(len(self.workers)) for place in range(len(self.desks)))

    def settle(self, slots: int, cycles: int, after_ms: int = 100) -> None:
        """Workers end everything and offer, mail arrives, owners decide, so many times."""
        for _ in range(cycles):
            self.now += after_ms
            for worker, partition in self.places():
                self.pulse(worker, partition, slots, ended=1_000, is_full=True)
            self.deliver_all()
            for partition in range(len(self.desks)):
                self._end_leases(partition)
                self.cycle(partition)

    def _end_leases(self, partition: int) -> None:
        """Sessions that nobody speaks for any more are over."""
        desk, live = self.desks[partition], {hands[partition].name for hands in self.workers}
        for session in desk.sessions:
            if session.name not in live and session.stamp >= 0:
                desk.sessions.evidence = max(desk.sessions.evidence, session.lease_end() + 1)


def shuffled(chance: random.Random, places: Iterator[tuple[int, int]]) -> list[tuple[int, int]]:
    """Places in any order."""
    found = list(places)
    chance.shuffle(found)
    return found
