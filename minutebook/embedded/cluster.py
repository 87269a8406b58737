"""All processes of one installation on one machine, in one data folder: for `minutebook dev`, the demo and
the tests.

The folder holds everything: `kafka/`, `owners/`, `api/`, `checkpoints/`, `logs/`, `api-key` and
`cluster-ports.json`. Every process dies with the one that started it, however that ends. Never for
production.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import IO, Final, NamedTuple, Self

from minutebook.client.keys import kept_key, keyring
from minutebook.clock import SystemClock
from minutebook.embedded.errors import BrokerRunningError, PortTakenError, ServiceStartError
from minutebook.embedded.kept_broker import KeptBroker
from minutebook.embedded.ports import free_ports, is_free
from minutebook.embedded.service import Command, Service
from minutebook.log import admin
from minutebook.log.admin import TopicSettings
from minutebook.log.settings import KafkaSettings
from minutebook.log.written import write_whole
from minutebook.mint import mint_login_token

Progress = Callable[[str], None]

_CHECKOUT: Final = Path(__file__).parents[2]
_START_S: Final = 60.0
_POLL_S: Final = 0.05
_STARTS_MAX: Final = 4
_STOP_S: Final = 10.0
_SESSION_TIMEOUT_S: Final = "2.0"


@dataclass(frozen=True, slots=True)
class ClusterSettings:
    """What is started: `owners` owner processes, one API, `workers` processes of the app `worker`
    (`module:app`; None = none).

    `kafka` is a broker that is there already; without it an embedded one is started. Ports are chosen free
    and kept for the next start, unless given. `environment` goes to every process on top of what the cluster
    sets; `grace_s` is what a worker gets to finish its tasks.
    """

    data_dir: Path
    owners: int = 2
    workers: int = 2
    worker: str | None = None
    queues: Sequence[str] = ()
    concurrency: int = 100
    kafka: KafkaSettings | None = None
    kafka_port: int | None = None
    api_port: int | None = None
    topics: TopicSettings = field(default_factory=TopicSettings)
    environment: Mapping[str, str] = field(default_factory=dict)
    grace_s: float = 10.0


class Running(NamedTuple):
    """A live process of the cluster."""

    name: str
    pid: int


class Cluster:
    """Starts all processes, keeps them running and stops them: workers first, then API, owners, broker.

    `on_change` is called, from any thread, after each start and each end of a process.
    """

    def __init__(self, settings: ClusterSettings, on_change: Callable[[Cluster], None] | None = None) -> None:
        self._settings = settings
        self._data_dir = settings.data_dir.absolute()
        self._report = on_change or (lambda _cluster: None)
        self._broker: KeptBroker | None = None
        self._kafka = settings.kafka
        self._ports: dict[str, int] = {}
        self._owners: list[Service] = []
        self._apis: list[Service] = []
        self._workers: list[Service] = []
        self._clock = SystemClock()
        self._changing = threading.Lock()
        self._pause = threading.Event()
        self._lock: IO[str] | None = None
        self._login_token = mint_login_token()

    def start(self, progress: Progress | None = None) -> None:
        """Start everything and return once every process says that it is ready; `progress` gets one line per
        step.

        Raises BrokerRunningError if the folder is in use, PortTakenError, ServiceStartError with the end of
        the log of what did not start, and what `Broker.start` and `admin.create` raise; after any of them
        nothing runs.
        """
        tell = progress or (lambda _line: None)
        try:
            self._prepare()
            kafka = self._start_broker(tell)
            made = admin.create(kafka, self._settings.topics)
            tell(f"Topics: {len(made)} made" if made else "Topics: all there")
            self._start_services(tell)
        except BaseException:
            self.kill_all()
            raise

    def stop(self, progress: Progress | None = None) -> None:
        """Let everything end in order and wait for it; what does not end in time is killed. Does nothing the
        second time.
        """
        tell = progress or (lambda _line: None)
        stages = (
            (self._workers, self._settings.grace_s + _STOP_S),
            (self._apis, _STOP_S),
            (self._owners, _STOP_S),
        )
        for services, grace_s in stages:
            for service in services:
                if service.pid is not None:
                    tell(f"{service.name} stops")
                service.request_stop()
            for service in services:
                service.await_stop(grace_s)
        if self._broker is not None:
            tell("Kafka stops")
        self._end()

    def kill_all(self) -> None:
        """End everything at once, as a power cut would."""
        for service in self.services:
            service.await_stop(0)
        self._end(at_once=True)

    def __enter__(self) -> Self:
        """Start, as `start()`."""
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop, as `stop()`."""
        self.stop()

    @property
    def services(self) -> Sequence[Service]:
        """Owners, API and workers, in this order."""
        return [*self._owners, *self._apis, *self._workers]

    @property
    def processes(self) -> Sequence[Running]:
        """What is alive now, the broker first."""
        kept: list[KeptBroker | Service] = [*([self._broker] if self._broker else ()), *self.services]
        return [Running(one.name, pid) for one in kept if (pid := one.pid) is not None]

    @property
    def api_url(self) -> str:
        """Where the API listens, without a slash at the end."""
        return f"http://127.0.0.1:{self._ports['api']}"

    @property
    def login_url(self) -> str:
        """Where a browser is logged in to the pages: once, within ten minutes of the API's start."""
        return f"{self.api_url}/login?token={self._login_token}"

    @property
    def api_key(self) -> str:
        """The credential of the tenant `default`, role admin; kept in the folder in a file only its owner can
        read.
        """
        return kept_key(self._data_dir / "api-key")

    @property
    def bootstrap_servers(self) -> str:
        """Where Kafka listens."""
        return self.kafka.bootstrap_servers

    @property
    def kafka(self) -> KafkaSettings:
        """How to reach Kafka. Raises ServiceStartError before the start."""
        if self._kafka is None:
            raise ServiceStartError("Kafka has no address before the cluster's start: call start()")
        return self._kafka

    @property
    def checkpoint_dir(self) -> Path:
        """Folder into which owners and API put consistent copies of their state."""
        return self._data_dir / "checkpoints"

    @property
    def health_ports(self) -> Mapping[str, int]:
        """Loopback health port of each owner and of the API, by name."""
        found = {one.name: one.command.health_port for one in (*self._owners, *self._apis)}
        return {name: port for name, port in found.items() if port is not None}

    @property
    def environment(self) -> dict[str, str]:
        """What every process gets: the caller's environment without settings of ours, then ours."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith("MINUTEBOOK_")}
        return {
            **kept,
            "PYTHONUNBUFFERED": "1",
            **_kafka_environment(self.kafka),
            "MINUTEBOOK_TOPICS_PARTITIONS": str(self._settings.topics.partitions),
            "MINUTEBOOK_TOPICS_INBOX_PARTITIONS": str(self._settings.topics.inbox_partitions),
        }

    def service(self, name: str) -> Service:
        """The process called `name`. Raises KeyError."""
        return {one.name: one for one in self.services}[name]

    def kill(self, name: str) -> int | None:
        """Kill one process with SIGKILL, as a crash would; it is started again. Returns its pid. Raises
        KeyError.
        """
        if name == KeptBroker.name and self._broker is not None:
            return self._broker.kill()
        return self.service(name).kill()

    def await_ready(self, services: Sequence[Service] | None = None) -> None:
        """Wait until `services` (by default all) are ready. Raises ServiceStartError when one keeps ending,
        or after 60 s.
        """
        pending = list(self.services if services is None else services)
        before = {one.name: one.starts for one in pending}
        deadline = self._clock.monotonic() + _START_S
        while pending := [one for one in pending if not one.is_ready()]:
            for one in pending:
                if one.starts - before[one.name] >= _STARTS_MAX:
                    raise _not_started(one, "it keeps ending")
            if self._clock.monotonic() > deadline:
                raise _not_started(pending[0], f"it was not ready within {_START_S:.0f} s")
            self._pause.wait(_POLL_S)

    def _prepare(self) -> None:
        for folder in ("logs", "owners", "api", "checkpoints"):
            (self._data_dir / folder).mkdir(parents=True, exist_ok=True)
        self._lock = lock_folder(self._data_dir)
        names = ["api", "api-health", *(f"owner-{n}-health" for n in range(1, self._settings.owners + 1))]
        self._ports = _choose_ports(self._data_dir, names, self._settings.api_port)

    def _start_broker(self, tell: Progress) -> KafkaSettings:
        if self._kafka is None:
            self._broker = KeptBroker(self._data_dir / "kafka", self._settings.kafka_port, self._changed)
            self._broker.start(tell)
            self._kafka = KafkaSettings(bootstrap_servers=self._broker.bootstrap_servers)
        return self._kafka

    def _start_services(self, tell: Progress) -> None:
        shared = self.environment
        numbers = range(1, self._settings.owners + 1)
        self._owners = [Service(self._owner(n, shared), self._changed) for n in numbers]
        self._apis = [Service(self._api(shared), self._changed)]
        self._workers = [Service(one, self._changed) for one in self._worker_commands(shared)]
        for service in self.services:
            tell(f"{service.name} starts")
            service.start()
        self.await_ready()
        tell(f"All ready: {', '.join(service.name for service in self.services)}")

    def _owner(self, number: int, shared: Mapping[str, str]) -> Command:
        name = f"owner-{number}"
        port = self._ports[f"{name}-health"]
        own = {
            "MINUTEBOOK_STREAMS_DATA_DIR": str(self._data_dir / "owners" / name),
            "MINUTEBOOK_STREAMS_CHECKPOINT_DIR": str(self.checkpoint_dir),
            "MINUTEBOOK_STREAMS_INSTANCE_ID": name,
            "MINUTEBOOK_STREAMS_HEALTH_PORT": str(port),
            "MINUTEBOOK_STREAMS_SESSION_TIMEOUT_S": _SESSION_TIMEOUT_S,
        }
        return self._command(name, ("-m", "streams"), shared, own, port)

    def _api(self, shared: Mapping[str, str]) -> Command:
        port = self._ports["api-health"]
        own = {
            "MINUTEBOOK_API_PORT": str(self._ports["api"]),
            "MINUTEBOOK_API_HEALTH_PORT": str(port),
            "MINUTEBOOK_API_DATA_DIR": str(self._data_dir / "api"),
            "MINUTEBOOK_API_CHECKPOINT_DIR": str(self.checkpoint_dir),
            "MINUTEBOOK_API_KEYS": keyring(self.api_key),
            "MINUTEBOOK_API_LOGIN_TOKEN": self._login_token,
            "MINUTEBOOK_API_LOGIN_KEY": hashlib.sha256(self.api_key.encode()).hexdigest(),
        }
        return self._command("api", ("-m", "api"), shared, own, port)

    def _worker_commands(self, shared: Mapping[str, str]) -> Iterator[Command]:
        app = self._settings.worker
        for number in range(1, self._settings.workers + 1) if app else ():
            name = f"worker-{number}"
            own = {
                "MINUTEBOOK_WORKER_NAME": name,
                "MINUTEBOOK_WORKER_CONCURRENCY": str(self._settings.concurrency),
                "MINUTEBOOK_WORKER_GRACE_S": str(self._settings.grace_s),
                # The user's module lies where the cluster was started, not in the checkout.
                "PYTHONPATH": os.pathsep.join(filter(None, (os.getcwd(), os.environ.get("PYTHONPATH")))),
            }
            if self._settings.queues:
                own["MINUTEBOOK_WORKER_QUEUES"] = ",".join(self._settings.queues)
            arguments = ("-m", "minutebook.cli", "worker", "run", str(app))
            yield replace(self._command(name, arguments, shared, own), ready_text="worker runs")

    def _command(
        self,
        name: str,
        arguments: Sequence[str],
        shared: Mapping[str, str],
        own: Mapping[str, str],
        port: int | None = None,
    ) -> Command:
        return Command(
            name,
            (sys.executable, *arguments),
            {**shared, **own, **self._settings.environment},
            _CHECKOUT,
            self._data_dir / "logs" / f"{name}.log",
            port,
        )

    def _changed(self) -> None:
        with self._changing:
            self._report(self)

    def _end(self, at_once: bool = False) -> None:
        if self._broker is not None:
            self._broker.stop(at_once)
            self._broker = None
        if self._lock is not None:
            self._lock.close()
            self._lock = None


def _kafka_environment(kafka: KafkaSettings) -> dict[str, str]:
    """The settings of `kafka` as another process reads them."""
    found = {name: value for name, value in kafka.model_dump().items() if value not in (None, "")}
    if kafka.sasl_password is not None:
        found["sasl_password"] = kafka.sasl_password.get_secret_value()
    return {f"MINUTEBOOK_KAFKA_{name.upper()}": str(value) for name, value in found.items()}


def lock_folder(data_dir: Path) -> IO[str]:
    """Keep every other cluster off `data_dir` until the handle is closed. Raises BrokerRunningError naming
    the holder.
    """
    handle = (data_dir / "cluster.lock").open("a+")
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        handle.seek(0)
        holder = handle.read().strip() or "unknown"
        handle.close()
        raise BrokerRunningError(
            f"{data_dir} is in use by process {holder}. Stop that one, or use another data folder."
        ) from None
    handle.truncate(0)
    handle.write(f"{os.getpid()}\n")
    handle.flush()
    return handle


def _choose_ports(data_dir: Path, names: Sequence[str], api_port: int | None) -> dict[str, int]:
    """A free port for each name, the one of the last start where it is still free; `api_port` fixes the
    API's.
    """
    if api_port is not None and not is_free(api_port):
        raise PortTakenError(
            f"Port {api_port} on 127.0.0.1 is in use. Stop what uses it, or choose another port."
        )
    file = data_dir / "cluster-ports.json"
    kept: dict[str, int] = {}
    with contextlib.suppress(OSError, ValueError):
        kept = json.loads(file.read_text())
    taken = set(kept.values())
    free = (port for port in free_ports(data_dir / "cluster") if port not in taken)
    ports = {name: kept[name] if name in kept and is_free(kept[name]) else next(free) for name in names}
    if api_port is not None:
        ports["api"] = api_port
    write_whole(file, json.dumps(ports).encode())
    return ports


def _not_started(service: Service, what: str) -> ServiceStartError:
    return ServiceStartError(
        f"{service.name} did not start: {what}.\n"
        f"Last lines of {service.command.log_file}:\n{service.last_lines()}"
    )
