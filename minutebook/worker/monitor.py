"""The port of a worker for whoever watches it: `/livez /startupz /readyz /metrics`. Only where it is asked for.

It answers from a thread of its own, so that it does so while tasks block the event loop. Needs the extra `prometheus`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final, NamedTuple

import msgspec
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from minutebook import __version__
from minutebook.collectors import gauge, gauge_family
from minutebook.loop_lag import LoopLag
from minutebook.worker.link import Link

JSON: Final = "application/json"
_READ_S: Final = 5.0


class _Answer(NamedTuple):
    status: int
    kind: str
    body: bytes


class Monitor:
    """Watches a worker through its link and its loop's lag. `start` it, `stop` it."""

    def __init__(self, link: Link, lag: LoopLag) -> None:
        self._link = link
        self._registry = CollectorRegistry()
        self._registry.register(_WorkerCollector(link, lag))
        self._paths: dict[str, Callable[[], _Answer]] = {
            "/livez": lambda: _health(link.silence()),
            "/startupz": lambda: _health("" if link.has_started else link.unready()),
            "/readyz": lambda: _health(link.unready()),
            "/metrics": lambda: _Answer(200, CONTENT_TYPE_LATEST, generate_latest(self._registry)),
        }

    def start(self, host: str, port: int) -> int:
        """Listen; the port, where 0 was given a free one. Raises OSError where it cannot be had."""
        self._server = ThreadingHTTPServer((host, port), self._handler())
        self._thread = threading.Thread(
            target=self._server.serve_forever, name="minutebook-monitor", daemon=True
        )
        self._thread.start()
        return int(self._server.server_address[1])

    def stop(self) -> None:
        """Answer nothing more."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        paths = self._paths

        class Handler(BaseHTTPRequestHandler):
            timeout = _READ_S

            def do_GET(self) -> None:
                path = self.path.partition("?")[0]
                answer = paths[path]() if path in paths else _Answer(404, JSON, b'{"reason":"no such path"}')
                self.send_response(answer.status)
                self.send_header("Content-Type", answer.kind)
                self.send_header("Content-Length", str(len(answer.body)))
                self.end_headers()
                self.wfile.write(answer.body)

            def log_message(self, format: str, *args: Any) -> None:
                """Nobody wants to read of every look."""

        return Handler


def _health(reason: str) -> _Answer:
    return _Answer(
        503 if reason else 200, JSON, msgspec.json.encode({"is_ready": not reason, "reason": reason})
    )


class _WorkerCollector(Collector):
    """Reads the figures when asked."""

    def __init__(self, link: Link, lag: LoopLag) -> None:
        self._link = link
        self._lag = lag

    def collect(self) -> Iterator[Metric]:
        """The metrics, now."""
        busy, free = self._link.slots()
        yield gauge_family("minutebook_worker_slots", [(("busy",), busy), (("free",), free)])
        yield gauge("minutebook_clock_skew_seconds", self._link.broker_clock.skew_ms / 1_000)
        yield gauge("minutebook_loop_lag_seconds", self._lag.worst_s())
        yield gauge_family("minutebook_build_info", [((__version__,), 1)])
