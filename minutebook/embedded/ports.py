"""Which ports the embedded broker uses: the same as last time if they are free."""

from __future__ import annotations

import json
import socket
import zlib
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from minutebook.embedded.errors import PortTakenError
from minutebook.log.written import write_whole

# Below Linux's ephemeral range (32768 up): there a client that reconnects while the broker is down can be given the
# broker's own port and connect to itself.
_FIRST, _LAST = 20_000, 32_000


@dataclass(frozen=True, slots=True)
class Ports:
    """Port of the clients, and the one on which the broker talks to its own controller."""

    clients: int
    controller: int


def choose_ports(data_dir: Path, wanted: int | None = None) -> Ports:
    """Free ports for the broker on `data_dir`, kept there for the next start; `wanted` fixes the clients' port.

    Raises PortTakenError if `wanted` is in use.
    """
    if wanted is not None and not is_free(wanted):
        raise PortTakenError(
            f"Port {wanted} on 127.0.0.1 is in use by another process. Stop that one, or choose another port."
        )
    kept = kept_ports(data_dir)
    free = free_ports(data_dir)
    clients = wanted or (kept.clients if kept and is_free(kept.clients) else next(free))
    controller = (
        kept.controller if kept and is_free(kept.controller) and kept.controller != clients else clients
    )
    while controller == clients:
        controller = next(free)
    ports = Ports(clients, controller)
    write_whole(data_dir / "ports.json", json.dumps(asdict(ports)).encode())
    return ports


def is_free(port: int) -> bool:
    """Whether a server could listen on 127.0.0.1:`port` now."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
            probe.listen(1)
        except OSError:
            return False
    return True


def free_ports(data_dir: Path) -> Iterator[int]:
    """Free ports, beginning at a place that differs from folder to folder: two first starts seldom meet."""
    span = _LAST - _FIRST
    begin = zlib.crc32(str(data_dir).encode()) % span
    for step in range(span):
        port = _FIRST + (begin + step) % span
        if is_free(port):
            yield port
    raise PortTakenError(
        f"No port from {_FIRST} to {_LAST} is free on 127.0.0.1: end some servers and start again."
    )


def kept_ports(data_dir: Path) -> Ports | None:
    """The ports of the last start on `data_dir`; None before the first."""
    try:
        return Ports(**json.loads((data_dir / "ports.json").read_text()))
    except (OSError, ValueError, TypeError):
        return None
