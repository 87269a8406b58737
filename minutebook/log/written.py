"""Files that are there whole or not at all, whatever dies meanwhile."""

from __future__ import annotations

import os
from pathlib import Path


def write_whole(path: Path, data: bytes) -> None:
    """Put `data` into `path` in one step: written beside it, made durable, then renamed. Raises OSError; `path` is then as
    it was.
    """
    unfinished = path.with_name(f"{path.name}.new")
    with unfinished.open("wb") as out:
        out.write(data)
        out.flush()
        os.fsync(out.fileno())
    os.replace(unfinished, path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
