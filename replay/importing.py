"""Exported files to state: what owners and API would hold, as copies in a checkpoint folder."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Final

import msgspec

from minutebook.errors import SettingsError
from minutebook.log.checkpoint import Copy, Part, write_manifest
from minutebook.log.written import beside, folders_whole
from replay.frames import AuditReader, check_whole
from replay.reading import TO_THE_END, Advance, Log, Until, unheard
from replay.refold import Refold, folding

PARTS: Final[tuple[Part, ...]] = ("streams", "view")
NAME: Final = "import"


class Imported(msgspec.Struct, frozen=True, kw_only=True):
    """What was folded of one partition, through `position`, where the chain's head is `head`: digests of the owner's state and
    of the view, all in hex. The last `void_at_end` records of it are void.
    """

    partition: int
    position: int
    head: str
    state: str
    view: str
    void_at_end: int = 0


def import_log(
    log: Log, partitions: list[int], folder: Path, until: Until = TO_THE_END, advance: Advance = unheard
) -> list[Imported]:
    """Fold `partitions` into new copies in the checkpoint folder `folder`: all of them, or nothing is there.

    `replay verify --checkpoints` compares them with a log, and names them `import`. Raises SettingsError where a partition
    does not begin with its first record, there is no record, or copies of that name are there, LogError, KafkaError, OSError.
    """
    check_whole(log, partitions)
    folder = folder.resolve()
    with folders_whole(beside(folder / NAME), [folder / part / NAME for part in PARTS]) as made:
        work = dict(zip(PARTS, made, strict=True))
        found = [_import_one(log, partition, work, until, advance) for partition in partitions]
        if not any(one.position >= 0 for one in found):
            raise SettingsError("the log has no record up to there: nothing was written")
        for target in made:
            copies = [
                Copy(
                    partition=one.partition,
                    position=one.position,
                    head=one.head,
                    path=f"partition-{one.partition}",
                )
                for one in found
            ]
            write_manifest(target, copies)
    return found


def _import_one(
    log: Log, partition: int, folders: dict[Part, Path], until: Until, advance: Advance
) -> Imported:
    with tempfile.TemporaryDirectory(prefix="minutebook-import-") as work:
        refold = Refold(Path(work), partition)
        try:
            reader = AuditReader()
            for _ in folding(log, refold, reader, until, advance):
                pass
            for part, folder in folders.items():
                refold.keep(part, folder / f"partition-{partition}")
            return Imported(
                partition=partition,
                position=reader.position,
                head=reader.head.hex(),
                state=refold.digest("streams").hex(),
                view=refold.digest("view").hex(),
                void_at_end=reader.void_at_end,
            )
        finally:
            refold.close()
