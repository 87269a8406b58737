"""The error tree. Refusals that callers must expect are values in `domain`; these are faults and bad arguments.

MinutebookError
├── ScheduleError (also ValueError)   a cron expression or zone that is refused: field, reason
├── DecodeError                       bytes that are no record of ours
├── LogError                          the log of a partition cannot be trusted or extended: the partition halts
│   ├── LogGapError                   a record is missing before the one read
│   ├── BrokenFrameError              a valid frame that no fold can apply
│   └── LogMismatchError              the store does not belong to this log, or the log is not the expected one
├── AppendUnknownError                nobody knows whether a frame was appended: leave, let the next owner read
├── ClockError                        this machine's clock and the broker's differ by more than the bound: stop deciding
├── OwnershipLostError                another owner has taken the partition
└── SettingsError                     a broker, topic or process setting that is refused, with its remedy
"""

from __future__ import annotations


class MinutebookError(Exception):
    """Root of all errors of minutebook."""


class ScheduleError(MinutebookError, ValueError):
    """A schedule that is refused: which field, and why."""

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(f"{field}: {reason}")
        self.field = field
        self.reason = reason


class DecodeError(MinutebookError):
    """Bytes that are no record of ours."""


class LogError(MinutebookError):
    """The log of a partition cannot be trusted or extended."""


class LogGapError(LogError):
    """A record is missing before the one read."""


class BrokenFrameError(LogError):
    """A valid frame that no fold can apply."""


class LogMismatchError(LogError):
    """The store does not belong to this log, or the log is not the expected one."""


class AppendUnknownError(MinutebookError):
    """Nobody knows whether a frame was appended."""


class ClockError(MinutebookError):
    """This machine's clock and the broker's differ by more than the bound."""


class OwnershipLostError(MinutebookError):
    """Another owner has taken the partition."""


class SettingsError(MinutebookError):
    """A setting that is refused, with its remedy."""
