"""The client against the real API in memory: many jobs at once, one job and its outcome, deadlines, reading one's writes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator

import httpx
import pytest
from fastapi import Request
from pydantic import SecretStr

from api import decisions
from api.decisions import Preference
from api.routes import jobs as jobs_route
from minutebook.client import (
    Client,
    ClientSettings,
    DeniedError,
    Job,
    JobRequest,
    RefusedError,
    Submitted,
    SyncClient,
    Tally,
    UnavailableError,
)
from minutebook.client.bulk import ITEMS_MAX
from minutebook.client.positions import Token, decode_token
from tests.api.memory import Installation
from tests.api.runs import come, succeed

LATER = "2030-01-01T00:00:00Z"


class Wire(httpx.AsyncBaseTransport):
    """Passes requests on and counts those under way; holds batches back, or answers them itself, as a test says."""

    def __init__(self, world: Installation) -> None:
        self._app = httpx.ASGITransport(app=world.app)
        self.seen: list[httpx.Request] = []
        self.open = asyncio.Event()
        self.open.set()
        self.faults: list[int] = []

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self.seen.append(request)
        await self.open.wait()
        answer = await self._app.handle_async_request(request)
        if self.faults:
            await answer.aread()
            return httpx.Response(self.faults.pop(0), headers={"retry-after": "0"})
        return answer

    def batches(self) -> int:
        return sum(request.url.path == "/v1/jobs/batch" for request in self.seen)


@pytest.fixture
def wire(world: Installation) -> Wire:
    return Wire(world)


def settings(key: str = "key-admin") -> ClientSettings:
    return ClientSettings(url="http://api", api_key=SecretStr(key), retries_max=2)


@pytest.fixture
async def client(wire: Wire) -> AsyncIterator[Client]:
    async with Client(settings(), transport=wire) as client:
        yield client


def jobs(count: int, bad: int = -1) -> Iterator[JobRequest]:
    for number in range(count):
        task = "no name" if number == bad else "t"
        yield JobRequest(id=f"a-{number}", task=task, run_at=LATER)


async def all_of(found: AsyncIterator[Submitted]) -> list[Submitted]:
    return [item async for item in found]


async def test_jobs_of_an_iterable_are_created_in_its_order(client: Client, wire: Wire) -> None:
    told: list[Tally] = []
    found = await all_of(client.submit_all(jobs(1_201), on_progress=told.append))
    assert [item.number for item in found] == list(range(1_201))
    assert [item.job_id for item in found] == [f"a-{number}" for number in range(1_201)]
    assert {item.status for item in found} == {201}
    assert told == [Tally(500), Tally(1_000), Tally(1_201)]
    assert wire.batches() == 3


async def test_job_that_is_refused_holds_up_no_other(client: Client) -> None:
    found = await all_of(client.submit_all(jobs(700, bad=600)))
    (refused,) = [item for item in found if item.status != 201]
    assert (refused.number, refused.status, refused.job_id) == (600, 422, None)
    assert refused.problem is not None
    assert refused.problem.errors[0].pointer == "/task"


async def test_same_jobs_under_the_same_key_are_made_once(client: Client, world: Installation) -> None:
    unnamed = [JobRequest(task="t", run_at=LATER) for _ in range(3)]
    first = await all_of(client.submit_all(unnamed, key="k"))
    again = await all_of(client.submit_all(iter(unnamed), key="k"))
    assert [item.job_id for item in first] == [item.job_id for item in again]
    assert len({item.job_id for item in first}) == 3


async def test_nothing_more_is_taken_while_enough_is_under_way(client: Client, wire: Wire) -> None:
    taken = 0

    def endless() -> Iterator[JobRequest]:
        nonlocal taken
        while True:
            taken += 1
            yield JobRequest(task="t", run_at=LATER)

    wire.open.clear()
    found = client.submit_all(endless(), in_flight=2)
    first = asyncio.ensure_future(anext(found))
    while wire.batches() < 2:
        await asyncio.sleep(0.001)
    for _ in range(50):
        await asyncio.sleep(0)
    assert taken == 3 * ITEMS_MAX
    assert wire.batches() == 2
    wire.open.set()
    assert (await first).number == 0
    await found.aclose()  # type: ignore[attr-defined]  # a generator


async def test_slow_source_is_not_waited_for(client: Client) -> None:
    more = asyncio.Event()

    async def slow() -> AsyncIterator[JobRequest]:
        yield JobRequest(id="first", task="t", run_at=LATER)
        await more.wait()
        yield JobRequest(id="second", task="t", run_at=LATER)

    found = []
    async for item in client.submit_all(slow()):
        found.append(item.job_id)
        more.set()
    assert found == ["first", "second"]


async def test_results_come_as_they_are_known_where_no_order_is_asked(world: Installation) -> None:
    held = asyncio.Event()

    class Held(Wire):
        async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
            if b'"a-0"' in request.content:
                await held.wait()
            return await super().handle_async_request(request)

    async with Client(settings(), transport=Held(world)) as client:
        numbers = []
        async for item in client.submit_all(jobs(1_000), in_order=False):
            numbers.append(item.number)
            held.set()
    assert numbers == [*range(500, 1_000), *range(500)]


async def test_busy_api_is_asked_again_under_the_same_key(
    client: Client, wire: Wire, world: Installation
) -> None:
    wire.faults = [503, 429]
    found = await all_of(client.submit_all([JobRequest(task="t", run_at=LATER)]))
    assert [item.status for item in found] == [201]
    assert len({request.headers["idempotency-key"] for request in wire.seen}) == 1
    assert len(wire.seen) == 3


async def test_what_could_not_be_sent_is_told_and_the_rest_goes_on(
    client: Client, wire: Wire, world: Installation
) -> None:
    world.log.is_broken = True
    statuses = []
    async for item in client.submit_all(jobs(600), in_flight=1):
        statuses.append(item.status)
        world.log.is_broken = False
    assert statuses == [503] * 500 + [201] * 100


async def test_source_that_fails_ends_it_and_denial_too(client: Client, wire: Wire) -> None:
    def failing() -> Iterator[JobRequest]:
        yield from jobs(1)
        raise RuntimeError("no more")

    with pytest.raises(RuntimeError, match="no more"):
        await all_of(client.submit_all(failing()))
    async with Client(settings("nothing"), transport=wire) as stranger:
        with pytest.raises(DeniedError):
            await all_of(stranger.submit_all(jobs(1)))


async def test_run_waits_for_the_outcome(client: Client, world: Installation) -> None:
    running = asyncio.create_task(client.run(JobRequest(id="a", task="t"), wait=5))
    while world.services.view.job("acme", "a") is None:
        await asyncio.sleep(0)
    come(world)
    succeed(world, f"a:{world.clock.now()}", b'"done"')
    whole = await running
    assert (whole.outcome, bytes(whole.attempts[-1].result)) == ("succeeded", b'"done"')


async def test_run_of_what_is_decided_later_waits_for_that_too(
    client: Client, world: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.log.is_held = True
    sent = decisions.preference_of

    def hurried(request: Request) -> Preference:
        return Preference(0) if request.method == "POST" else sent(request)

    monkeypatch.setattr(jobs_route, "preference_of", hurried)
    running = asyncio.create_task(client.run(JobRequest(id="a", task="t"), wait=1))
    while not world.services.undecided.get("acme", world.log.sent[-1].command_id if world.log.sent else ""):
        await asyncio.sleep(0)
    world.log.release()
    come(world)
    succeed(world, f"a:{world.clock.now()}")
    assert (await running).outcome == "succeeded"
    with pytest.raises(RefusedError):
        await client.run(JobRequest(task="t", queue="nowhere"))


async def test_deadline_ends_a_call_with_its_repeats(client: Client, wire: Wire) -> None:
    wire.open.clear()
    with pytest.raises(UnavailableError, match=r"within 0\.05 s"):
        await client.within(0.05).get("a")
    wire.open.set()
    assert isinstance(await client.submit(JobRequest(id="a", task="t")), Job)
    assert (await client.within(60).get("a")).id == "a"


async def test_client_reads_all_that_it_wrote(client: Client, wire: Wire) -> None:
    """Writes of several partitions: a read waits for all of them, whichever it is about."""
    for number in range(8):
        job = await client.within(60).submit(JobRequest(id=f"a-{number}", task="t", run_at=LATER))
        assert isinstance(job, Job)
    await client.get("a-0")
    seen = decode_token(wire.seen[-1].headers["minutebook-after"])
    assert len(seen.events) > 1
    assert seen.joined(Token({9: 1}, {0: 5})) == Token(seen.events | {9: 1}, {0: 5})


def test_bulk_works_without_an_event_loop_too(world: Installation) -> None:
    with SyncClient(settings(), transport=httpx.ASGITransport(app=world.app)) as client:
        found = list(client.within(60).submit_all(jobs(3)))
        assert [item.status for item in found] == [201] * 3
        assert client.run(JobRequest(id="b", task="t", delay="PT1H"), wait=0).outcome is None
