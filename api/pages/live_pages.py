"""The pages that follow what happens."""

from __future__ import annotations

from typing import Final

from api.pages import limits, live, operations, partitions, queues, upcoming, workers

LIVE_PAGES: Final = (live, upcoming, operations, queues, workers, limits, partitions)
