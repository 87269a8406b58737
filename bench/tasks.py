"""The tasks of the workloads. Each notes when it started; most workloads use the one that does nothing else."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from bench.witness import FOLDER, LONG, LONG_S, SHORT, SHORT_S, TASK, Witness
from minutebook import App

app = App()
_witness = Witness(Path(os.environ[FOLDER]))


@app.task(TASK)
async def stamp(number: int) -> None:
    """Run `number` is here."""
    _witness.record(number)


@app.task(SHORT)
async def short(number: int) -> None:
    """Run `number` holds its slot for a moment."""
    _witness.record(number)
    await asyncio.sleep(SHORT_S)


@app.task(LONG)
async def long(number: int) -> None:
    """Run `number` holds its slot for longer than a lease."""
    _witness.record(number)
    await asyncio.sleep(LONG_S)
