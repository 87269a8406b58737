"""Exit codes, the same for every command and for `python -m replay`."""

from __future__ import annotations

from enum import IntEnum
from typing import Final


class ExitCode(IntEnum):
    """What a script may rely on."""

    DONE = 0
    NO = 1
    USAGE = 2
    NOT_FOUND = 3
    REFUSED = 4
    UNREACHABLE = 5
    PARTLY_DONE = 6
    DENIED = 7
    INTERRUPTED = 130


MEANING: Final = {
    ExitCode.DONE: "done",
    ExitCode.NO: "the answer is no: a difference was found, a check failed, what was waited for did not succeed",
    ExitCode.USAGE: "wrong usage: an option, a setting, a file",
    ExitCode.NOT_FOUND: "there is no such thing",
    ExitCode.REFUSED: "refused as it stands (HTTP 409, 412, 422)",
    ExitCode.UNREACHABLE: "not reachable, not ready or timed out; safe to repeat",
    ExitCode.PARTLY_DONE: "partly done, or durable and not decided yet",
    ExitCode.DENIED: "denied: no key, or one that may not do this",
    ExitCode.INTERRUPTED: "interrupted",
}
"""For the pages, and for `--help`."""
