"""The embedded broker, kept running on the address that it had first."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Final

from minutebook.embedded.broker import Broker, Progress
from minutebook.embedded.errors import BrokerStartError, EmbeddedError

_LOOK_S: Final = 0.1
_BACKOFF_S: Final = 1.0


class KeptBroker:
    """A `Broker` that is started again on the same port when it ends. `on_change` is called after each start
    and each end.
    """

    name: Final = "kafka"

    def __init__(self, data_dir: Path, port: int | None, on_change: Callable[[], None]) -> None:
        self._data_dir = data_dir
        self._broker = Broker(data_dir, port)
        self._on_change = on_change
        self._stopping = threading.Event()
        self._keeper = threading.Thread(target=self._keep, name="keeps-kafka", daemon=True)

    def start(self, progress: Progress) -> None:
        """Start and wait until it answers. Raises as `Broker.start`."""
        self._broker.start(progress)
        self._on_change()
        self._keeper.start()

    @property
    def bootstrap_servers(self) -> str:
        """`127.0.0.1:port`, the same over restarts."""
        return self._broker.bootstrap_servers

    @property
    def pid(self) -> int | None:
        """Process id; None between two lives."""
        try:
            return self._broker.pid
        except BrokerStartError:
            return None

    def kill(self) -> int | None:
        """End this life at once (SIGKILL), as a crash would; a new one follows. Returns the pid killed, None
        if none ran.
        """
        pid = self.pid
        if pid is not None:
            os.kill(pid, signal.SIGKILL)
        return pid

    def stop(self, at_once: bool = False) -> None:
        """Stop it for good: letting it close its files, or `at_once` by SIGKILL."""
        self._stopping.set()
        if self._keeper.ident is not None:
            self._keeper.join()
        if at_once:
            self._broker.kill()
        else:
            self._broker.stop()

    def _keep(self) -> None:
        while not self._stopping.wait(_LOOK_S):
            if not self._broker.running:
                self._on_change()
                self._restart()

    def _restart(self) -> None:
        port = int(self.bootstrap_servers.rpartition(":")[2])
        self._broker.stop()
        again = Broker(self._data_dir, port)
        try:
            again.start()
        except EmbeddedError:
            self._stopping.wait(_BACKOFF_S)
            return
        self._broker = again
        self._on_change()
