"""Pure time rules: cron expressions, zones, and the instants they give.

Reads no clock and nothing but the zone files of the pinned tzdata package.
"""

from minutebook.schedule.cron import CronRule, parse_cron
from minutebook.schedule.instants import (
    INSTANT_MAX,
    INSTANT_MIN,
    Fold,
    Gap,
    instants_between,
    next_instant,
)
from minutebook.schedule.zones import TZDATA_VERSION, check_zone_name, utc_offset_s, zone, zone_names

__all__ = [
    "INSTANT_MAX",
    "INSTANT_MIN",
    "TZDATA_VERSION",
    "CronRule",
    "Fold",
    "Gap",
    "check_zone_name",
    "instants_between",
    "next_instant",
    "parse_cron",
    "utc_offset_s",
    "zone",
    "zone_names",
]
