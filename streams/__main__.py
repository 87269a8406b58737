"""`python -m streams`: one process of owners. Several on several hosts form the group."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from typing import Any

import structlog
import uvloop

from minutebook.clock import SystemClock
from minutebook.environment import require_known_names
from minutebook.errors import MinutebookError
from minutebook.garbage import collect_rarely
from minutebook.log.settings import KafkaSettings
from minutebook.logs import log_to_stderr
from minutebook.mint import mint_id
from minutebook.stacks import show_tasks_on_signal
from streams.app import Service, make_faust
from streams.host import leave
from streams.settings import StreamsSettings

log = structlog.get_logger()


async def _serve(kafka: KafkaSettings, settings: StreamsSettings) -> None:
    (settings.data_dir / "faust").mkdir(parents=True, exist_ok=True, mode=0o700)
    app: Any = make_faust(kafka, settings)
    service = Service(kafka, settings, SystemClock(), mint_id())
    app.finalize()
    await service.start(app)
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    show_tasks_on_signal()
    collect_rarely()
    await app.start()
    log.info(
        "owners_started",
        group=settings.group,
        instance=settings.instance_id,
        health_port=settings.health_port,
    )
    ends = [asyncio.ensure_future(stopping.wait()), asyncio.ensure_future(app.wait_until_stopped())]
    await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
    if not stopping.is_set():
        leave("the group consumer stopped by itself")
    log.info("owners_stopping")
    await app.stop()
    await service.stop()


def main() -> int:
    """Run until SIGTERM or SIGINT; 1 where a setting or topic is refused."""
    settings = StreamsSettings()
    log_to_stderr(settings.log_level)
    uvloop.install()
    try:
        require_known_names(os.environ, StreamsSettings, KafkaSettings)
        asyncio.run(_serve(KafkaSettings(), settings))
    except MinutebookError as error:
        sys.stderr.write(f"streams: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
