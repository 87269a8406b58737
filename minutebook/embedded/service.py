"""One process that is kept running: started, started again when it ends, stopped with all that it started
itself.
"""

from __future__ import annotations

import contextlib
import http.client
import os
import signal
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from minutebook.clock import SystemClock
from minutebook.embedded.child import spawn

_BACKOFF_FIRST_S: Final = 0.2
_BACKOFF_MAX_S: Final = 5.0
_STEADY_S: Final = 10.0
_PROBE_S: Final = 2.0


@dataclass(frozen=True, slots=True)
class Command:
    """What is run: its name, command line, whole environment, folder and log file.

    `health_port` is where `/livez` and `/readyz` answer on 127.0.0.1; None = it has no such port, and
    `ready_text` in its log says that it is ready.
    """

    name: str
    arguments: Sequence[str]
    environment: Mapping[str, str] = field(repr=False)
    folder: Path
    log_file: Path
    health_port: int | None = None
    ready_text: str = ""


class Service:
    """A process kept running by a thread of its own, which makes, awaits and replaces it.

    `on_change` is called from that thread after each start and each end. What ended after more than 10 s of life
    is started again at once; else after 0.2 s, doubling to 5 s while it keeps ending that soon.
    """

    def __init__(self, command: Command, on_change: Callable[[], None]) -> None:
        self.command = command
        self.starts = 0
        self._on_change = on_change
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._clock = SystemClock()
        self._log_start = 0
        self._thread = threading.Thread(target=self._keep, name=command.name, daemon=True)

    @property
    def name(self) -> str:
        """Name of the process, unique in its cluster."""
        return self.command.name

    @property
    def pid(self) -> int | None:
        """Process id; None between two lives."""
        process = self._process
        return None if process is None else process.pid

    def start(self) -> None:
        """Begin to keep it running; returns at once."""
        self._thread.start()

    def request_stop(self) -> None:
        """Ask it to end (SIGTERM) and start it no more; returns at once."""
        self._stopping.set()
        self._signal(signal.SIGTERM)

    def await_stop(self, grace_s: float) -> None:
        """Wait until it has ended; after `grace_s` seconds it is killed."""
        self._stopping.set()
        if self._thread.ident is None:
            return
        self._thread.join(grace_s)
        if self._thread.is_alive():
            self._signal(signal.SIGKILL)
            self._thread.join()

    def kill(self) -> int | None:
        """End this life at once (SIGKILL), as a crash would; a new one follows. Returns the pid killed, None
        if none ran.
        """
        return self._signal(signal.SIGKILL)

    def is_ready(self) -> bool:
        """Whether it runs and says that it is ready: on its health port, or in what this life has logged."""
        if self.pid is None:
            return False
        if self.command.health_port is None:
            return self.command.ready_text.encode() in self._logged()
        return answers(self.command.health_port, "/readyz")

    def last_lines(self, count: int = 15) -> str:
        """The end of its log."""
        with contextlib.suppress(OSError):
            return "\n".join(self.command.log_file.read_text(errors="replace").splitlines()[-count:])
        return ""

    def _keep(self) -> None:
        backoff_s = _BACKOFF_FIRST_S
        while not self._stopping.is_set():
            began = self._clock.monotonic()
            self._live()
            if self._clock.monotonic() - began > _STEADY_S:
                backoff_s = _BACKOFF_FIRST_S
                continue
            self._stopping.wait(backoff_s)
            backoff_s = min(backoff_s * 2, _BACKOFF_MAX_S)

    def _live(self) -> None:
        """One life: from the start until nothing of its process group is left."""
        with self.command.log_file.open("ab") as log:
            self._log_start = log.tell()
            process = spawn(self.command.arguments, self.command.environment, log, self.command.folder)
        with self._lock:
            self._process = process
            self.starts += 1
            if self._stopping.is_set():
                os.killpg(process.pid, signal.SIGTERM)
        self._on_change()
        # Awaited without being reaped: its pid, and so its group's, cannot be given to anybody else
        # meanwhile.
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        with self._lock:
            self._process = None
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        self._on_change()

    def _logged(self) -> bytes:
        with self.command.log_file.open("rb") as log:
            log.seek(self._log_start)
            return log.read()

    def _signal(self, number: signal.Signals) -> int | None:
        with self._lock:
            if self._process is None:
                return None
            if number is signal.SIGKILL:
                os.killpg(self._process.pid, number)
            else:
                os.kill(self._process.pid, number)
            return self._process.pid


def answers(port: int, path: str) -> bool:
    """Whether 127.0.0.1:`port` answers `path` with 200 within 2 s. Proxy settings of the environment play no
    part.
    """
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_PROBE_S)
    try:
        connection.request("GET", path)
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
