"""Where golden histories are played: desks of real cycles whose inputs are kept, workers with a script, mail between them.

Time goes from one instant at which something happens to the next one. No Kafka, no waiting, no chance.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date
from typing import Any, Final, NamedTuple

from minutebook.domain import events as facts
from minutebook.domain.commands import Command, SubmitJob
from minutebook.domain.outputs import ToPartition, outputs
from minutebook.domain.records import CancelledByTask, Claim, Failed, Progress, Snoozed
from minutebook.domain.rescheduling import zone_data_changed
from minutebook.domain.subjects import key_of
from minutebook.ids import job_key
from minutebook.log.draft import Draft
from minutebook.log.port import RawRecord
from minutebook.wire import codec, topics
from minutebook.wire.frames import encode_frame
from tests.simulation.desk import T0, TASK, Desk, Hand, Inputs, results

TENANT: Final = "acme"
SPEAK_MS: Final = 2_000
STEPS_MAX: Final = 20_000

Ending = Callable[[str], str]
"""Execution -> `succeeded`, `failed`, `permanent`, or `hangs`."""


def succeeds(execution: str) -> str:
    """Every run ends well."""
    return "succeeded"


class KeptInputs(Inputs):
    """An input topic that still has every record."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: dict[int, RawRecord] = {}

    def take(self) -> RawRecord:
        record = super().take()
        self.kept[record.offset] = record
        return record

    def again_from(self, offset: int) -> None:
        """What an owner took and no frame says so is taken again by the next one."""
        self.put_back([record for at, record in sorted(self.kept.items()) if at >= offset])

    def records(self) -> list[RawRecord]:
        """Everything that was ever there."""
        found = self.kept | {record.offset: record for record in self.waiting}
        return [found[offset] for offset in sorted(found)]


class _Run(NamedTuple):
    """What a worker runs, and until when."""

    token: int
    end_at: int


class Worker:
    """One worker with a session at every desk: it offers its slots, runs what it gets for `run_ms`, says how it ended."""

    def __init__(self, scene: Scene, name: str, slots: int, run_ms: int, ending: Ending) -> None:
        self.is_alive = True
        self.ending = ending
        self.run_ms = run_ms
        self._scene = scene
        self._slots = slots
        self._hands = [Hand(desk, f"{name}.0") for desk in scene.desks]
        self._runs: list[dict[str, _Run]] = [{} for _ in scene.desks]
        self._spoke_at = [-SPEAK_MS] * len(scene.desks)

    def next_at(self) -> int | None:
        """When it has something to say: a run has ended, or something waits for an offer, or it must keep what it runs."""
        if not self.is_alive:
            return None
        found = [
            run.end_at for runs in self._runs for name, run in runs.items() if self.ending(name) != "hangs"
        ]
        for desk, runs, spoke_at in zip(self._scene.desks, self._runs, self._spoke_at, strict=True):
            if runs or desk.core.granting.has_waiting():
                found.append(spoke_at + SPEAK_MS)
        return min(found, default=None)

    def speak(self) -> None:
        """Say what has ended, and what is free."""
        now = self._scene.now
        for place, (hand, runs) in enumerate(zip(self._hands, self._runs, strict=True)):
            ended = {
                name: run for name, run in runs.items() if run.end_at <= now and self.ending(name) != "hangs"
            }
            if not self.is_alive or not (ended or now - self._spoke_at[place] >= SPEAK_MS):
                continue
            self._spoke_at[place] = now
            for name in ended:
                del runs[name]
            good = [(name, run.token) for name, run in ended.items() if self.ending(name) == "succeeded"]
            bad = [
                Failed(TENANT, name, run.token, "ValueError", "no", self.ending(name) == "permanent")
                for name, run in ended.items()
                if self.ending(name) != "succeeded"
            ]
            hand.pulse(
                self._slots - len(runs),
                held=sorted(run.token for run in runs.values()),
                succeeded=results(good, TENANT) if good else None,
                failed=bad,
            )

    def say(self, execution: str, *, snooze_ms: int | None = None, progress: float | None = None) -> None:
        """What a run at the first desk tells: how far it is, or that it wants to go on later."""
        token = self._runs[0][execution].token
        if snooze_ms is not None:
            del self._runs[0][execution]
            self._hands[0].say(snoozed=[Snoozed(TENANT, execution, token, snooze_ms, reason="not yet")])
        if progress is not None:
            self._hands[0].say(progress=[Progress(TENANT, execution, token, progress, "on the way", b"1")])

    def cancel(self, execution: str) -> None:
        """A run at the first desk obeys the request to stop."""
        token = self._runs[0].pop(execution).token
        self._hands[0].say(cancelled=[CancelledByTask(TENANT, execution, token, "was asked to")])

    def forget(self, job_id: str) -> None:
        """A run at the first desk is gone without a word."""
        runs = self._runs[0]
        del runs[next(name for name in runs if name.startswith(f"{job_id}:"))]

    def hand_back(self, execution: str) -> None:
        """A run at the first desk was not started."""
        self._hands[0].say(handed_back=[(execution, self._runs[0].pop(execution).token)])

    def claim(self, *names: str, attempt: int = 1) -> None:
        """Ask for executions of an open queue by name, at the first desk."""
        self._hands[0].pulse(0, held=[], claims=[Claim(TENANT, name, attempt) for name in names])

    def take(self, place: int) -> None:
        """What the last frame of a desk grants to it runs from now on."""
        for name, token in self._hands[place].take():
            self._runs[place][name] = _Run(token, self._scene.now + self.run_ms)


