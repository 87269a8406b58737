"""Bulk operations as values: what is done to which executions or jobs, how fast, and how far a partition is with its share.

Each is an aggregate at its home, the partition of its key. Every partition has a copy and works through its own rows.
Instants are milliseconds since the epoch, UTC.
"""

from __future__ import annotations

from typing import Final

import msgspec

from minutebook.domain.state import NONE_AT

CAUSES: Final = ("permanent", "attempts", "losses", "deadline")
"""Why executions are given up."""
RATE_MAX_PER_S: Final = 10_000


class OperationFilter(msgspec.Struct, frozen=True, gc=False):
    """Which executions or jobs are meant: those that fit every part. An empty text fits all."""

    task: str = ""
    queue: str = ""
    error_type: str = ""  # of the last error
    cause: str = ""  # permanent, attempts, losses or deadline
    job_prefix: str = ""  # start of the job id
    from_at: int = (
        NONE_AT  # ms, -1 = any: given up, or created, at or after; of a backfill, the first instant
    )
    until_at: int = (
        NONE_AT  # ms, -1 = any: given up, or created, before; of a backfill, behind the last instant
    )
    job_id: str = ""  # of one job
    tag: str = ""  # that the job has
    status: str = ""  # of the job: active or paused

    def fits_time(self, at: int) -> bool:
        """Whether what was given up, or created, at `at` is meant."""
        return self.from_at <= at and (self.until_at == NONE_AT or at < self.until_at)

    def fits_tags(self, tags: list[str]) -> bool:
        """Whether a job with those tags is meant, as far as these say."""
        return not self.tag or self.tag in tags

    def fits_end(self, given_up_at: int, cause: str, error_type: str) -> bool:
        """Whether an execution that ended so is meant, as far as its end says."""
        return (
            self.fits_time(given_up_at) and self.cause in ("", cause) and self.error_type in ("", error_type)
        )

    def fits_work(self, task: str, queue: str) -> bool:
        """Whether an execution of that task on that queue is meant, as far as these say."""
        return self.task in ("", task) and self.queue in ("", queue)

    def asks_for_work(self) -> bool:
        """Whether task or queue of an execution matter at all."""
        return bool(self.task or self.queue)


class OperationFact(msgspec.Struct, frozen=True, gc=False):
    """An operation as accepted at its home, and whether it was cancelled since. The same in every partition."""

    tenant: str
    operation: str  # its id
    kind: str
    filter: OperationFilter
    rate_per_s: int  # over all partitions, 0 = as fast as live work allows
    reason: str
    actor: str
    accepted_at: int  # the broker's stamp of the command; what was given up later is not meant
    home: int  # partition
    is_cancelled: bool = False


class OperationCount(msgspec.Struct, frozen=True, gc=False):
    """How far a partition is with its share, told to the home."""

    tenant: str
    operation: str
    matched: int  # executions that are meant, -1 = not counted yet
    done: int
    refused: int
    is_finished: bool


class Share(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """A partition's share of an operation that is not finished here.

    First it counts (`matched` -1), then it works. `through` is the last row looked at in either, `next_at` the earliest
    instant of the next piece of work, `reported_at` when the home was told last.
    """

    fact: OperationFact
    next_at: int
    matched: int = -1
    counting: int = 0
    done: int = 0
    refused: int = 0
    through: bytes = b""
    reported_at: int = NONE_AT


class HomeOperation(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """An open operation at its home: what each partition told last."""

    fact: OperationFact
    told: dict[int, OperationCount] = {}
