"""The API's priority among the processes of its machine."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path


def step_back(niceness: int) -> None:
    """Add `niceness` (0 to 19) to this process's.

    Where Linux groups processes by session (sched(7), autogroup) niceness counts within a session only, so a process
    that leads a session of its own lowers that too.
    """
    os.nice(niceness)
    group = Path("/proc/self/autogroup")
    if os.getsid(0) == os.getpid() and group.exists():
        # A courtesy: it may be refused where /proc is read-only, or another process asked a moment ago.
        with contextlib.suppress(OSError):
            group.write_text(str(niceness))
