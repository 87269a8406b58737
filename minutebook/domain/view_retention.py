"""How long the read model keeps what is over, and on which shelf lies what goes as one range.

A shelf is the rows of a family whose keys begin with the same number of days, weeks or months. What cannot lie on one,
since it is looked up by its name alone, goes by `view_expiry`.
"""

from __future__ import annotations

from typing import Final

import msgspec

from minutebook.domain.keys import DAY_MS, REMEMBERED_DAYS

HISTORY_DAYS: Final = 30
DEAD_DAYS: Final = 90
AUDIT_DAYS: Final = 400

ANSWER_SHELF_DAYS: Final = 7
"""Days whose answers to commands lie together: an answer is looked for on every shelf."""
AUDIT_SHELF_DAYS: Final = 30


class Retention(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """Days before today of which is kept: what ended (`history_days`), what was given up, and the record of commands.

    Each is kept at least as long as the one before it; and what the owner may still name, at least as long as it does.
    """

    history_days: int = HISTORY_DAYS
    dead_days: int = DEAD_DAYS
    audit_days: int = AUDIT_DAYS

    @property
    def closed_days(self) -> int:
        """Of closed jobs, answers to commands, and operations."""
        return max(self.history_days, REMEMBERED_DAYS)

    @property
    def given_up_days(self) -> int:
        """Of dead executions, and of closed jobs that have one."""
        return max(self.dead_days, self.closed_days)

    @property
    def recorded_days(self) -> int:
        """Of the record of commands."""
        return max(self.audit_days, self.given_up_days)


class RetentionRow(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """By which `retention` the rows are kept, and the first day of which history is, counted from the epoch.

    `forgotten_through`: the last day of which the owner has said that it forgets what was closed on it; -1 = none.
    """

    retention: Retention
    kept_from: int = 0
    forgotten_through: int = -1


def answer_shelf(at: int) -> int:
    """Number of the shelf of what was answered at `at`."""
    return at // DAY_MS // ANSWER_SHELF_DAYS


def audit_shelf(at: int) -> int:
    """Number of the shelf of the record of what was decided at `at`."""
    return at // DAY_MS // AUDIT_SHELF_DAYS


def first_answers(retention: Retention, today: int) -> int:
    """The first shelf of answers of which any day is kept. Days are counted from the epoch."""
    return max(0, today - retention.closed_days) // ANSWER_SHELF_DAYS


def first_audit(retention: Retention, today: int) -> int:
    """The first shelf of the record of commands of which any day is kept."""
    return max(0, today - retention.recorded_days) // AUDIT_SHELF_DAYS
