"""Copies of state that an audit can compare with the log: where they lie, and what is said of each.

    <checkpoint folder>/streams/<name>/manifest.json   owners' states, one folder of rows per partition
    <checkpoint folder>/view/<name>/manifest.json      the API's view, one folder of rows for all its partitions

The manifest is written last and in one step, so a copy without one was not finished and is not seen.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final, Literal

import msgspec

from minutebook.domain.view_retention import Retention
from minutebook.errors import SettingsError
from minutebook.log.written import write_whole

Part = Literal["streams", "view"]
MANIFEST: Final = "manifest.json"


class Copy(msgspec.Struct, frozen=True, kw_only=True):
    """What a copy holds of one partition: the fold of its log through `position`, where the chain's head is `head`
    (hex). `path` is the folder of rows, in a manifest relative to it. `retention`: how long a view keeps
    what is over; none where it says nothing, or is no view.
    """

    partition: int
    position: int
    head: str
    path: str
    retention: Retention | None = None


def write_manifest(folder: Path, copies: Iterable[Copy]) -> None:
    """Say what the copies in `folder` hold; the folders of rows are complete by then. `path` may be given in full."""
    entries = [
        msgspec.structs.replace(copy, path=str(Path(copy.path).absolute().relative_to(folder.absolute())))
        if Path(copy.path).is_absolute()
        else copy
        for copy in copies
    ]
    write_whole(folder / MANIFEST, msgspec.json.format(msgspec.json.encode(entries)))


def read_manifest(path: Path) -> list[Copy]:
    """Copies that a manifest names, with full paths. Raises SettingsError where it is none."""
    try:
        entries = msgspec.json.decode(path.read_bytes(), type=list[Copy])
    except msgspec.DecodeError as error:
        raise SettingsError(f"{path} is no manifest of a copy: {error}") from error
    return [msgspec.structs.replace(copy, path=str(path.parent / copy.path)) for copy in entries]


def newest(checkpoint_dir: Path, part: Part) -> dict[int, Copy]:
    """By partition the copy that reaches furthest; among equals the one made last."""
    found: dict[int, Copy] = {}
    manifests = sorted(
        (checkpoint_dir / part).glob(f"*/{MANIFEST}"), key=lambda path: path.stat().st_mtime_ns
    )
    for path in manifests:
        for copy in read_manifest(path):
            known = found.get(copy.partition)
            if known is None or copy.position >= known.position:
                found[copy.partition] = copy
    return found
