"""One API process: follows the log, serves the public port and the loopback one, and ends in order."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import structlog
import uvicorn
from fastapi import FastAPI

from api.app import create_app
from api.auth import Keyring
from api.due_topics import KafkaDueTopics
from api.figures import Figures
from api.follower import Follower
from api.held_runs import KafkaFrames
from api.inside import create_inside_app
from api.metrics import ViewCollector, registry_of
from api.notifier.deliveries import Deliveries
from api.notifier.metrics import NotifierCollector
from api.notifier.post import Poster
from api.notifier.reader import Notifier
from api.notifier.targets import Targets
from api.protocol import ProblemProtocol
from api.records import KafkaRecords
from api.sender import KafkaCommandLog
from api.services import Services
from api.settings import ProcessSettings
from api.view import View
from api.workers_reader import WorkersReader
from minutebook.broker_clock import BrokerClock
from minutebook.clock import Clock, SystemClock
from minutebook.domain.view_rows import FAMILIES
from minutebook.garbage import collect_rarely
from minutebook.loop_lag import LoopLag
from minutebook.store.rocks import RocksRows

_GRACE_S = 5

_log = structlog.get_logger()


class QuietServer(uvicorn.Server):
    """A server that leaves signals alone: uvicorn raises them anew when it ends, before anybody else can."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Take no signal."""
        yield

    def leave(self) -> None:
        """End in order; asked twice, at once."""
        self.force_exit = self.should_exit
        self.should_exit = True


async def serve(settings: ProcessSettings) -> None:
    """Serve until SIGTERM or SIGINT. Raises SettingsError for settings that are refused."""
    clock: Clock = SystemClock()
    keys = settings.api.all_keys()
    rows = open_rows(settings.api.data_dir / "view", settings.api.cache_bytes)
    view = View(rows, settings.topics.partitions, settings.api.retention())
    keyring = Keyring(keys, view.keys, clock, settings.api.cursor_key())
    follower = Follower(view, settings.kafka, clock)
    broker_clock, lag = BrokerClock(), LoopLag(clock)
    figures = Figures(view, clock)
    commands = KafkaCommandLog(
        settings.kafka,
        settings.topics.partitions,
        settings.api.append_timeout_s,
        clock,
        broker_clock,
        view.decided,
    )
    due_topics = KafkaDueTopics(settings.kafka, settings.topics)
    targets = Targets(settings.notify)
    services = Services(
        settings.api,
        clock,
        keyring,
        view,
        commands,
        due_topics,
        follower,
        targets,
        broker_clock=broker_clock,
    )
    notifier = make_notifier(settings, targets, clock)
    registry = registry_of(
        ViewCollector(follower, view, figures, broker_clock, lag), NotifierCollector(notifier)
    )
    frames = services.frames = KafkaFrames(settings.kafka)
    services.records = KafkaRecords(settings.kafka)
    seeing = WorkersReader(services.workers, settings.kafka, settings.topics.partitions, clock)
    public = QuietServer(server_config(create_app(services), settings.api.host, settings.api.port))
    inside_app = create_inside_app(services, registry)
    inside = QuietServer(server_config(inside_app, settings.api.health_host, settings.api.health_port))

    def leave() -> None:
        services.live.close()
        public.leave()

    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, leave)
    collect_rarely()
    try:
        async with asyncio.TaskGroup() as tasks:
            lasting = [
                tasks.create_task(run())
                for run in (follower.run, notifier.run, seeing.run, lag.run, figures.run)
            ]
            asking = tasks.create_task(inside.serve())
            await public.serve()
            inside.should_exit = True
            await asking
            for task in lasting:
                task.cancel()
    finally:
        await commands.stop()
        await frames.stop()
        rows.close()


def make_notifier(settings: ProcessSettings, targets: Targets, clock: Clock) -> Notifier:
    """The notifier, not yet running."""
    tally: Counter[str] = Counter()
    poster = Poster(targets.rules, settings.notify.timeout_s)
    return Notifier(settings.kafka, lambda: Deliveries(targets, poster, clock, tally), tally)


def open_rows(folder: Path, cache_bytes: int) -> RocksRows:
    """The view's store; what is damaged is dropped, since the log has it all."""
    try:
        return RocksRows(folder, FAMILIES, cache_bytes=cache_bytes)
    except Exception as error:  # rocksdict raises plain Exception
        if "Corruption" not in str(error):
            raise
        _log.warning("view_damaged", folder=str(folder), reason=str(error))
        shutil.rmtree(folder)
        return RocksRows(folder, FAMILIES, cache_bytes=cache_bytes)


def server_config(app: FastAPI, host: str, port: int) -> uvicorn.Config:
    """httptools, and uvloop where it is installed; nothing about ourselves in the answers."""
    return uvicorn.Config(
        app,
        host,
        port,
        lifespan="off",
        http=ProblemProtocol,
        ws="none",
        access_log=False,
        log_config=None,
        server_header=False,
        date_header=False,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=_GRACE_S,
        proxy_headers=False,
    )
