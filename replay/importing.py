"""Exported files to state: what owners and API would hold, as copies in a checkpoint folder."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Final

from minutebook.errors import SettingsError
from minutebook.log.checkpoint import Copy, Part, write_manifest
from replay.frames import AuditReader, check_whole
from replay.reading import TO_THE_END, Advance, Log, Until, unheard
from replay.refold import Refold, folding

PARTS: Final[tuple[Part, ...]] = ("streams", "view")


def import_log(
    log: Log, partitions: list[int], folder: Path, until: Until = TO_THE_END, advance: Advance = unheard
) -> dict[int, dict[Part, str]]:
    """Fold `partitions` into new copies in the checkpoint folder `folder`; the digest of each, in hex.

    `replay verify --checkpoints` compares them with a log, and names them `import`. Raises SettingsError where a
    partition does not begin with its first record or copies of that name are there, LogError, KafkaError.
    """
    check_whole(log, partitions)
    folder = folder.absolute()
    targets = {part: folder / part / "import" for part in PARTS}
    for target in targets.values():
        if target.exists():
            raise SettingsError(f"{target} is there already: choose another folder")
        target.mkdir(parents=True)
    copies: dict[Part, list[Copy]] = {part: [] for part in PARTS}
    digests: dict[int, dict[Part, str]] = {}
    for partition in partitions:
        with tempfile.TemporaryDirectory(prefix="minutebook-import-") as work:
            refold = Refold(Path(work), partition)
            try:
                reader = AuditReader()
                for _ in folding(log, refold, reader, until, advance):
                    pass
                digests[partition] = {part: refold.digest(part).hex() for part in PARTS}
                for part in PARTS:
                    path = targets[part] / f"partition-{partition}"
                    refold.keep(part, path)
                    copies[part].append(
                        Copy(
                            partition=partition,
                            position=reader.position,
                            head=reader.head.hex(),
                            path=str(path),
                        )
                    )
            finally:
                refold.close()
    for part in PARTS:
        write_manifest(targets[part], copies[part])
    return digests
