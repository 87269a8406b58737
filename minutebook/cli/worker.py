"""`minutebook worker run`: run the tasks of an app. Needs the extra `worker`."""

from __future__ import annotations

import asyncio
import importlib
import logging
import os
import sys
from typing import Annotated, NoReturn

import structlog
import typer
from pydantic import ValidationError

from minutebook.cli.exits import ExitCode
from minutebook.cli.output import fault
from minutebook.cli.surroundings import become_worker
from minutebook.environment import require_known_names
from minutebook.eventloop import new_event_loop
from minutebook.garbage import collect_rarely
from minutebook.log.settings import KafkaSettings
from minutebook.logs import log_to_stderr
from minutebook.worker import App, Drained, Worker, WorkerSettings
from minutebook.worker.drain import signals_drain
from minutebook.worker.duration import duration_ms
from minutebook.worker.kafka import KafkaChannel


def run(
    target: Annotated[
        str, typer.Argument(metavar="MODULE:APP", envvar="MINUTEBOOK_APP", help="Where the app is.")
    ],
    queues: Annotated[
        str | None,
        typer.Option(
            envvar="MINUTEBOOK_WORKER_QUEUES", help="Queues to serve, with commas; else those the tasks name."
        ),
    ] = None,
    concurrency: Annotated[
        int | None,
        typer.Option(envvar="MINUTEBOOK_WORKER_CONCURRENCY", help="Tasks at once; 10 if not given."),
    ] = None,
    grace: Annotated[
        str | None,
        typer.Option(
            envvar="MINUTEBOOK_WORKER_GRACE_S",
            help="Time for tasks to finish when asked to leave, such as 30s.",
        ),
    ] = None,
    metrics_port: Annotated[
        int | None,
        typer.Option(
            envvar="MINUTEBOOK_WORKER_METRICS_PORT",
            help="Port for health and metrics, on 127.0.0.1; none if not given.",
        ),
    ] = None,
) -> None:
    """Run the tasks of an app until SIGTERM or SIGINT; a second signal ends it at once."""
    become_worker()
    require_known_names(os.environ, WorkerSettings, KafkaSettings)
    tasks = load(target)
    settings = _settings(
        queues=queues, concurrency=concurrency, grace_s=_seconds(grace), metrics_port=metrics_port
    )
    log_to_stderr()
    # What aiokafka would say at each try, the channel says once.
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)
    collect_rarely()
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        drained = runner.run(_run(tasks, settings))
    print(drained, flush=True)
    code = ExitCode.INTERRUPTED if drained.is_forced else ExitCode.DONE
    if drained.is_stuck:
        sys.stderr.flush()
        os._exit(code)  # a function on a thread does not end, and the interpreter would wait for it
    raise typer.Exit(code)


def load(target: str) -> App:
    """The app at `module:name`, searched from the working folder too. Exits with 2 where there is none."""
    module_name, _, name = target.partition(":")
    if not module_name or not name:
        _refuse(f"{target!r} is not of the form module:app")
    sys.path.insert(0, os.getcwd())
    try:
        found: object = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
            raise
        _refuse(f"there is no module {error.name!r}")
    for part in name.split("."):
        found = getattr(found, part, None)
    if not isinstance(found, App):
        _refuse(f"{target} is no minutebook.App")
    return found


async def _run(tasks: App, settings: WorkerSettings) -> Drained:
    worker = Worker(tasks, settings, KafkaChannel(KafkaSettings()))
    with signals_drain(worker):
        structlog.get_logger(__name__).info(
            "worker_started", name=settings.name, tasks=sorted(tasks.tasks), concurrency=settings.concurrency
        )
        return await worker.run()


def _settings(**given: object) -> WorkerSettings:
    try:
        return WorkerSettings(**{name: value for name, value in given.items() if value is not None})  # type: ignore[arg-type]  # checked by pydantic
    except ValidationError as error:
        first = error.errors()[0]
        _refuse(f"{'.'.join(map(str, first['loc'])) or 'settings'}: {first['msg']}")


def _seconds(text: str | None) -> float | None:
    """A duration, or a bare number of seconds as the environment has it."""
    if text is None:
        return None
    try:
        return float(text)
    except ValueError:
        pass
    try:
        return duration_ms(text) / 1_000
    except ValueError as error:
        _refuse(f"--grace: {error}")


def _refuse(reason: str) -> NoReturn:
    fault(reason)
    raise typer.Exit(ExitCode.USAGE)
