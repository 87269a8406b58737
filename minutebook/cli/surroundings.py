"""What the command line knows of where it runs: that it is the command line, and a `minutebook dev` beside it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from minutebook import __version__

DEV_DATA: Final = Path(".minutebook")
"""Folder of a `minutebook dev`, unless it is told another one."""
_PREFIX: Final = "MINUTEBOOK_CLIENT_"
_USER_AGENT: Final = f"{_PREFIX}USER_AGENT"
_SAID: Final = (f"{_PREFIX}URL", f"{_PREFIX}API_KEY", f"{_PREFIX}API_KEY_FILE")
_AGENT: Final = f"minutebook-cli/{__version__}"
ADDED: Final[dict[str, str]] = {}
"""What was not in the environment, while a command runs: name -> where it comes from, `default` or `file`."""


@contextmanager
def entered() -> Iterator[None]:
    """Inside, every client of this process says that it is the command line, and finds a `minutebook dev` of this folder.

    What the environment says goes before.
    """
    before = dict(os.environ)
    dev = dev_settings(before)
    os.environ.setdefault(_USER_AGENT, _AGENT)
    os.environ.update(dev)
    ADDED.update({_USER_AGENT: "default"} if _USER_AGENT not in before else {}, **dict.fromkeys(dev, "file"))
    try:
        yield
    finally:
        ADDED.clear()
        for name in (_USER_AGENT, *_SAID):
            os.environ.pop(name, None)
            if name in before:
                os.environ[name] = before[name]


def become_worker() -> None:
    """Let the clients of tasks say that they are a worker's, not a command's."""
    if os.environ.get(_USER_AGENT) == _AGENT:
        os.environ[_USER_AGENT] = f"minutebook-worker/{__version__}"


def dev_settings(environment: Mapping[str, str]) -> dict[str, str]:
    """Where a `minutebook dev` runs and its key, from the file that it keeps while it does; nothing if it does not.

    Address and key together or not at all: a key of the environment goes to no address from a file.
    """
    if any(name in environment for name in _SAID):
        return {}
    folder = Path(environment.get("MINUTEBOOK_DEV_DATA", DEV_DATA))
    try:
        said = json.loads((folder / "dev.json").read_text())
        return {f"{_PREFIX}URL": str(said["api_url"]), f"{_PREFIX}API_KEY": str(said["api_key"])}
    except (OSError, ValueError, KeyError, TypeError):
        return {}
