"""Workers quieted, resumed and stopped from outside: the home says it until it shows, the worker obeys."""

from __future__ import annotations

import asyncio

import pytest

from minutebook.domain.commands import AskWorker
from minutebook.domain.records import Pulse, Report
from minutebook.wire import codec
from minutebook.worker import App
from tests.simulation.desk import Desk, Hand
from tests.unit.test_worker_exchange import Desk as WorkerDesk
from tests.unit.test_worker_loop import working


@pytest.fixture
def desk() -> Desk:
    return Desk()


def ask(desk: Desk, what: str, worker: str = "w") -> None:
    command_id = f"{what}{desk.now}"
    desk.command(
        AskWorker(name=worker, command_id=command_id, issued_at=desk.now, actor="me", reason="why", what=what)
    )


def pulse(desk: Desk, name: str = "w.0", *, is_full: bool = True, **flags: bool) -> None:
    """A report of a worker with these flags."""
    hand = Hand(desk, name)
    hand._sequence = desk.now
    hand.pulse(0, held=[] if is_full else None)
    inputs = desk.inputs["worker-reports"].waiting
    record = inputs.pop()
    report = codec.decode(record.value)
    assert isinstance(report, Report)
    changed = Report(report.session, report.sequence, Pulse(0, -1, **flags), report.full)
    inputs.append(record._replace(value=codec.encode(changed)))


def asked(desk: Desk) -> dict[str, str]:
    """What the last cycle asked, by session."""
    return {record.session: record.asked for record in desk.replies if record.asked}


# -- the home


def test_wish_is_said_at_once_and_again_until_it_shows(desk: Desk) -> None:
    pulse(desk)
    pulse(desk, "v.0")
    desk.cycle()
    ask(desk, "quiet")
    desk.cycle(1)
    assert asked(desk) == {"w.0": "quiet"}
    desk.cycle(1)
    assert asked(desk) == {}
    pulse(desk)
    pulse(desk, "v.0")
    desk.cycle(1)
    assert asked(desk) == {"w.0": "quiet"}
    pulse(desk, is_quiet=True)
    desk.cycle(1)
    assert asked(desk) == {}
    ask(desk, "resume")
    desk.cycle(1)
    assert asked(desk) == {"w.0": "resume"}
    pulse(desk, is_quiet=True)
    desk.cycle(1)
    assert asked(desk) == {"w.0": "resume"}
    pulse(desk)
    desk.cycle(1)
    assert asked(desk) == {}


def test_short_pulses_bring_nothing_up(desk: Desk) -> None:
    pulse(desk)
    desk.cycle()
    ask(desk, "stop")
    desk.cycle(1)
    pulse(desk, is_full=False)
    desk.cycle(1)
    assert asked(desk) == {}


def test_fresh_owner_says_it_again(desk: Desk) -> None:
    pulse(desk)
    desk.cycle()
    ask(desk, "stop")
    desk.cycle(1)
    desk.open()
    pulse(desk, "w.1")
    desk.cycle(1)
    assert asked(desk) == {"w.1": "stop"}
    pulse(desk, "w.1", is_leaving=True)
    desk.cycle(1)
    assert asked(desk) == {}


def test_wish_of_a_frame_that_is_void_is_not_said(desk: Desk) -> None:
    pulse(desk)
    desk.cycle()
    ask(desk, "quiet")
    pulse(desk)
    desk.void()
    assert desk.core.replies(desk.now) == []
    desk.cycle(1)
    assert asked(desk) == {"w.0": "quiet"}


# -- the worker


def test_quiet_worker_offers_nothing_hands_back_and_goes_on() -> None:
    desk = WorkerDesk()
    desk.round(0.0)
    running = desk.grant(1, 1.0).starts
    desk.round(1.1)
    desk.grant(0, 1.2, frame=2, asked="quiet")
    reports = desk.round(1.2)
    assert sorted(reports) == [0, 1]
    for report in reports.values():
        assert report.full is not None
        assert report.pulse is not None
        assert (report.pulse.offer, report.pulse.is_quiet, report.pulse.is_leaving) == (0, True, False)
    assert desk.grant(2, 1.3, frame=3).starts == []
    back = desk.round(1.3)[0].handed_back
    assert back is not None
    assert len(back.tokens) == 2
    assert desk.grant(0, 1.4, frame=4, asked="quiet").starts == []
    assert desk.round(1.4) == {}
    desk.end(running)
    done = desk.round(1.5)[0]
    assert done.succeeded is not None
    assert done.pulse is not None
    assert done.pulse.offer == 0
    assert desk.round(1.6) == {}


def test_resumed_worker_offers_again() -> None:
    desk = WorkerDesk()
    desk.round(0.0)
    desk.grant(0, 1.0, asked="quiet")
    desk.round(1.0)
    desk.grant(0, 2.0, frame=2, asked="resume")
    reports = desk.round(2.0)
    assert [
        report.pulse.offer > 0 and not report.pulse.is_quiet for report in reports.values() if report.pulse
    ] == [
        True,
        True,
    ]
    assert len(desk.grant(1, 2.1, frame=3).starts) == 1


def test_what_no_version_knows_is_passed_over() -> None:
    desk = WorkerDesk()
    desk.round(0.0)
    desk.grant(0, 1.0, asked="dance")
    assert desk.round(1.0) == {}
    assert not desk.exchange.is_stop_asked


async def test_stopped_worker_finishes_what_runs_and_leaves() -> None:
    app, may_end = App(), asyncio.Event()

    @app.task("wait")
    async def wait(payload: object) -> None:
        await may_end.wait()

    async with working(app) as running:
        running.owner.queue("j:1", "wait")
        await running.owner.until(lambda: "j:1" in running.owner.granted)
        running.owner.ask("stop")
        await running.owner.until(
            lambda: any(
                report.pulse is not None and report.pulse.is_leaving for _, report in running.owner.reports
            )
        )
        assert not running.task.done()
        may_end.set()
        drained = await running.task
    assert (drained.drained, drained.handed_back, drained.is_forced) == (1, 0, False)
    assert "j:1" in running.owner.succeeded


async def test_stopped_worker_hands_back_what_outlasts_the_grace() -> None:
    app = App()

    @app.task("wait")
    async def wait(payload: object) -> None:
        await asyncio.Event().wait()

    async with working(app, grace_s=0.0) as running:
        running.owner.queue("j:1", "wait")
        await running.owner.until(lambda: "j:1" in running.owner.granted)
        running.owner.is_granting_again = False
        running.owner.ask("stop")
        drained = await running.task
    assert (drained.drained, drained.handed_back, drained.is_forced) == (0, 1, False)
    assert running.owner.handed_back == ["j:1"]
