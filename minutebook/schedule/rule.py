"""What a cron expression means, without its text: the values of each field, as bits."""

from dataclasses import dataclass

from minutebook.schedule.tzif import YEAR_END

YEAR_BASE = 1969
"""Year of bit 0 of `CronRule.years`: west of Greenwich the epoch is still a day of 1969."""
EVERY_YEAR = (2 << YEAR_END - YEAR_BASE) - 1
"""Up to `YEAR_END`: east of Greenwich it has begun before the last instant."""
EVERY_DAY = 0xFFFFFFFE
EVERY_WEEKDAY = 0x7F


@dataclass(frozen=True, slots=True)
class CronRule:
    """A parsed cron expression. Expressions that mean the same are equal.

    Each field is a set of values, as an int whose bit v is set for value v: seconds and minutes 0-59, hours 0-23, months
    1-12. None of these is empty. Days of the month are the union of `days`, `month_ends` and `near_weekdays`, days of
    the week that of `weekdays`, `last_weekdays` and `nth_weekdays`. Some day matches.
    """

    minutes: int
    hours: int
    days: int
    """Days of the month, 1-31."""
    months: int
    weekdays: int
    """0-6 from Sunday."""
    is_either_day: bool
    """A day matches if either its day of the month or its day of the week does. Otherwise both must."""
    is_elapsed: bool
    """The minute or hour field begins with `*`: an interval rather than a fixed time of day (see `instants`)."""
    seconds: int = 1
    years: int = EVERY_YEAR
    """Bit 0 is `YEAR_BASE`."""
    month_ends: int = 0
    """Days before the last day of the month, 0-30: `L` is bit 0."""
    near_weekdays: int = 0
    """Days of the month whose nearest Monday-to-Friday of the same month is meant; bit 0: the last such day (`LW`)."""
    last_weekdays: int = 0
    """Days of the week that are meant on their last day in the month (`5L`)."""
    nth_weekdays: int = 0
    """Bit 7 (n - 1) + weekday: the n-th such day of the month (`5#n`), n from 1 to 5."""


def values_of(bits: int) -> list[int]:
    """The values in a set, ascending."""
    return [value for value in range(bits.bit_length()) if bits >> value & 1]


def lowest(bits: int) -> int:
    """The lowest value in a set that is not empty."""
    return (bits & -bits).bit_length() - 1


def highest(bits: int) -> int:
    """The highest value in a set that is not empty."""
    return bits.bit_length() - 1
