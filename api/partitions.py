"""The partitions: who owns each, as its log says, and how far the view of this process has read it."""

from __future__ import annotations

import os
from pathlib import Path

from api.catch_up import Reading
from api.positions import encode_token
from api.services import Services
from minutebook.client.live_models import Partition, PartitionPage
from minutebook.domain.view import PartitionView
from minutebook.times import format_instant


def partitions(services: Services) -> PartitionPage:
    """All partitions, also while the view is still reading the log."""
    lag, catch_up = services.readiness.lag, services.readiness.catch_up
    return PartitionPage(
        items=[
            _partition(part, lag.get(part.partition, 0), catch_up.of(part.partition))
            for part in services.view.parts
        ],
        position=encode_token(services.view.reached()),
        view_store_bytes=_folder_bytes(services.settings.data_dir / "view"),
        view_unready=services.readiness.unready(),
    )


def _partition(part: PartitionView, lag: int, reading: Reading) -> Partition:
    owner, cursor = part.owner(), part.cursor
    return Partition(
        id=part.partition,
        owner=None if owner is None else owner.owner,
        epoch=0 if owner is None else owner.epoch,
        owned_since=None if owner is None else format_instant(owner.since_at),
        applied_offset=cursor.position,
        end_offset=cursor.position + 1 + lag,
        lag=lag,
        read_per_s=None if reading.per_s is None else round(reading.per_s, 1),
        ready_in_s=reading.ready_in_s if lag else 0,
        commands_through=cursor.commands_through,
        void_frames=cursor.void_frames,
        last_decided_at=_instant(cursor.decided_at),
        last_stamped_at=_instant(cursor.stamped_at),
        ahead_of_broker_ms=cursor.decided_at - cursor.stamped_at if cursor.decided_at >= 0 else None,
    )


def _instant(at: int) -> str | None:
    return format_instant(at) if at >= 0 else None


def _folder_bytes(folder: Path) -> int | None:
    """Size of the files in a folder, which come and go meanwhile; None where there is none."""
    try:
        with os.scandir(folder) as entries:
            return sum(_file_bytes(entry) for entry in entries)
    except FileNotFoundError:
        return None


def _file_bytes(entry: os.DirEntry[str]) -> int:
    try:
        return entry.stat().st_size
    except FileNotFoundError:
        return 0
