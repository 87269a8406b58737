"""One Kafka broker as a child process: started, waited for, stopped, killed.

The data folder holds all of it: `broker.lock` (who runs it), `ports.json`, `server.properties`, `kafka.log`, `logs/`.
The broker dies with the process that started it, however that ends. Never for production: one replica, nothing encrypted.
"""

from __future__ import annotations

import base64
import fcntl
import os
import secrets
import shutil
import signal
import socket
import subprocess
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from kafka import KafkaAdminClient
from kafka.errors import KafkaError

from minutebook.embedded import child, jars, jvm
from minutebook.embedded.errors import BrokerRunningError, BrokerStartError
from minutebook.embedded.ports import Ports, choose_ports
from minutebook.log.written import write_whole

_START_S = 60.0
_POLL_S = 0.05
_STOP_S = 30.0
_LAST_LINES = 15
Progress = Callable[[str], None]


class Broker:
    """A Kafka broker on `data_dir`, made if it is not there. One broker a folder at a time.

    `port` is the clients' port on 127.0.0.1; without it a free one is chosen and kept in the folder for the next start.
    `jar_cache` is the folder of Kafka's files, by default inside the virtual environment; `jvm_options` are
    added to the broker's command line.
    """

    def __init__(
        self,
        data_dir: Path,
        port: int | None = None,
        *,
        jar_cache: Path | None = None,
        jvm_options: Sequence[str] = (),
    ) -> None:
        self._data_dir = Path(data_dir).absolute()
        self._wanted_port = port
        self._jar_cache = jar_cache
        self._jvm_options = tuple(jvm_options)
        self._ports: Ports | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._lock: IO[str] | None = None

    def start(self, progress: Progress | None = None) -> None:
        """Start and block until the broker answers metadata requests; `progress` gets one line per step.

        Does nothing if it runs already. Raises BrokerRunningError, PortTakenError, BrokerStartError, and the errors of
        `jars.fetch`; after any of them nothing runs and the folder is free.
        """
        if self.running:
            return
        tell = progress or _silent
        self._data_dir.mkdir(parents=True, exist_ok=True)
        self._take_lock()
        try:
            self._ports = choose_ports(self._data_dir, self._wanted_port)
            class_path = jars.fetch(self._jar_cache, tell)
            self._prepare(class_path, tell)
            tell(f"Kafka {jars.KAFKA_VERSION} starts on {self.bootstrap_servers}")
            self._process = self._spawn(
                jvm.server_command(class_path, self._data_dir, self._properties, self._jvm_options)
            )
            self._await_ready()
            tell(f"Kafka answers on {self.bootstrap_servers}")
        except BaseException:
            self.kill()
            raise

    @property
    def bootstrap_servers(self) -> str:
        """`127.0.0.1:port`. Raises BrokerStartError before the first start."""
        if self._ports is None:
            raise BrokerStartError("the broker has no address before its first start: call start()")
        return f"127.0.0.1:{self._ports.clients}"

    @property
    def pid(self) -> int:
        """Process id of the running broker. Raises BrokerStartError if none runs."""
        if self._process is None or not self.running:
            raise BrokerStartError("no broker runs: call start()")
        return self._process.pid

    @property
    def running(self) -> bool:
        """Whether the process of this object is alive."""
        return self._process is not None and self._process.poll() is None

    @property
    def log_file(self) -> Path:
        """Where the broker writes its log; the run before is beside it as `kafka.log.1`."""
        return self._data_dir / "kafka.log"

    def stop(self, patience_s: float = _STOP_S) -> None:
        """Let the broker close its files (SIGTERM) and wait; after `patience_s` it is killed. Does nothing if none runs."""
        if self._process is not None and self.running:
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(patience_s)
            except subprocess.TimeoutExpired:
                self._process.kill()
        self._end()

    def kill(self) -> None:
        """End the broker at once (SIGKILL), as a crash would; `start` works again. Does nothing if none runs."""
        if self._process is not None and self.running:
            self._process.kill()
        self._end()

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
    def _properties(self) -> Path:
        return self._data_dir / "server.properties"

    def _end(self) -> None:
        if self._process is not None:
            self._process.wait()
            self._process = None
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def _take_lock(self) -> None:
        handle = (self._data_dir / "broker.lock").open("a+")
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            handle.seek(0)
            holder = handle.read().strip() or "unknown"
            handle.close()
            raise BrokerRunningError(
                f"A broker already runs on {self._data_dir}, held by process {holder}. "
                "Stop that one, or use another data folder."
            ) from None
        handle.truncate(0)
        handle.write(f"{os.getpid()}\n")
        handle.flush()
        self._lock = handle

    def _prepare(self, class_path: Sequence[Path], tell: Progress) -> None:
        assert self._ports is not None
        logs = self._data_dir / "logs"
        # A killed broker leaves the native libraries that it unpacked.
        shutil.rmtree(self._data_dir / "tmp", ignore_errors=True)
        (self._data_dir / "tmp").mkdir()
        write_whole(self._properties, jvm.properties(logs, self._ports).encode())
        if self.log_file.exists():
            self.log_file.replace(self.log_file.with_suffix(".log.1"))
        if (logs / "meta.properties").exists():
            return
        tell(f"Kafka formats {logs}")
        cluster_id = base64.urlsafe_b64encode(secrets.token_bytes(16)).decode().rstrip("=")
        formatter = self._spawn(jvm.format_command(class_path, self._data_dir, self._properties, cluster_id))
        if formatter.wait() != 0:
            raise self._failure("the data folder could not be formatted")

    def _spawn(self, command: Sequence[str]) -> subprocess.Popen[bytes]:
        """Start `command` so that it is killed when this process ends.

        A child of `child.spawn` ends with the thread that made it, so one that lives as long as the child makes it:
        callers may start the broker from a thread of a pool.
        """
        made: list[subprocess.Popen[bytes] | OSError] = []
        ready = threading.Event()

        def keep() -> None:
            try:
                with self.log_file.open("ab") as log:
                    made.append(child.spawn(command, jvm.environment(), log))
            except OSError as error:
                made.append(error)
            ready.set()
            if isinstance(made[0], subprocess.Popen):
                made[0].wait()

        threading.Thread(target=keep, name="embedded-kafka", daemon=True).start()
        ready.wait()
        if isinstance(made[0], OSError):
            raise BrokerStartError(
                f"The Java runtime could not be started: {made[0]}. Run `make setup` again."
            ) from made[0]
        return made[0]

    def _await_ready(self) -> None:
        assert self._process is not None
        for _ in range(int(_START_S / _POLL_S)):
            if self._port_open() and self._answers():
                return
            try:
                self._process.wait(_POLL_S)
            except subprocess.TimeoutExpired:
                continue
            raise self._failure(f"the broker ended with code {self._process.returncode}")
        raise self._failure(f"the broker did not answer within {_START_S:.0f} s")

    def _port_open(self) -> bool:
        assert self._ports is not None
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self._ports.clients)) == 0

    def _answers(self) -> bool:
        """Whether the broker is listed by itself: one killed before is fenced, and listed only later."""
        admin = None
        try:
            admin = KafkaAdminClient(bootstrap_servers=self.bootstrap_servers, bootstrap_timeout_ms=2000)
            return bool(admin.describe_cluster()["brokers"])
        except KafkaError:
            return False
        finally:
            if admin is not None:
                admin.close()

    def _failure(self, what: str) -> BrokerStartError:
        lines = self.log_file.read_text(errors="replace").splitlines() if self.log_file.exists() else []
        shown = "\n".join(f"  {line}" for line in lines[-_LAST_LINES:])
        return BrokerStartError(
            f"Kafka did not start: {what}. {_remedy(lines, self._data_dir)}\nLast lines of {self.log_file}:\n{shown}"
        )


def _silent(_line: str) -> None:
    pass


def _remedy(lines: Sequence[str], data_dir: Path) -> str:
    text = "\n".join(lines)
    if "Address already in use" in text:
        return "A port was taken in between: start again."
    if "No space left on device" in text:
        return f"The disk of {data_dir} is full: make room and start again."
    if "OutOfMemoryError" in text or "insufficient memory" in text:
        return "The machine has too little free memory: the broker wants about 400 MB."
    return f"Start again; if it stays so, move {data_dir} away: a new folder starts empty."
