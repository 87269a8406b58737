"""Which error ends a command with which code."""

from __future__ import annotations

from typing import Final

from minutebook.cli.exits import ExitCode
from minutebook.client.errors import ApiError, DeniedError, NotFoundError, RefusedError, UnavailableError
from minutebook.errors import MinutebookError, ScheduleError, SettingsError

_BY_ERROR: Final[tuple[tuple[type[MinutebookError], ExitCode], ...]] = (
    (NotFoundError, ExitCode.NOT_FOUND),
    (DeniedError, ExitCode.DENIED),
    (RefusedError, ExitCode.REFUSED),
    (UnavailableError, ExitCode.UNREACHABLE),
    (SettingsError, ExitCode.USAGE),
    (ScheduleError, ExitCode.USAGE),
)
_SERVER_FAULT: Final = 500


def exit_code_of(error: MinutebookError) -> ExitCode:
    """The exit code that `error` ends a command with."""
    for kind, code in _BY_ERROR:
        if isinstance(error, kind):
            return code
    if isinstance(error, ApiError) and error.problem is not None:
        return ExitCode.UNREACHABLE if error.problem.status >= _SERVER_FAULT else ExitCode.USAGE
    return ExitCode.NO
