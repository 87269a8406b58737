"""All owners of one process: opened for the partitions that the group assigns here, closed when they are taken away.

A partition whose log cannot be trusted halts: alarm, not ready, nothing guessed. An append with unknown outcome, or an
owner that failed in a way nobody foresaw, ends the process; whoever comes next reads the log.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final

import msgspec
import structlog

from minutebook.errors import ClockError, LogError, OwnershipLostError
from minutebook.log.checkpoint import Copy, write_manifest
from minutebook.log.port import RawRecord
from minutebook.log.written import beside, folders_whole
from minutebook.wire import topics
from streams import metrics
from streams.feed import Feed
from streams.owner import Owner
from streams.process import Process

EXIT_LEAVE: Final = 75
AGAIN_S: Final = 1.0
CLOCK_AGAIN_S: Final = 5.0

log = structlog.get_logger()


def leave(reason: str) -> None:
    """End this process at once, without any further step: the next owner reads the log."""
    log.critical("owners_leaving", reason=reason)
    os._exit(EXIT_LEAVE)


class Host:
    """Owners by partition."""

    def __init__(self, process: Process, on_leave: Callable[[str], None] = leave) -> None:
        self._process = process
        self._leave = on_leave
        self._owners: dict[int, Owner] = {}
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self.halted: dict[int, str] = {}
        self.has_assignment = False
        self._has_served = False

    def offer(self, topic: str, partition: int, records: Iterable[RawRecord]) -> None:
        """Raw records of an input topic."""
        owner = self._owners.get(partition)
        if owner is not None:
            owner.offer(topic, records)

    def is_news(self, partition: int, report: RawRecord) -> bool:
        """Whether a report on its way here must not wait for others."""
        owner = self._owners.get(partition)
        return owner is None or owner.is_news(report)

    async def assigned(self, partitions: dict[int, set[str]]) -> None:
        """The group's word: partition -> input topics of it that are here. Only whole ones are served."""
        self.has_assignment = True
        metrics.REBALANCES.add()
        whole = {partition for partition, names in partitions.items() if names == set(topics.INPUTS)}
        for partition in partitions.keys() - whole:
            log.error("partition_assigned_apart", partition=partition)
        await self.revoked(set(self._owners) - whole)
        for partition in sorted(whole - set(self._owners)):
            self._open(partition)

    def _open(self, partition: int) -> None:
        self.halted.pop(partition, None)
        owner = self._owners[partition] = Owner(partition, self._process, self._halt)
        self._tasks[partition] = asyncio.create_task(self._run(owner), name=f"owner {partition}")

    async def _run(self, owner: Owner) -> None:
        try:
            await owner.run()
        except LogError as error:
            self._halt(owner.partition, error)
        except ClockError as error:
            self._halt(owner.partition, error)
            await asyncio.sleep(CLOCK_AGAIN_S)
            self._leave(str(error))
        except OwnershipLostError as error:
            log.warning("partition_lost", partition=owner.partition, reason=str(error))
            await owner.close()
            await asyncio.sleep(AGAIN_S)
            if self._owners.get(owner.partition) is owner and not owner.is_stopping:
                self._open(owner.partition)
        except asyncio.CancelledError:
            raise
        except BaseException as error:
            log.exception("owner_failed", partition=owner.partition)
            self._leave(f"partition {owner.partition}: {type(error).__name__}: {error}")

    def _halt(self, partition: int, error: BaseException) -> None:
        log.critical("partition_halted", partition=partition, reason=str(error))
        self.halted[partition] = str(error)

    async def revoked(self, partitions: set[int]) -> None:
        """Close owners; an append in flight is awaited first."""
        gone = [partition for partition in partitions if partition in self._owners]
        for partition in gone:
            self._owners[partition].stop()
        for partition in gone:
            await asyncio.gather(self._tasks.pop(partition), return_exceptions=True)
            await self._owners.pop(partition).close()
            self.halted.pop(partition, None)

    async def close(self) -> None:
        """Close all owners."""
        await self.revoked(set(self._owners))

    def checkpoint(self, folder: Path) -> list[dict[str, object]]:
        """Copies of every serving owner's committed state."""
        folder = folder.absolute()
        serving = [owner for owner in self._owners.values() if owner.state == "serving"]
        with folders_whole(beside(folder), [folder]) as (copy,):
            made = [owner.checkpoint(copy / f"partition-{owner.partition}") for owner in serving]
            write_manifest(copy, msgspec.convert(made, list[Copy]))
        return [one | {"path": str(folder / f"partition-{one['partition']}")} for one in made]

    def owners(self) -> list[Owner]:
        """Those of all partitions that are assigned here, by partition."""
        return [owner for _, owner in sorted(self._owners.items())]

    @property
    def instance_id(self) -> str:
        """Stable name of this process."""
        return self._process.owner_id.partition("/")[0]

    def feeds(self) -> list[Feed]:
        """Inputs of every serving owner."""
        return [
            feed
            for owner in self._owners.values()
            if owner.state == "serving" and owner.partition not in self.halted
            for feed in owner.feeds.values()
        ]

    def status(self) -> dict[str, Any]:
        """For `/readyz`: ready when every assigned partition is served and the clock is right."""
        owners = [
            {
                "partition": owner.partition,
                "state": "halted" if owner.partition in self.halted else owner.state,
                "epoch": owner.epoch(),
                "position": owner.position(),
                "records_left": owner.left,
                "clock_skew_ms": owner.skew_ms,
                "oldest_input_at": owner.oldest_input_at(),
                "due_records_held_back": owner.due_faults(),
            }
            for _, owner in sorted(self._owners.items())
        ]
        is_ready = (
            self.has_assignment and not self.halted and all(item["state"] == "serving" for item in owners)
        )
        self._has_served = self._has_served or is_ready
        return {
            "is_ready": is_ready,
            "has_started": self._has_served,
            "reason": "" if is_ready else _unready(self.has_assignment, self.halted, owners),
            "records_left": sum(owner.left for owner in self._owners.values()),
            "owner": self._process.owner_id,
            "partitions": owners,
            "halted": self.halted,
        }


def _unready(has_assignment: bool, halted: dict[int, str], owners: list[dict[str, Any]]) -> str:
    """Why a process is not ready, in words for people."""
    if not has_assignment:
        return "the group has assigned no partitions yet"
    if halted:
        partition, reason = min(halted.items())
        return f"partition {partition} is halted: {reason}"
    waiting = [item for item in owners if item["state"] != "serving"]
    left = sum(item["records_left"] for item in waiting)
    return f"{len(waiting)} of {len(owners)} partitions are not served yet, {left} records left"
