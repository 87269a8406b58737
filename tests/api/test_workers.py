"""Workers over HTTP: who is there by the pulses, what they run, and what they are asked."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from api import held_runs, workers_view
from api.workers_view import WorkersView
from minutebook.domain.commands import AskWorker
from minutebook.domain.records import Failed, FullPulse, Pulse, QueueOffer, Report, Tick
from minutebook.wire import codec, schemas
from minutebook.wire.frames import Frame, decode_frame
from minutebook.wire.report_heads import read_head
from tests.api.conftest import Callers
from tests.api.memory import NOW, Installation
from tests.api.runs import come, succeed
from tests.unit.avro_samples import GOLDEN

LEASE_MS = 10_000


def full(name: str = "host-1", held: list[int] | None = None, **more: Any) -> FullPulse:
    tasks, queues = (
        more.pop("tasks", ["t"]),
        more.pop("queues", [QueueOffer("default"), QueueOffer("mail", 2)]),
    )
    return FullPulse(name, "0.1.0", tasks, queues, more.pop("lease_ms", LEASE_MS), 3_000, held or [])


def pulse(
    view: WorkersView,
    worker: str = "w1",
    partition: int = 0,
    *,
    at: int = NOW,
    number: int = 0,
    offer: int = 5,
    said: FullPulse | None = None,
    **flags: bool,
) -> None:
    report = Report(f"{worker}.{number}", 1, Pulse(offer, -1, **flags), said)
    view.take(partition, codec.encode(report), at)


class MemoryFrames:
    """Frames of the installation's log; `is_away`: the broker is not there."""

    def __init__(self, world: Installation) -> None:
        self._logs = world.log.logs
        self.is_away = False
        self.read_frames = 0

    async def read(self, partition: int, offset: int) -> Frame | None:
        self.read_frames += 1
        if self.is_away or offset >= len(self._logs[partition]):
            return None
        return decode_frame(self._logs[partition][offset].value)


# -- heads of reports


def test_head_of_any_version_of_a_report_is_read() -> None:
    paths = sorted(GOLDEN.glob("report.v*.bin"))
    assert len(paths) == sum(schema.name == "Report" for schema in schemas.by_header().values())
    for path in paths:
        report = codec.decode(path.read_bytes())
        assert isinstance(report, Report)
        assert read_head(path.read_bytes()) == (report.session, report.pulse, report.full)


@pytest.mark.parametrize(
    "value",
    [None, b"", b"\xc3\x01", b"x" * 50, codec.encode(Tick("o", 1)), codec.encode(Report("w.0", 1))[:12]],
)
def test_what_is_no_report_has_no_head(value: bytes | None) -> None:
    assert read_head(value) is None


def test_head_is_read_whatever_follows() -> None:
    failed = [Failed("t", "j:1", 1, "E", "m" * 1_000, False)] * 50
    value = codec.encode(Report("w.0", 1, Pulse(1, -1), None, failed=failed))
    head = read_head(value[:60])
    assert head is not None
    assert head.session == "w.0"


# -- the view


def test_pulses_say_what_a_worker_is() -> None:
    view = WorkersView()
    pulse(view, at=NOW, said=full(held=[1, 2, 3]))
    pulse(view, partition=1, at=NOW + 10, offer=2, said=full(held=[9]))
    (worker,) = view.workers(NOW + 20)
    assert (worker.id, worker.name, worker.status(NOW + 20), worker.stamp) == (
        "w1",
        "host-1",
        "active",
        NOW + 10,
    )
    assert [(it.offered, it.running, it.held) for it in worker.sessions.values()] == [
        (5, 3, [1, 2, 3]),
        (2, 1, [9]),
    ]
    pulse(view, at=NOW + 30, offer=0, is_quiet=True)
    assert worker.status(NOW + 40) == "quiet"
    assert (worker.sessions[0].offered, worker.sessions[0].running) == (0, 3)
    pulse(view, at=NOW + 50, offer=0, is_quiet=True, is_leaving=True)
    assert worker.status(NOW + 60) == "leaving"
    assert worker.status(NOW + 50 + LEASE_MS + 1) == "silent"


