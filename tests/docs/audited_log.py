"""The log of the auditor's page: three nights of a job that ran, was paused, and ran again."""

from __future__ import annotations

from datetime import UTC, datetime

from msgspec.structs import replace

from tests.simulation.log_maker import LogMaker, pause, resume, submit, success

HOUR = 3_600_000
RUN_MS = 90_000
OPENED_AT = int(datetime(2026, 3, 1, 12, tzinfo=UTC).timestamp() * 1_000)


def nights() -> LogMaker:
    """`nightly` of tenant `acme`, due at 02:30 each night; paused over the second one."""
    maker = LogMaker(now=OPENED_AT)
    maker.open()
    maker.command(
        submit(
            "nightly",
            cron="30 2 * * *",
            task="report.build",
            actor="key:4f1c2a90be37d815 via cli from 10.0.0.7",
            issued_at=OPENED_AT,
        )
    )
    _night(maker)
    maker.clock.advance(7 * HOUR)
    said = {"actor": "key:9a02d1e6c3b4f587 via page from 10.0.0.9", "issued_at": maker.clock.now()}
    maker.command(pause("nightly", reason="the feed is broken", **said))
    maker.clock.advance(24 * HOUR)
    maker.command(resume("nightly", **(said | {"issued_at": maker.clock.now()})))
    _night(maker)
    return maker


def _night(maker: LogMaker) -> None:
    """Until the next instant, and through its run."""
    day = 24 * HOUR
    half_past_two = 2 * HOUR + HOUR // 2
    maker.clock.advance((half_past_two - maker.clock.now()) % day)
    maker.due("w1.1")
    maker.clock.advance(RUN_MS)
    told = success(maker.running())
    assert told.succeeded is not None
    maker.report(replace(told, succeeded=replace(told.succeeded, run_ms=[RUN_MS])))
