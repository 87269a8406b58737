"""How golden histories were made, one function each: its name, with dashes, is that of the history."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tests.golden.scene import Scene

Play = Callable[[], Scene]
PLAYS: Final[dict[str, Play]] = {}


def history(play: Play) -> Play:
    """Register how a history is made."""
    PLAYS[play.__name__.replace("_", "-")] = play
    return play
