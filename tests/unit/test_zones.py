"""Zone names, and our reading of the zone files against zoneinfo's."""

import random
from datetime import UTC, datetime, timedelta
from importlib.resources import files

import pytest

from minutebook import schedule
from minutebook.errors import ScheduleError
from minutebook.ids import Instant
from minutebook.schedule import TZDATA_VERSION, utc_offset_s, zone, zone_names
from minutebook.schedule.tzif import END_S, read_timeline
from minutebook.schedule.zones import timeline

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def offset_by_zoneinfo(name: str, utc_s: int) -> int:
    offset = (EPOCH + timedelta(seconds=utc_s)).astimezone(zone(name)).utcoffset()
    assert offset is not None
    return int(offset.total_seconds())


def zone_file(name: str) -> bytes:
    return files("tzdata").joinpath("zoneinfo", *name.split("/")).read_bytes()


@pytest.mark.parametrize("name", sorted(zone_names()))
def test_timeline_agrees_with_zoneinfo(name: str) -> None:
    line, seconds = timeline(name), random.Random(name)
    moments = [seconds.randrange(END_S) for _ in range(200)]
    moments += [start + step for start in line.starts for step in (-1, 0, 1) if 0 <= start + step < END_S]
    for utc_s in moments:
        assert line.offset_at(utc_s) == offset_by_zoneinfo(name, utc_s), (name, utc_s)


@pytest.mark.parametrize(
    "name", ["Europe/Berlin", "America/New_York", "Africa/Casablanca", "Asia/Gaza", "EST"]
)
def test_timeline_is_sorted_and_closed(name: str) -> None:
    line = timeline(name)
    assert list(line.starts) == sorted(set(line.starts))
    assert line.starts[-1] == END_S
    assert len(line.offsets) == len(line.starts) + 1
    assert all(a != b for a, b in zip(line.offsets[:-1], line.offsets[1:-1], strict=False))


def test_no_stretch_is_shorter_than_its_shifts() -> None:
    """Gap and fold are decided between neighbours: no third stretch may reach into the same wall clock times."""
    for name in zone_names():
        line = timeline(name)
        for at in range(1, len(line.starts) - 1):
            if line.starts[at - 1] >= 0:
                shifts = abs(line.offsets[at] - line.offsets[at - 1]) + abs(
                    line.offsets[at + 1] - line.offsets[at]
                )
                assert line.starts[at] - line.starts[at - 1] > shifts, (name, line.starts[at])


def test_names_are_the_list_of_the_package() -> None:
    listed = files("tzdata").joinpath("zones").read_text().split()
    assert zone_names() == set(listed) - {"Factory"}
    assert "Factory" in listed


def test_version_is_that_of_the_data() -> None:
    first_line = files("tzdata").joinpath("zoneinfo", "tzdata.zi").read_text().splitlines()[0]
    assert first_line == f"# version {TZDATA_VERSION}"


def test_zone_is_loaded_once_by_its_name() -> None:
    assert zone("Europe/Berlin") is zone("Europe/Berlin")
    assert zone("Europe/Berlin").key == "Europe/Berlin"


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("europe/london", "Europe/London"),
        ("EUROPE/LONDON", "Europe/London"),
        ("Europe/Lodnon", "Europe/London"),
        ("London", "Europe/London"),
        ("new york", "America/New_York"),
        (" Europe/London", "Europe/London"),
        ("Europe/London\n", "Europe/London"),
        ("utc", "UTC"),
    ],
)
def test_near_name_is_suggested(name: str, nearest: str) -> None:
    with pytest.raises(ScheduleError) as caught:
        zone(name)
    assert caught.value.field == "zone"
    assert f"did you mean {nearest}?" in caught.value.reason


