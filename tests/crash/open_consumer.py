"""`python -m tests.crash.open_consumer KIND STEP NTH QUEUE ...`: a reference consumer that writes down what it runs.

KIND is `share` or `classic`. At the NTH time of STEP it kills itself: `due` (due records are read, nothing is claimed),
`claim` (the broker has the claims, no due record is accepted), `answer` (the tokens are read, nothing is started),
`run` (the task has ended, nobody was told). STEP `never` lives.
"""

from __future__ import annotations

import itertools
import json
import os
import sys
import time
from functools import cache
from pathlib import Path
from typing import Any

from examples.open_queue.classic_group import ClassicGroup
from examples.open_queue.loop import Options, Transport, main, options
from examples.open_queue.records import Records
from examples.open_queue.session import Run
from examples.open_queue.share_group import ShareGroup
from tests.crash.tasks import FOLDER, die

STEPS = ("due", "claim", "answer", "run", "never")
KINDS = {"share": ShareGroup, "classic": ClassicGroup}


class Fate:
    """Ends this process at its time."""

    def __init__(self, step: str, nth: int) -> None:
        assert step in STEPS
        self._step = step
        self._nth = nth
        self._counter = itertools.count(1)

    def reach(self, step: str) -> None:
        if step == self._step and next(self._counter) == self._nth:
            die()


class Doomed:
    """A transport with a fate. See `Transport`."""

    def __init__(self, transport: Transport, fate: Fate) -> None:
        self._transport = transport
        self._fate = fate
        self._records = Records()
        self.open, self.accept, self.close = transport.open, transport.accept, transport.close

    def poll_due(self) -> list[tuple[Any, bytes]]:
        found = self._transport.poll_due()
        if found:
            self._fate.reach("due")
        return found

    def send(self, partition: int, value: bytes) -> int:
        stamp = self._transport.send(partition, value)
        if self._records.decode(value)["claims"]:
            self._fate.reach("claim")
        return stamp

    def poll_inbox(self) -> list[bytes]:
        found = self._transport.poll_inbox()
        if any(self._records.decode(value)["granted"] for value in found):
            self._fate.reach("answer")
        return found


@cache
def witness_file() -> int:
    folder = Path(os.environ[FOLDER])
    folder.mkdir(parents=True, exist_ok=True)
    return os.open(folder / f"{os.getpid()}.jsonl", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)


def witness(moment: str, run: Run) -> None:
    line = {
        "moment": moment,
        "tenant": run.due["tenant"],
        "execution": run.due["execution"],
        "attempt": run.due["attempt"],
        "token": run.token,
        "due_at": run.due["due_at"],
        "at": time.time() * 1000,
        "pid": os.getpid(),
    }
    os.write(witness_file(), f"{json.dumps(line)}\n".encode())
    os.fsync(witness_file())


def start(kind: str, fate: Fate, given: Options) -> None:
    def handle(run: Run) -> None:
        witness("start", run)
        time.sleep(0.02)
        witness("end", run)
        fate.reach("run")

    main(Doomed(KINDS[kind](given), fate), given, handle, kind)


if __name__ == "__main__":
    _, kind, step, nth, *rest = sys.argv
    sys.argv = [sys.argv[0], *rest]
    start(kind, Fate(step, int(nth)), options("See the module."))
