"""The embedded broker that another process holds on a data folder: seen, and asked to end."""

from __future__ import annotations

import fcntl
import os
import signal
import time
from pathlib import Path
from typing import Final, NamedTuple

from minutebook.embedded.ports import kept_ports

_LOOK_S: Final = 0.1


class Held(NamedTuple):
    """A broker that is held: by which process, and where clients reach it."""

    pid: int
    bootstrap_servers: str


def held(data_dir: Path) -> Held | None:
    """Who holds the broker on `data_dir`; None where nobody does."""
    try:
        handle = (data_dir / "broker.lock").open("r+")
    except FileNotFoundError:
        return None
    with handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            ports, pid = kept_ports(data_dir), handle.read().strip()
            return Held(int(pid), f"127.0.0.1:{ports.clients}") if ports and pid.isdecimal() else None
    return None


def stop_held(data_dir: Path, patience_s: float) -> bool:
    """Ask the holder to end (SIGTERM), and wait. Whether the folder is free then."""
    found = held(data_dir)
    if found is None:
        return True
    os.kill(found.pid, signal.SIGTERM)
    for _ in range(int(patience_s / _LOOK_S)):
        if held(data_dir) is None:
            return True
        time.sleep(_LOOK_S)
    return held(data_dir) is None