@pytest.mark.parametrize(
    "name",
    [
        "",
        "../../etc/passwd",
        "/etc/localtime",
        "Europe/../Europe/London",
        "Europe",
        "Europe/London\x00",
        "Mars/Phobos",
        "posixrules",
        "localtime",
        "right/UTC",
        "Factory",
        "factory",
        "tzdata.zi",
        "zones",
        "__init__.py",
        "+25:00",
        "\ud800",
        "a" * 128,
    ],
)
def test_unlisted_name_is_refused(name: str) -> None:
    for call in (zone, timeline, schedule.check_zone_name):
        with pytest.raises(ScheduleError) as caught:
            call(name)
        assert caught.value.field == "zone"
        assert "is not a known time zone" in caught.value.reason
        assert caught.value.reason.isascii()


@pytest.mark.parametrize("name", ["a" * 129, "a" * 5000])
def test_long_name_is_refused_unread(name: str) -> None:
    with pytest.raises(ScheduleError) as caught:
        zone(name)
    assert caught.value.reason == f"at most 128 characters, not {len(name)}"


def test_zone_without_changes_keeps_its_offset() -> None:
    for month in range(1, 13):
        at = Instant(int(datetime(2025, month, 1, tzinfo=UTC).timestamp() * 1000))
        assert utc_offset_s("Etc/GMT+5", at) == utc_offset_s("EST", at) == -5 * 3600


def test_offset_changes_at_the_millisecond() -> None:
    change = int(datetime(2024, 3, 31, 1, tzinfo=UTC).timestamp() * 1000)
    assert utc_offset_s("Europe/Berlin", Instant(change - 1)) == 3600
    assert utc_offset_s("Europe/Berlin", Instant(change)) == 7200


def with_footer(footer: str) -> bytes:
    """A zone file without changes of its own that follows the `TZ` text `footer`."""
    data = zone_file("Etc/GMT+5")
    return data[: data.rindex(b"\n", 0, -1) + 1] + footer.encode() + b"\n"


@pytest.mark.parametrize(
    ("footer", "starts"),
    [
        # J counts 1 to 365 and never 29 February, a plain number counts 0 to 365 with it.
        ("EST5EDT,J60,J300", {2023: "2023-03-01T02:00", 2024: "2024-03-01T02:00"}),
        ("EST5EDT,J59,J300", {2023: "2023-02-28T02:00", 2024: "2024-02-28T02:00"}),
        ("EST5EDT,59,300", {2023: "2023-03-01T02:00", 2024: "2024-02-29T02:00"}),
        ("EST5EDT4,0/1:30:15,300/-1", {2023: "2023-01-01T01:30:15", 2024: "2024-01-01T01:30:15"}),
        ("EST5EDT,M2.5.4/26,M10.5.0", {2023: "2023-02-24T02:00", 2024: "2024-03-01T02:00"}),
    ],
)
def test_rules_by_day_follow_posix(footer: str, starts: dict[int, str]) -> None:
    """zoneinfo counts plain day numbers from one, so it cannot judge these. No zone of the package uses them."""
    line = read_timeline(with_footer(footer))
    for wall in starts.values():
        utc_s = int((datetime.fromisoformat(wall + "-05:00") - EPOCH).total_seconds())
        assert (line.offset_at(utc_s - 1), line.offset_at(utc_s)) == (-5 * 3600, -4 * 3600), wall


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "cut short"),
        (b"TZif" + b"2" + bytes(10), "cut short"),
        (b"GIF8" + b"2" + bytes(60), "not a TZif file"),
        (b"TZif" + b"\x00" + bytes(60), "not a TZif file"),
        (zone_file("UTC")[:-2] + b"?\n", "unknown rule"),
    ],
)
def test_foreign_file_is_refused(data: bytes, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        read_timeline(data)


def test_file_with_leap_seconds_is_refused() -> None:
    data = bytearray(zone_file("UTC"))
    second = data.index(b"TZif", 4)
    data[second + 28 : second + 32] = (1).to_bytes(4, "big")
    with pytest.raises(ValueError, match="leap seconds"):
        read_timeline(bytes(data))


def test_public_names_exist_once() -> None:
    assert len(schedule.__all__) == len(set(schedule.__all__))
    assert all(hasattr(schedule, name) for name in schedule.__all__)