def test_worker_begins_with_a_full_pulse() -> None:
    view = WorkersView()
    pulse(view)
    assert view.workers(NOW) == []


def test_old_session_and_old_stamp_change_nothing() -> None:
    view = WorkersView()
    pulse(view, at=NOW, number=1, said=full(held=[7]))
    pulse(view, at=NOW + 5, number=0, offer=9, said=full(held=[1]))
    pulse(view, at=NOW - 5, number=1, offer=8)
    (worker,) = view.workers(NOW)
    assert (worker.sessions[0].name, worker.sessions[0].offered, worker.sessions[0].held) == ("w1.1", 5, [7])
    pulse(view, at=NOW + 6, number=2, said=full())
    assert (worker.sessions[0].name, worker.sessions[0].held) == ("w1.2", [])


def test_silent_worker_is_forgotten_and_one_that_left_sooner() -> None:
    view = WorkersView()
    pulse(view, "gone", said=full())
    pulse(view, "left", said=full(), is_leaving=True)
    pulse(view, "w1", partition=3, said=full())
    later = NOW + LEASE_MS + 1
    assert [worker.id for worker in view.workers(later)] == ["gone", "w1"]
    much_later = NOW + LEASE_MS + workers_view.FORGET_MS + 1
    pulse(view, "w1", at=much_later, said=full())
    assert [worker.id for worker in view.workers(much_later)] == ["w1"]
    worker = view.worker("w1", much_later)
    assert worker is not None
    assert list(worker.sessions) == [0]
    assert view._sessions == 1


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers_view, "WORKERS_MAX", 3)
    monkeypatch.setattr(workers_view, "SESSIONS_MAX", 4)
    view = WorkersView()
    for number in range(5):
        pulse(
            view, f"w{number}", said=full(name="n" * 999, held=list(range(2_000)), tasks=["t" * 999] * 1_500)
        )
    for partition in range(5):
        pulse(view, "w0", partition, said=full())
    workers = view.workers(NOW)
    assert [worker.id for worker in workers] == ["w0", "w1", "w2"]
    assert sum(len(worker.sessions) for worker in workers) == 4
    it = workers[1]
    assert (len(it.name), len(it.tasks), len(it.tasks[0]), it.sessions[0].running) == (256, 1_000, 256, 2_000)
    assert len(it.sessions[0].held) == workers_view.HELD_KEPT_MAX


@pytest.mark.parametrize("session", ["", "w", ".0", "a b.0", "w.x", "w.-1", "w.9999999999", "w.²"])
def test_senseless_session_is_passed_over(session: str) -> None:
    view = WorkersView()
    view.take(0, codec.encode(Report(session, 1, Pulse(1, -1), full())), NOW)
    assert view.workers(NOW) == []


# -- over HTTP


async def test_workers_are_listed_by_name_in_pages(callers: Callers, world: Installation) -> None:
    for worker, name in (("c", "x"), ("a", "x"), ("b", "a")):
        pulse(world.services.workers, worker, said=full(name))
    viewer = callers["viewer"]
    first = (await viewer.get("/v1/workers", params={"limit": 2})).json()
    assert [(item["name"], item["id"]) for item in first["items"]] == [("a", "b"), ("x", "a")]
    rest = (await viewer.get("/v1/workers", params={"cursor": first["next_cursor"]})).json()
    assert [item["id"] for item in rest["items"]] == ["c"]
    assert first["items"][0] | {"id": ""} == {
        "id": "",
        "name": "a",
        "version": "0.1.0",
        "status": "active",
        "running": 0,
        "offered": 5,
        "tasks": ["t"],
        "queues": [{"name": "default", "cap": None}, {"name": "mail", "cap": 2}],
        "lease": "PT10S",
        "last_pulse_at": "2026-01-01T00:00:00.000Z",
    }


