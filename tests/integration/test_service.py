"""One process kept running: restarted when it ends, gone with all its children when stopped or orphaned."""

from __future__ import annotations

import http.server
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from minutebook.embedded.service import Command, Service, answers

SLEEPER = "import time\nwhile True: time.sleep(60)"
# Writes its own pid and that of a child of its own, then sleeps.
PARENT = """
import os, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
print(os.getpid(), child.pid, flush=True)
while True: time.sleep(60)
"""
STUBBORN = """
import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print(os.getpid(), flush=True)
while True: time.sleep(60)
"""


def eventually(condition: Callable[[], bool], within_s: float = 60) -> bool:
    deadline = time.monotonic() + within_s
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


class Changes:
    """Pids at each call of `on_change`."""

    def __init__(self) -> None:
        self.pids: list[int | None] = []
        self.service: Service | None = None

    def __call__(self) -> None:
        assert self.service is not None
        self.pids.append(self.service.pid)


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Callable[[str], tuple[Service, Changes]]]:
    made: list[Service] = []

    def build(program: str) -> tuple[Service, Changes]:
        command = Command(
            "one", (sys.executable, "-c", program), dict(os.environ), tmp_path, tmp_path / "one.log"
        )
        changes = Changes()
        changes.service = Service(command, changes)
        made.append(changes.service)
        changes.service.start()
        return changes.service, changes

    yield build
    for service in made:
        service.await_stop(0)


def pids_in(log: Path, count: int) -> list[int]:
    """The pids that a program wrote as its first line."""

    def written() -> list[str]:
        return log.read_text().split() if log.exists() else []

    assert eventually(lambda: len(written()) >= count)
    return [int(text) for text in written()[:count]]


def test_killed_process_is_started_again(make: Callable[[str], tuple[Service, Changes]]) -> None:
    service, changes = make(SLEEPER)
    assert eventually(lambda: service.pid is not None)
    first = service.kill()

    assert first is not None
    assert eventually(lambda: service.pid not in (None, first))
    assert not is_alive(first)
    assert changes.pids == [first, None, service.pid]


def test_stopped_process_stays_stopped(make: Callable[[str], tuple[Service, Changes]]) -> None:
    service, changes = make(SLEEPER)
    assert eventually(lambda: service.pid is not None)
    pid = service.pid
    service.request_stop()
    service.await_stop(10)

    assert service.pid is None
    assert service.starts == 1
    assert changes.pids == [pid, None]


def test_stop_takes_the_children_of_the_process_too(
    make: Callable[[str], tuple[Service, Changes]], tmp_path: Path
) -> None:
    service, _ = make(PARENT)
    pids = pids_in(tmp_path / "one.log", 2)
    service.request_stop()
    service.await_stop(10)

    assert eventually(lambda: not any(map(is_alive, pids)))


def test_process_that_ignores_sigterm_is_killed_after_the_grace(
    make: Callable[[str], tuple[Service, Changes]], tmp_path: Path
) -> None:
    service, _ = make(STUBBORN)
    (pid,) = pids_in(tmp_path / "one.log", 1)
    service.request_stop()
    service.await_stop(0.3)

    assert not is_alive(pid)


def test_process_that_keeps_ending_is_started_ever_more_slowly(
    make: Callable[[str], tuple[Service, Changes]],
) -> None:
    began = time.monotonic()
    service, _ = make("raise SystemExit(3)")

    assert eventually(lambda: service.starts == 4)
    assert time.monotonic() - began >= 0.2 + 0.4 + 0.8


def test_stop_during_the_pause_before_a_restart_returns_at_once(
    make: Callable[[str], tuple[Service, Changes]],
) -> None:
    service, _ = make("raise SystemExit(3)")
    assert eventually(lambda: service.starts == 3 and service.pid is None)
    service.await_stop(30)

    assert service.starts == 3


@pytest.mark.parametrize("ending", [signal.SIGKILL, signal.SIGTERM])
def test_process_dies_with_its_supervisor(tmp_path: Path, ending: signal.Signals) -> None:
    """Whatever ends the supervisor: no handler of its own is needed."""
    log = tmp_path / "one.log"
    supervisor = subprocess.Popen(
        [sys.executable, "-c", SUPERVISOR, STUBBORN, str(log)], cwd=Path(__file__).parents[2]
    )
    (pid,) = pids_in(log, 1)
    supervisor.send_signal(ending)
    supervisor.wait()

    assert eventually(lambda: not is_alive(pid))


SUPERVISOR = """
import os, sys, threading
from pathlib import Path
from minutebook.embedded.service import Command, Service
program, log = sys.argv[1:]
Service(Command("one", (sys.executable, "-c", program), dict(os.environ), Path("."), Path(log)), lambda: None).start()
threading.Event().wait()
"""


def test_ready_text_counts_only_in_the_present_life(tmp_path: Path) -> None:
    log = tmp_path / "one.log"
    log.write_text("all set, said an earlier life\n")
    program = "import pathlib, time\nwhile not pathlib.Path('go').exists(): time.sleep(0.02)\nprint('all set', flush=True)"
    arguments = (sys.executable, "-c", f"{program}\n{SLEEPER}")
    command = Command("one", arguments, dict(os.environ), tmp_path, log, ready_text="all set")
    service = Service(command, lambda: None)
    service.start()
    try:
        assert eventually(lambda: service.pid is not None)
        assert not service.is_ready()
        (tmp_path / "go").touch()
        assert eventually(service.is_ready)
    finally:
        service.await_stop(0)


def test_ready_means_that_readyz_answers_200() -> None:
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200 if self.path == "/readyz" else 503)
            self.end_headers()

        def log_message(self, *_arguments: object) -> None:
            pass

    server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
    port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        assert answers(port, "/readyz")
        assert not answers(port, "/livez")
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
    assert not answers(port, "/readyz")
