"""`minutebook dev`: all processes on this machine with an embedded Kafka, kept running until Ctrl-C.

`dev.json` in the data folder says where they are and which live, for scripts that test the services from
outside. It is there only while they run.
"""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Final, NoReturn

import typer

from minutebook.cli.exits import ExitCode
from minutebook.cli.output import note
from minutebook.cli.surroundings import DEV_DATA
from minutebook.embedded.cluster import Cluster, ClusterSettings
from minutebook.log.settings import KafkaSettings
from minutebook.log.written import write_whole

DEMO_WORKER: Final = "examples.demo.tasks:app"
_PASSED_ON: Final = ("MINUTEBOOK_STREAMS_", "MINUTEBOOK_API_", "MINUTEBOOK_NOTIFY_", "MINUTEBOOK_WORKER_")


def dev(
    data: Annotated[
        Path, typer.Option(help="Folder of everything it keeps.", envvar="MINUTEBOOK_DEV_DATA")
    ] = DEV_DATA,
    worker: Annotated[
        str, typer.Option(help="Your tasks, as module:app.", envvar="MINUTEBOOK_APP")
    ] = DEMO_WORKER,
    owners: Annotated[int, typer.Option(min=1, help="Owner processes.")] = 2,
    workers: Annotated[int, typer.Option(min=0, help="Worker processes.")] = 2,
    queues: Annotated[
        str, typer.Option(help="Queues of the workers, with commas; all of the app by default.")
    ] = "",
    concurrency: Annotated[int, typer.Option(min=1, help="Tasks at once in each worker.")] = 100,
    api_port: Annotated[int | None, typer.Option(help="Port of the API; a free one by default.")] = None,
    kafka_port: Annotated[int | None, typer.Option(help="Port of the broker; a free one by default.")] = None,
) -> None:
    """Run Kafka, owners, API and workers, and restart what dies. Ctrl-C stops all.

    With MINUTEBOOK_KAFKA_BOOTSTRAP_SERVERS set, that broker is used and none is started.
    """
    settings = ClusterSettings(
        data_dir=data,
        owners=owners,
        workers=workers,
        worker=worker,
        queues=[name for name in queues.split(",") if name],
        concurrency=concurrency,
        kafka=_given_kafka(),
        kafka_port=kafka_port,
        api_port=api_port,
        environment=passed_on(os.environ),
    )
    status = StatusFile(data / "dev.json")
    cluster = Cluster(settings, status.changed)
    with stop_signals():
        try:
            cluster.start(note)
            status.begin(cluster)
            typer.echo(_addresses(cluster, data))
            threading.Event().wait()
        except KeyboardInterrupt:
            raise typer.Exit(ExitCode.INTERRUPTED) from None
        finally:
            status.end()
            stop(cluster)


def stop(cluster: Cluster) -> None:
    """Stop in order; interrupted again, end everything at once."""
    try:
        cluster.stop(note)
    except KeyboardInterrupt:
        note("Interrupted again: everything is ended at once")
        cluster.kill_all()


class StatusFile:
    """`dev.json`: `api_url`, `api_key`, `bootstrap_servers`, `processes` (each `name`, `pid`).

    It is replaced whole at each change, so a reader never sees half of it.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._is_kept = False
        self._writing = threading.Lock()

    def begin(self, cluster: Cluster) -> None:
        """Write it, and from now on at each change."""
        self._is_kept = True
        self.changed(cluster)

    def changed(self, cluster: Cluster) -> None:
        """Write what is alive now."""
        with self._writing:
            if not self._is_kept:
                return
            content = {
                "api_url": cluster.api_url,
                "api_key": cluster.api_key,
                "bootstrap_servers": cluster.bootstrap_servers,
                "processes": [process._asdict() for process in cluster.processes],
            }
            # Readable by its owner alone: it holds the API key.
            write_whole(self._path, (json.dumps(content, indent=2) + "\n").encode(), mode=0o600)

    def end(self) -> None:
        """Take it away: nothing that it says is true any more."""
        with self._writing:
            self._is_kept = False
            self._path.unlink(missing_ok=True)


def passed_on(environment: Mapping[str, str]) -> dict[str, str]:
    """The settings of owners, API and workers that the caller has set: they reach the processes."""
    return {name: value for name, value in environment.items() if name.startswith(_PASSED_ON)}


@contextmanager
def stop_signals() -> Iterator[None]:
    """Make SIGTERM and SIGHUP end the block as Ctrl-C does, by KeyboardInterrupt."""

    def interrupt(_number: int, _frame: object) -> NoReturn:
        raise KeyboardInterrupt

    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.signal(number, interrupt) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _given_kafka() -> KafkaSettings | None:
    return KafkaSettings() if "MINUTEBOOK_KAFKA_BOOTSTRAP_SERVERS" in os.environ else None


def _where(data: Path) -> str:
    """Where they must be started, or what they must be told."""
    return " in this folder" if data == DEV_DATA else f" with MINUTEBOOK_DEV_DATA={data}"


def _addresses(cluster: Cluster, data: Path) -> str:
    return "\n".join(
        (
            "",
            f"  API      {cluster.api_url}",
            f"  API key  {cluster.api_key}",
            f"  pages    {cluster.login_url} (good once, for 10 minutes; later log in with the key)",
            f"  Kafka    {cluster.bootstrap_servers}",
            f"  data     {data} (logs/ has one file a process, dev.json the addresses and process ids)",
            "",
            f"Until then `minutebook` commands find it{_where(data)}.",
            "Ctrl-C stops everything.",
        )
    )