async def test_worker_shows_what_it_runs_to_the_tenant_alone(callers: Callers, world: Installation) -> None:
    frames = world.services.frames = MemoryFrames(world)
    names = []
    for key in ("submitter", "other"):
        for number in range(3):
            job = {"id": f"{key}{number}", "task": "t", "run_at": "2026-01-01T00:00:00Z"}
            assert (await callers[key].post("/v1/jobs", json=job)).status_code == 201
            names.append(f"{key}{number}:{NOW}")
    come(world)
    for partition, book in enumerate(world.log.books):
        held = [row.token for _, row in book.running.scan(b"")]
        if held:
            pulse(world.services.workers, "w", partition, said=full(held=held))
    succeed(world, names[0])
    shown = (await callers["viewer"].get("/v1/workers/w")).json()
    assert sorted(one["execution_id"] for one in shown["executions"]) == names[1:3]
    one = shown["executions"][0]
    assert (one["task"], one["queue"], one["attempt"], one["since"]) == (
        "t",
        "default",
        1,
        "2026-01-01T00:00:00.000Z",
    )
    assert (shown["running"], shown["not_shown"]) == (6, 4)
    assert "other" not in msgspec.json.encode(shown).decode()
    assert [session["session"] for session in shown["sessions"]] == ["w.0"] * len(shown["sessions"])
    frames.is_away = True
    shown = (await callers["viewer"].get("/v1/workers/w")).json()
    assert (shown["executions"], shown["not_shown"]) == ([], 6)


async def test_frames_read_for_a_question_are_bounded(callers: Callers, world: Installation) -> None:
    frames = world.services.frames = MemoryFrames(world)
    pulse(world.services.workers, "w", said=full(held=[number << 16 for number in range(500)]))
    shown = (await callers["viewer"].get("/v1/workers/w")).json()
    assert (shown["executions"], shown["not_shown"]) == ([], 500)
    assert frames.read_frames == held_runs.FRAMES_MAX


async def test_wish_is_on_record_with_who_and_why(callers: Callers, world: Installation) -> None:
    pulse(world.services.workers, "w", said=full())
    operator = callers["operator"]
    answer = await operator.post("/v1/workers/w/quiet", json={"reason": "reboot"})
    assert (answer.status_code, answer.json()["id"]) == (200, "w")
    assert answer.headers["minutebook-position"]
    (command,) = world.log.sent
    assert isinstance(command, AskWorker)
    assert (command.name, command.what, command.reason) == ("w", "quiet", "reboot")
    assert command.actor.startswith("key:")
    for verb, status in (("quiet", 200), ("stop", 200), ("stop", 200), ("resume", 409)):
        answer = await operator.post(f"/v1/workers/w/{verb}")
        assert answer.status_code == status, (verb, answer.text)
    assert answer.json()["code"] == "worker-stops"
    world.log.is_held = True
    answer = await operator.post("/v1/workers/w/resume", headers={"prefer": "respond-async"})
    assert answer.status_code == 202


async def test_worker_that_is_not_heard_is_asked_nothing(callers: Callers, world: Installation) -> None:
    operator = callers["operator"]
    for name in ("nobody", "a%20b", "%00"):
        answer = await operator.post(f"/v1/workers/{name}/stop")
        assert (answer.status_code, answer.json()["code"]) == (404, "not-found")
        assert (await operator.get(f"/v1/workers/{name}")).status_code == 404
    pulse(world.services.workers, "w", said=full())
    world.clock.advance(workers_view.HEARD_MS + 1)
    answer = await operator.post("/v1/workers/w/stop")
    assert (answer.status_code, answer.json()["code"]) == (409, "worker-silent")
    assert (await operator.get("/v1/workers/w")).json()["status"] == "silent"
    assert world.log.sent == []
