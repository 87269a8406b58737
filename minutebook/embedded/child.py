"""Starting a process that cannot outlive its parent, in a session of its own.

The session keeps Ctrl-C of the terminal away: it reaches only the parent, which then decides in which order
to stop.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Final

# Set in a small Python that then becomes the program: a preexec function could deadlock in a parent with
# threads. It looks at its parent once more, since one that ended before prctl sends no signal.
_DIE_WITH_PARENT: Final = """
import ctypes, os, signal, sys
ctypes.CDLL(None).prctl(1, signal.SIGKILL)
if os.getppid() != int(sys.argv[1]):
    sys.exit(1)
os.execvp(sys.argv[2], sys.argv[2:])
"""


def spawn(
    command: Sequence[str], environment: Mapping[str, str], log: IO[bytes], folder: Path | None = None
) -> subprocess.Popen[bytes]:
    """Start `command` in `folder` with exactly `environment`, its output going to `log`.

    The kernel kills it when the *thread* that called this ends (prctl(2), PR_SET_PDEATHSIG): call it from one
    that lives as long as the child should. Raises OSError if it cannot be started.
    """
    return subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", _DIE_WITH_PARENT, str(os.getpid()), *command],
        cwd=folder,
        env=dict(environment),
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