class Scene:
    """`partitions` owners that share a clock."""

    def __init__(self, partitions: int = 1) -> None:
        self.now = T0
        self.desks = [Desk(number, partitions) for number in range(partitions)]
        for desk in self.desks:
            desk.inputs = {topic: KeptInputs() for topic in topics.INPUTS}
            desk.open()
        self.workers: list[Worker] = []
        self._commands = 0

    @property
    def desk(self) -> Desk:
        """The first owner's."""
        return self.desks[0]

    # -- what comes in

    def about(self) -> dict[str, Any]:
        """What every command says of itself."""
        self._commands += 1
        return {"command_id": f"c{self._commands}", "issued_at": self.now, "actor": "anna"}

    def say(self, command: Command, stamp: int | None = None) -> None:
        """A command, to the partition of its key; stamped now unless the broker's clock says otherwise."""
        stamp = self.now if stamp is None else stamp
        self.put(self._home(key_of(command)), command, key_of(command).encode(), stamp)

    def put(self, partition: int, command: Command, key: bytes | None, stamp: int | None = None) -> None:
        """A command, wherever its sender puts it, under any key."""
        feed = self.desks[partition].inputs[topics.COMMANDS]
        feed.add(codec.encode(command), self.now if stamp is None else stamp, key)

    def is_at(self, partition: int, job_id: str) -> bool:
        """Whether a job of that id belongs there."""
        return self._home(job_key(TENANT, job_id)) == partition

    def _home(self, key: str) -> int:
        return topics.partition_of(key, len(self.desks))

    def job(self, job_id: str, **fields: object) -> SubmitJob:
        """A job, with everything at its default."""
        wanted = {"task": TASK, "payload": b"{}", "tenant": TENANT, "job_id": job_id} | self.about() | fields
        return SubmitJob(**wanted)

    def submit(self, job_id: str, **fields: object) -> None:
        """That job is created."""
        self.say(self.job(job_id, **fields))

    def add_worker(
        self, name: str = "w1", slots: int = 4, run_ms: int = 500, ending: Ending = succeeds
    ) -> Worker:
        """A worker that joins now."""
        worker = Worker(self, name, slots, run_ms, ending)
        self.workers.append(worker)
        return worker

    def tick(self) -> None:
        """The owners mark the time on the broker's clock, and read their marks."""
        for desk in self.desks:
            desk.now = self.now
            desk.tick()

    # -- time

    def go(self, ms: int) -> None:
        """Let time pass."""
        self.go_to(self.now + ms)

    def go_to(self, at: int) -> None:
        """Let time pass until `at`, and do what is due then."""
        for _ in range(STEPS_MAX):
            next_at = self._next_at()
            if next_at > at:
                break
            self.now = next_at
            self._step()
        else:
            raise AssertionError("the owners do not come to rest")
        self.now = at
        self._step()

    def jump_to(self, at: int) -> None:
        """Nobody is there until `at`."""
        self.now = at

    def _next_at(self) -> int:
        found = [worker.next_at() for worker in self.workers]
        for desk in self.desks:
            core = desk.core
            found += [core.due.next_due_at(), core.next_at()]
            if any(feed.waiting for feed in desk.inputs.values()):
                found.append(self.now)
            if core.operating.has_shares():
                found.append(self.now + round(core.operating.wait_s(self.now) * 1_000))
        return max(min((at for at in found if at is not None), default=self.now + 3_600_000), self.now + 1)

    def _step(self) -> None:
        for desk in self.desks:
            desk.now = max(desk.now, self.now)
        for worker in self.workers:
            worker.speak()
        for place, desk in enumerate(self.desks):
            desk.cycle()
            self._deliver(desk)
            for worker in self.workers:
                worker.take(place)

    def _deliver(self, desk: Desk) -> None:
        """Mail of a frame, and when its grants were at the broker."""
        for output in outputs(desk.book, desk.last.placed, desk.partition, desk.partitions, desk.now):
            if isinstance(output, ToPartition):
                self.desks[output.partition].inputs[topics.MAIL].add(codec.encode(output.record), self.now)
        for grant in desk.grants():
            session = desk.sessions.get(grant.session)
            if session is not None:
                session.sent_at[grant.record.frame] = self.now

    # -- owners

    def lose_race(self) -> None:
        """The frame of an owner that was replaced meanwhile lies in the log, and is void."""
        desk = self.desk
        loser = encode_frame(desk.frame(Draft(desk.book, desk.reader.position + 1, self.now)))
        self.take_over()
        desk.lay(loser)

    def take_over(self) -> None:
        """Another owner of the first partition from here on; it knows what is stored."""
        desk = self.desk
        desk.now = max(desk.now, self.now)
        for topic, (_, through) in desk.book.cursor.inputs.items():
            desk.inputs[topic].again_from(through + 1)
            desk.consumed[topic] = through
        draft = Draft(desk.book, desk.reader.position + 1, desk.now)
        reports_to = desk.consumed[topics.REPORTS] + 1
        draft.add(facts.OwnershipTaken("o", desk.book.cursor.epoch + 1, 0, reports_to))
        for event in zone_data_changed(desk.book, desk.tzdata):
            draft.add(event)
        desk.keep(draft)
        desk.open()
        for session in desk.sessions:
            session.stamp = max(session.stamp, self.now)


def days(*names: str) -> list[int]:
    """Dates such as 2025-12-25, as calendars count them."""
    return [(date.fromisoformat(name) - date(1970, 1, 1)).days for name in names]


def kept(desk: Desk) -> dict[str, Sequence[RawRecord]]:
    """Records of each input topic of a desk of a scene."""
    found: dict[str, Sequence[RawRecord]] = {}
    for topic, feed in desk.inputs.items():
        assert isinstance(feed, KeptInputs)
        found[topic] = feed.records()
    return found
