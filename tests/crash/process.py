"""One process under test: started, frozen, killed and looked at by its own pid."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import httpx

from minutebook.embedded.child import spawn
from minutebook.embedded.service import answers

ROOT = Path(__file__).parents[2]


class Process:
    """`python <arguments>`, ended with the tests. With `is_kept` the stack starts it again when it has ended by itself."""

    def __init__(
        self,
        name: str,
        arguments: Sequence[str],
        environment: Mapping[str, str],
        log_file: Path,
        *,
        health_port: int | None = None,
        is_kept: bool = False,
    ) -> None:
        self.name = name
        self.arguments = tuple(arguments)
        self.environment = dict(environment)
        self.log_file = log_file
        self.health_port = health_port
        self.is_kept = is_kept
        self.exits: list[int] = []
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def is_running(self) -> bool:
        """Whether it lives, frozen or not."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> Process:
        """Start it, again or for the first time."""
        assert not self.is_running
        self.is_stopping = False
        with self.log_file.open("ab") as log:
            self._process = spawn((sys.executable, *self.arguments), self.environment, log, ROOT)
        return self

    def is_ready(self) -> bool:
        """Whether `/readyz` says so; without a health port, whether it runs."""
        return self.is_running and (self.health_port is None or answers(self.health_port, "/readyz"))

    def kill(self) -> None:
        """SIGKILL."""
        self._signal(signal.SIGKILL)
        self.wait()

    def freeze(self) -> None:
        """SIGSTOP."""
        self._signal(signal.SIGSTOP)

    @property
    def is_frozen(self) -> bool:
        """Whether it is stopped, by SIGSTOP."""
        return (
            self.is_running and Path(f"/proc/{self.pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "T"
        )

    def thaw(self) -> None:
        """SIGCONT."""
        self._signal(signal.SIGCONT)

    def end(self) -> None:
        """SIGTERM, and to its end; SIGKILL after ten seconds."""
        if not self.is_running:
            return
        self.is_stopping = True
        self._signal(signal.SIGTERM)
        try:
            self.wait(10)
        except subprocess.TimeoutExpired:
            self.kill()

    def wait(self, within_s: float = 30) -> int:
        """Exit code, below 0 = the signal that ended it."""
        assert self._process is not None
        code = self._process.wait(within_s)
        self.exits.append(code)
        return code

    def revive(self) -> None:
        """Start it again if it ended by itself and is to be kept."""
        if self.is_kept and self._process is not None and not self.is_running:
            self.exits.append(self._process.returncode)
            self.start()

    def tail(self, lines: int = 30) -> str:
        """The end of what it said."""
        if not self.log_file.exists():
            return ""
        return "\n".join(self.log_file.read_text(errors="replace").splitlines()[-lines:])

    def health(self) -> str:
        """What `/readyz` of an owner answers."""
        if self.health_port is None or not self.is_running:
            return "nothing"
        try:
            return httpx.get(f"http://127.0.0.1:{self.health_port}/readyz", timeout=2).text
        except httpx.HTTPError as error:
            return repr(error)

    def stacks(self) -> str:
        """What each task of an owner waits for, once it has been asked; empty for what cannot answer."""
        if self.health_port is None or not self.is_running or self.is_frozen:
            return ""
        before = len(self.log_file.read_text(errors="replace"))
        self._signal(signal.SIGUSR1)
        eventually(lambda: '"action": "stack"' in self.log_file.read_text(errors="replace")[before:], 5)
        said = self.log_file.read_text(errors="replace")[before:]
        return said.replace("\\n", "\n")[:40_000] + "\n"

    def said(self, text: str) -> bool:
        """Whether its log holds `text`."""
        return self.log_file.exists() and text in self.log_file.read_text(errors="replace")

    def _signal(self, number: signal.Signals) -> None:
        os.kill(self.pid, number)


def eventually(condition: Callable[[], object], within_s: float = 40) -> bool:
    """Whether `condition` comes to hold."""
    deadline = time.monotonic() + within_s
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True
