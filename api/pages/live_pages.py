"""The pages that follow what happens."""

from __future__ import annotations

from typing import Final

from api.pages import (
    audit,
    execution_list,
    limits,
    live,
    operations,
    overview,
    partitions,
    queues,
    upcoming,
    workers,
)

LIVE_PAGES: Final = (
    overview,
    execution_list,
    live,
    upcoming,
    operations,
    queues,
    workers,
    limits,
    partitions,
    audit,
)
