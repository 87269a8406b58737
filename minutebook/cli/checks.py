"""What `minutebook doctor` finds: one line a check, ok, warn or fail, each finding with its remedy."""

from __future__ import annotations

from typing import Literal

import msgspec

State = Literal["ok", "warn", "fail"]


class Check(msgspec.Struct):
    """One line: what was looked at, how it is, what was found, and what to do where it is not ok."""

    check: str
    state: State
    found: str
    remedy: str = ""
