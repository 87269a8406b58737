"""Commands that share a record: each is sent once, answered for itself, and waits for no more than it must."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence

import httpx
import pytest

from api.lanes import BUSY_MIN, GATHER_MAX_S, Keyed, Lane, Lanes, Sized
from api.problems import Refused
from minutebook.domain.commands import SubmitJob
from minutebook.ids import job_key
from minutebook.wire.codec import BATCH_MAX
from tests.api.memory import PARTITIONS, Installation

LATER = "2030-01-01T00:00:00Z"
TIMEOUT_S = 5.0


class Broker:
    """Lanes over an installation in memory. `records`: sizes of what was appended, by partition."""

    def __init__(self, world: Installation, timeout_s: float = TIMEOUT_S) -> None:
        self.records: list[tuple[int, int]] = []
        self.is_away: set[int] = set()
        self.faults: set[int] = set()
        """Numbers of the records whose acknowledgement is lost."""
        self.open = asyncio.Event()
        self.open.set()
        self._log = world.log
        self.lanes = Lanes(PARTITIONS, self._append, world.services.view.decided, timeout_s)
        self.choose = self.lanes.choose

    async def send(self, partition: int, commands: Sequence[Keyed]) -> int:
        """See `CommandLog.send`."""
        return await self.lanes.send(partition, [Sized(keyed, 100) for keyed in commands])

    async def _append(self, partition: int, packed: list[Keyed]) -> int | Refused:
        number = len(self.records)
        self.records.append((partition, len(packed)))
        await self.open.wait()
        if partition in self.is_away:
            await asyncio.Event().wait()
        offset = await self._log.send(partition, packed)
        return Refused("not-durable") if number in self.faults else offset


@pytest.fixture
async def broker(world: Installation) -> Broker:
    broker = Broker(world)
    world.services.commands = broker
    return broker


def keyed(number: int, partition: int = 0) -> Keyed:
    job_id = f"{partition}-{number}"
    command = SubmitJob(
        tenant="acme", job_id=job_id, command_id=job_id, issued_at=0, task="t", payload=b"null"
    )
    return Keyed(job_key("acme", job_id), command)


async def post(api: httpx.AsyncClient, number: int, **body: object) -> httpx.Response:
    return await api.post("/v1/jobs", json={"task": "t", "run_at": LATER, "payload": number} | body)


async def posted(api: httpx.AsyncClient, world: Installation, count: int) -> list[httpx.Response]:
    """Creates of three kinds, all at once: with an id, with one that nine others want, with none."""

    def id_of(number: int) -> dict[str, object]:
        return [{"id": f"own-{number}"}, {"id": f"shared-{number // 30}"}, {}][number % 3]

    return await asyncio.gather(*(post(api, number, **id_of(number)) for number in range(count)))


@pytest.mark.timeout(60)
async def test_each_of_many_creates_is_answered_for_itself(
    world: Installation, api: httpx.AsyncClient, broker: Broker
) -> None:
    broker.open.clear()
    asyncio.get_running_loop().call_later(0.05, broker.open.set)
    answers = await posted(api, world, 300)
    for number, answer in enumerate(answers):
        assert answer.status_code in ((201, 409) if number % 3 == 1 else (201,)), answer.text
        if answer.status_code == 201:
            assert answer.json()["payload"] == number
            found = await api.get(f"/v1/jobs/{answer.json()['id']}")
            assert found.json()["payload"] == number
    statuses = Counter(answer.status_code for answer in answers[1::3])
    assert statuses == {201: 10, 409: 90}
    assert len(world.log.sent) == 300
    assert len(broker.records) < 60


@pytest.mark.timeout(60)
async def test_a_record_whose_fate_is_unknown_is_that_of_its_commands_alone(
    world: Installation, api: httpx.AsyncClient, broker: Broker
) -> None:
    broker.faults = {2, 4, 5}
    answers = await posted(api, world, 150)
    unknown = sum(answer.status_code == 503 for answer in answers)
    assert unknown == sum(size for number, (_, size) in enumerate(broker.records) if number in broker.faults)
    assert unknown > 0
    broker.faults.clear()
    for number, answer in enumerate(answers):
        if answer.status_code == 201:
            assert answer.json()["payload"] == number
        if number % 3 == 0 and answer.status_code == 503:
            again = await post(api, number, id=f"own-{number}")
            assert again.status_code == 201
            assert again.json()["payload"] == number


async def test_a_partition_that_does_not_answer_holds_up_no_other(
    world: Installation, api: httpx.AsyncClient
) -> None:
    broker = world.services.commands = Broker(world, timeout_s=3)
    broker.is_away = {0}
    names = [f"own-{number}" for number in range(40)]
    answers = await asyncio.gather(*(post(api, number, id=name) for number, name in enumerate(names)))
    for name, answer in zip(names, answers, strict=True):
        is_away = world.services.view.partition_of_job("acme", name) == 0
        assert answer.status_code == (503 if is_away else 201)
    assert sum(partition == 0 for partition, _ in broker.records) == 1


async def test_what_a_caller_gave_up_while_it_waited_is_never_sent(
    world: Installation, broker: Broker
) -> None:
    broker.open.clear()
    first = asyncio.create_task(broker.send(0, [keyed(0)]))
    while not broker.records:
        await asyncio.sleep(0)
    left, stays = (asyncio.create_task(broker.send(0, [keyed(number)])) for number in (1, 2))
    await asyncio.sleep(0)
    left.cancel()
    broker.open.set()
    await asyncio.gather(first, stays)
    assert [command.command_id for command in world.log.sent] == ["0-0", "0-2"]


async def test_commands_gather_until_those_before_are_decided(world: Installation, broker: Broker) -> None:
    world.log.is_held = True
    await broker.send(0, [keyed(0)])
    later = [asyncio.create_task(broker.send(0, [keyed(number)])) for number in range(1, 6)]
    await asyncio.sleep(GATHER_MAX_S / 10)
    assert broker.records == [(0, 1)]
    world.log.release()
    await asyncio.gather(*later)
    assert broker.records == [(0, 1), (0, 5)]


async def test_they_gather_no_longer_than_bearable(world: Installation, broker: Broker) -> None:
    world.log.is_held = True
    async with asyncio.timeout(TIMEOUT_S):
        await broker.send(0, [keyed(0)])
        await broker.send(0, [keyed(1)])
    assert broker.records == [(0, 1), (0, 1)]


async def test_a_full_record_waits_for_nobody(
    world: Installation, broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("api.lanes.GATHER_MAX_S", 3_600)
    world.log.is_held = True
    await broker.send(0, [keyed(0)])
    async with asyncio.timeout(TIMEOUT_S):
        await broker.send(0, [keyed(number) for number in range(1, 1 + BATCH_MAX)])
    assert broker.records == [(0, 1), (0, BATCH_MAX)]
    world.log.release()


async def test_what_takes_two_records_is_answered_after_the_second(broker: Broker) -> None:
    offset = await broker.send(0, [keyed(number) for number in range(BATCH_MAX + 1)])
    assert broker.records == [(0, BATCH_MAX), (0, 1)]
    assert offset == BATCH_MAX


@pytest.fixture
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """No lane is late because this machine is."""
    monkeypatch.setattr("api.lanes.LATE_S", 600.0)
    monkeypatch.setattr("api.lanes.SHUNNED_S", 600.0)


@pytest.mark.usefixtures("patience")
async def test_jobs_without_ids_go_where_others_gather(world: Installation, broker: Broker) -> None:
    chosen = []
    broker.open.clear()
    sending = []
    for number in range(20):
        chosen.append(broker.choose())
        sending.append(asyncio.create_task(broker.send(chosen[-1], [keyed(number, chosen[-1])])))
        await asyncio.sleep(0.001)
    assert len(set(chosen[:BUSY_MIN])) == BUSY_MIN
    assert len(set(chosen[BUSY_MIN:])) == 1
    broker.open.set()
    await asyncio.gather(*sending)


async def test_jobs_without_ids_go_to_all_partitions(api: httpx.AsyncClient, broker: Broker) -> None:
    for number in range(PARTITIONS):
        assert (await post(api, number)).status_code == 201
    assert {partition for partition, _ in broker.records} == set(range(PARTITIONS))


# -- lanes that do not answer


@pytest.mark.usefixtures("patience")
async def test_jobs_without_ids_go_where_answers_come(api: httpx.AsyncClient, broker: Broker) -> None:
    """One partition refuses: it gets no command that may go elsewhere, however many gather."""
    broker.faults = {0}
    with pytest.raises(Refused, match="not-durable"):
        await broker.send(1, [keyed(0, 1)])
    for wave in range(10):
        answers = await asyncio.gather(*(post(api, 10 * wave + number) for number in range(10)))
        assert {answer.status_code for answer in answers} == {201}
    assert 1 not in {partition for partition, _ in broker.records[1:]}
    assert len(broker.records) > 10


@pytest.mark.usefixtures("patience")
async def test_a_lane_that_is_late_is_tried_again_later(broker: Broker) -> None:
    lane, now = Lane(), 1_000.0
    assert not lane.is_late(now)
    lane.begun_at = now
    assert not lane.is_late(now + 600)
    assert lane.is_late(now + 601)
    lane.begun_at, lane.shunned_until = None, now + 600
    assert lane.is_late(now + 599)
    assert not lane.is_late(now + 600)


@pytest.mark.usefixtures("patience")
async def test_where_every_lane_is_late_commands_still_go_somewhere(broker: Broker) -> None:
    broker.faults = set(range(PARTITIONS))
    for partition in range(PARTITIONS):
        with pytest.raises(Refused, match="not-durable"):
            await broker.send(partition, [keyed(0, partition)])
    assert {broker.choose() for _ in range(4 * PARTITIONS)} == set(range(PARTITIONS))


async def test_an_unforeseen_fault_strands_nobody(world: Installation) -> None:
    """Whoever waits behind it is sent with the next record."""
    appended: list[int] = []

    async def append(partition: int, packed: list[Keyed]) -> int:
        appended.append(len(packed))
        await asyncio.sleep(0)
        if len(appended) == 1:
            raise RuntimeError("planted")
        return len(appended)

    lanes = Lanes(PARTITIONS, append, world.services.view.decided, TIMEOUT_S)
    first = asyncio.create_task(lanes.send(0, [Sized(keyed(0), 100)]))
    while not appended:
        await asyncio.sleep(0)
    second = asyncio.create_task(lanes.send(0, [Sized(keyed(1), 100)]))
    with pytest.raises(Refused, match="not-durable"):
        await first
    assert await second == 2
