"""Time zones: the names that are accepted, and their data from the pinned tzdata package.

`zoneinfo.ZoneInfo(name)` reads the system's database before the package, so the version named in an event would not be
the one that was used. Zones are therefore always loaded from the package's files; `TZ`, `PYTHONTZPATH` and the system's
database have no say. A path is only ever made from a name that stands in the package's list.
"""

from difflib import get_close_matches
from functools import cache
from importlib.resources import files
from zoneinfo import ZoneInfo

import tzdata  # type: ignore[import-untyped]  # the package has no types; one string is read

from minutebook.errors import ScheduleError
from minutebook.ids import Instant
from minutebook.schedule.tzif import Timeline
from minutebook.schedule.zone_data import ZoneData

TZDATA_VERSION: str = tzdata.IANA_VERSION
"""Version of the IANA database that every answer of this package depends on, such as `2025b`."""

NAME_CHARS_MAX = 128

_SUGGEST_CHARS_MAX = 40  # the longest name has 32; comparing longer ones costs time and suggests nothing


@cache
def installed() -> ZoneData:
    """The zone data of the pinned tzdata package."""
    return ZoneData(files("tzdata"))


def zone_names() -> frozenset[str]:
    """Every accepted zone name: the list of the pinned tzdata package without `Factory`. Case matters."""
    return installed().names


def zone(name: str) -> ZoneInfo:
    """Zone called `name`, from the pinned tzdata package; the same object each time.

    Raises ScheduleError (field `zone`) for a name that is not listed, with the nearest listed one where there is one.
    """
    check_zone_name(name)
    return _zone(name)


def timeline(name: str) -> Timeline:
    """Offsets of the zone called `name` up to the year 2200. Raises ScheduleError like `zone`."""
    check_zone_name(name)
    return installed().timeline(name)


def utc_offset_s(name: str, at: Instant) -> int:
    """Offset of the zone called `name` at `at`, in seconds east of UTC. Raises ScheduleError like `zone`."""
    return timeline(name).offset_at(at // 1000)


def check_zone_name(name: str) -> None:
    """Raise ScheduleError (field `zone`) unless `name` is an accepted zone name. Opens no zone file."""
    if len(name) > NAME_CHARS_MAX:
        raise ScheduleError("zone", f"at most {NAME_CHARS_MAX} characters, not {len(name)}")
    if name not in zone_names():
        nearest = _nearest(name)
        hint = f"; did you mean {nearest}?" if nearest else "; give an IANA name such as Europe/London"
        raise ScheduleError("zone", f"{name!a} is not a known time zone{hint}")


@cache
def _zone(name: str) -> ZoneInfo:
    with installed().file(name).open("rb") as stream:
        return ZoneInfo.from_file(stream, key=name)


@cache
def _by_folded_name() -> dict[str, str]:
    """Listed names by their lower case form, and by their last part (`london`), full names first."""
    folded: dict[str, str] = {}
    for name in sorted(zone_names(), key=lambda name: (name.count("/") != 1, name)):
        folded.setdefault(name.rpartition("/")[2].lower(), name)
    return folded | {name.lower(): name for name in zone_names()}


def _nearest(name: str) -> str | None:
    if not 1 <= len(name) <= _SUGGEST_CHARS_MAX:
        return None
    folded = name.strip().replace(" ", "_").lower()
    by_name = _by_folded_name()
    if folded in by_name:
        return by_name[folded]
    close = get_close_matches(folded, sorted(by_name), n=1, cutoff=0.8)
    return by_name[close[0]] if close else None
