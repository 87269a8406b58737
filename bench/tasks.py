"""The task of all workloads. It notes when it started and does nothing else."""

from __future__ import annotations

import os
from pathlib import Path

from bench.witness import FOLDER, TASK, Witness
from minutebook import App

app = App()
_witness = Witness(Path(os.environ[FOLDER]))


@app.task(TASK)
async def stamp(number: int) -> None:
    """Run `number` is here."""
    _witness.record(number)
