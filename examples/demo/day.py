"""The course of the demo: submit, kill an owner, kill a worker, wait for the end of everything, settle up,
verify.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from examples.demo.audit import Account, History, Kill, Life, settle
from examples.demo.client import Api
from examples.demo.display import Display
from examples.demo.plan import MINUTE_MS, PAUSED, SPREAD_MS, Planned, is_near_minute, plan
from examples.demo.witness import Sighting, WitnessFiles
from minutebook.clock import SystemClock
from minutebook.embedded.cluster import Cluster, lock_folder

PAUSED_AFTER_MS: Final = 6_000
PAUSED_FOR_MS: Final = 3_500
OWNER_KILLED_AFTER_MS: Final = 11_000
WORKER_KILLED_AFTER_MS: Final = 20_000
_LOOK_S: Final = 0.25
_MARGIN_MS: Final = 1_500
_PATIENCE_MS: Final = 60_000
_OPEN: Final = ("active", "paused")


class DemoError(Exception):
    """The demo cannot go on; the message says why."""


@dataclass(slots=True)
class Day:
    """One run on a cluster that has started, told on `display`."""

    cluster: Cluster
    display: Display
    witness: WitnessFiles
    clock: SystemClock = field(default_factory=SystemClock)
    sightings: list[Sighting] = field(default_factory=list)
    lives: dict[str, Life] = field(default_factory=dict)
    kills: list[Kill] = field(default_factory=list)
    began: int = 0

    async def run(self) -> Account:
        """Live through it. Returns the account of the three sides; raises DemoError or ApiError if it cannot
        be drawn up.
        """
        watching = asyncio.create_task(self._watch())
        try:
            async with Api(self.cluster.api_url, self.cluster.api_key) as api:
                return await self._live(api)
        finally:
            watching.cancel()

    async def _live(self, api: Api) -> Account:
        self.display.say(f"What goes on stands at {self.cluster.login_url} (good once)")
        await self._pass_minute()
        self.began = self.clock.now()
        jobs = plan(self.began)
        await asyncio.gather(self._submit(api, jobs), self._pause_one())
        await self._kill_some()
        await self._await_end(api, jobs)
        histories = await self._histories(api, jobs)
        self._look()
        return settle(jobs, self.lives, histories, self.sightings, self.kills)

    async def _submit(self, api: Api, jobs: Sequence[Planned]) -> None:
        await asyncio.gather(*(self._submit_one(api, job) for job in jobs))
        await api.cancel("cancelled")
        self.display.say(
            f"{len(jobs)} jobs submitted in {(self.clock.now() - self.began) / 1000:.1f} s, one cancelled"
        )

    async def _submit_one(self, api: Api, job: Planned) -> None:
        await api.submit(job.body)
        self.lives[job.id] = Life(self.clock.now(), self.clock.now())

    async def _pause_one(self) -> None:
        await self._until(self.began + PAUSED_AFTER_MS)
        while PAUSED not in self.lives:
            await asyncio.sleep(_LOOK_S)
        # Connections of its own: it must not wait behind all that is submitted.
        async with Api(self.cluster.api_url, self.cluster.api_key) as api:
            await api.pause(PAUSED)
            await self._until(self.clock.now() + PAUSED_FOR_MS)
            await api.resume(PAUSED)
        self.display.say(f"The job {PAUSED!r} was paused for a while; of what it missed the latest one runs")

    async def _kill_some(self) -> None:
        await self._until(self.began + OWNER_KILLED_AFTER_MS)
        self._kill("owner-1")
        await self._until(self.began + WORKER_KILLED_AFTER_MS)
        self._kill("worker-1")

    def _kill(self, name: str) -> None:
        pid = self.cluster.kill(name)
        if pid is None:
            raise DemoError(f"{name} was to be killed but does not run: see its log")
        self.kills.append(Kill(name, self.clock.now(), pid))
        self.display.say(f"{name} (process {pid}) killed with SIGKILL; it is started again")

    async def _await_end(self, api: Api, jobs: Sequence[Planned]) -> None:
        """Until every job is closed: those with an end by themselves, cron jobs cancelled once they have run."""
        ending = [job.id for job in jobs if job.instants is not None]
        last_due = self.began + SPREAD_MS
        await self._until(last_due)
        await self._await_closed(api, ending, last_due + _PATIENCE_MS)
        await self._until((self.began // MINUTE_MS + 1) * MINUTE_MS + 2 * _MARGIN_MS)
        await self._pass_minute()
        for job in jobs:
            if job.instants is None:
                self.lives[job.id] = Life(self.lives[job.id].submitted, self.clock.now())
                await api.cancel(job.id)
        self.display.say("All jobs with an end are closed, the cron jobs cancelled")

    async def _await_closed(self, api: Api, pending: list[str], deadline: int) -> None:
        while pending:
            found = await asyncio.gather(*map(api.job, pending))
            pending = [job["id"] for job in found if job["status"] in _OPEN]
            if pending and self.clock.now() > deadline:
                self.display.say(f"Not closed in time: {', '.join(pending[:5])} ({len(pending)} in all)")
                return
            await asyncio.sleep(1)

    async def _histories(self, api: Api, jobs: Sequence[Planned]) -> dict[str, History]:
        async def read(job: Planned) -> tuple[str, History]:
            return job.id, History((await api.job(job.id))["status"], await api.attempts(job.id))

        return dict(await asyncio.gather(*map(read, jobs)))

    async def _pass_minute(self) -> None:
        """Wait until no whole minute is near: else nobody could say on which side of it a command falls."""
        while is_near_minute(self.clock.now(), _MARGIN_MS):
            await asyncio.sleep(0.1)

    async def _until(self, at: int) -> None:
        await asyncio.sleep(max(0, at - self.clock.now()) / 1000)

    async def _watch(self) -> None:
        while True:
            self._look()
            elapsed_ms = self.clock.now() - self.began if self.began else 0
            self.display.show(elapsed_ms / 1000, self.cluster.processes)
            await asyncio.sleep(_LOOK_S)

    def _look(self) -> None:
        for sighting in self.witness.news():
            self.sightings.append(sighting)
            self.display.tally.add(sighting)


def fresh_folder(data: Path) -> Path:
    """`data`, empty of an earlier demo. Raises DemoError if something else is in it, BrokerRunningError if it
    is in use.
    """
    if data.exists() and any(data.iterdir()):
        if not (data / "cluster.lock").exists():
            raise DemoError(f"{data} holds something else: name another folder with --data")
        with lock_folder(data):
            shutil.rmtree(data)
    data.mkdir(parents=True, exist_ok=True)
    return data
