"""Pure time rules: cron expressions, zones, and the instants they give.

Reads no clock and nothing but the zone files of the pinned tzdata package.
"""

from minutebook.schedule.cron import DayMatch, is_hashed, parse_cron, parse_schedule
from minutebook.schedule.dates import Dates
from minutebook.schedule.datetimes import Cron
from minutebook.schedule.every import Every
from minutebook.schedule.fields import ANY_JOB
from minutebook.schedule.instants import (
    INSTANT_MAX,
    INSTANT_MIN,
    Fold,
    Gap,
    each_instant,
    instants_between,
    next_instant,
    previous_instant,
)
from minutebook.schedule.plan import Plan
from minutebook.schedule.rule import CronRule
from minutebook.schedule.zones import TZDATA_VERSION, check_zone_name, utc_offset_s, zone, zone_names

__all__ = [
    "ANY_JOB",
    "INSTANT_MAX",
    "INSTANT_MIN",
    "TZDATA_VERSION",
    "Cron",
    "CronRule",
    "Dates",
    "DayMatch",
    "Every",
    "Fold",
    "Gap",
    "Plan",
    "check_zone_name",
    "each_instant",
    "instants_between",
    "is_hashed",
    "next_instant",
    "parse_cron",
    "parse_schedule",
    "previous_instant",
    "utc_offset_s",
    "zone",
    "zone_names",
]
