"""Garbage collection of a process that lives long."""

from __future__ import annotations

import gc


def collect_rarely() -> None:
    """What was made until now is never looked at again, what comes later seldom. To be called once, after the start.

    A frame of hundreds of events, and a record of hundreds of grants, makes thousands of objects and no cycle among them.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)
