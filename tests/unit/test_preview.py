"""What people are told of a schedule: its meaning in words, its next instants, and where clock changes have a hand in it."""

import json
import sys
from datetime import datetime

import pytest

from minutebook.cli import main
from minutebook.domain.jitter import due_at
from minutebook.ids import Instant
from minutebook.schedule import Cron, Every, parse_cron, parse_schedule
from minutebook.schedule.description import describe
from minutebook.schedule.plan import Plan
from minutebook.schedule.preview import Coming, preview
from minutebook.times import format_instant

BERLIN = "Europe/Berlin"
SPRING = "the clock goes from 2026-03-29 02:00:00 to 03:00:00"


def instant(text: str) -> Instant:
    return Instant(int(datetime.fromisoformat(text).timestamp() * 1000))


def planned(cron: Cron) -> Plan:
    return Plan(cron.rule, cron.zone, cron.gap, cron.fold)


def notes(cron: Cron, after: str, count: int) -> list[tuple[str, str | None]]:
    return [(coming.local, coming.note) for coming in preview(planned(cron), instant(after), count).values()]


# ---- instants and notes


def test_instant_is_told_in_utc_and_on_the_wall_clock() -> None:
    found = preview(planned(Cron("30 2 * * *", BERLIN)), instant("2026-03-28T12:00Z"), 2)
    assert list(found) == [instant("2026-03-29T01:00Z"), instant("2026-03-30T00:30Z")]
    assert list(found.values()) == [
        Coming(
            "2026-03-29T01:00:00Z",
            "2026-03-29T03:00:00+02:00",
            f"{SPRING}: once, here, for the times left out",
        ),
        Coming("2026-03-30T00:30:00Z", "2026-03-30T02:30:00+02:00", None),
    ]


@pytest.mark.parametrize(
    ("cron", "after", "expected"),
    [
        (
            Cron("30 2 * * *", BERLIN, gap="skip"),
            "2026-03-28T12:00Z",
            [("2026-03-30T02:30:00+02:00", f"{SPRING}: no run for the times left out"), ("2026-03-31T02:30:00+02:00", None)],
        ),
        (
            Cron("*/30 * * * *", BERLIN),
            "2026-03-29T00:00Z",
            [
                ("2026-03-29T01:30:00+01:00", None),
                ("2026-03-29T03:00:00+02:00", f"{SPRING}: no run for the times left out"),
                ("2026-03-29T03:30:00+02:00", None),
            ],
        ),
        # The gap is no concern of a schedule that has no time in it.
        (Cron("30 3 * * *", BERLIN), "2026-03-28T12:00Z", [("2026-03-29T03:30:00+02:00", None)]),
        (
            Cron("30 2 * * *", BERLIN),
            "2026-10-24T12:00Z",
            [
                ("2026-10-25T02:30:00+02:00", "02:30 comes twice: first time, the second has no run"),
                ("2026-10-26T02:30:00+01:00", None),
            ],
        ),
        (
            Cron("30 2 * * *", BERLIN, fold="last"),
            "2026-10-24T12:00Z",
            [("2026-10-25T02:30:00+01:00", "02:30 comes twice: second time, the first has no run")],
        ),
        (
            Cron("15 */30 2 * * *", BERLIN, fold="both"),
            "2026-10-25T00:20Z",
            [
                ("2026-10-25T02:30:15+02:00", "02:30:15 comes twice: first time"),
                ("2026-10-25T02:00:15+01:00", "02:00:15 comes twice: second time"),
                ("2026-10-25T02:30:15+01:00", "02:30:15 comes twice: second time"),
            ],
        ),
        (
            Cron("0 9 30 12 *", "Pacific/Apia"),
            "2011-12-29T12:00-10:00",
            [
                (
                    "2011-12-31T00:00:00+14:00",
                    "the clock goes from 2011-12-30 00:00:00 to 2011-12-31 00:00:00: once, here, for the times left out",
                )
            ],
        ),
    ],
)  # fmt: skip
def test_clock_changes_are_noted(cron: Cron, after: str, expected: list[tuple[str, str | None]]) -> None:
    assert notes(cron, after, len(expected)) == expected


def test_several_gaps_before_one_instant_are_all_noted() -> None:
    # The gaps of 2026 and 2027 are on 29 and 28 March.
    ((local, note),) = notes(Cron("30 2 28,29 3 *", BERLIN, gap="skip"), "2026-03-28T12:00Z", 1)
    assert local == "2027-03-29T02:30:00+02:00"
    later = "the clock goes from 2027-03-28 02:00:00 to 03:00:00"
    end = "no run for the times left out"
    assert note == f"{SPRING}: {end}; {later}: {end}"


def test_preview_ends_where_no_instant_is_left() -> None:
    assert len(preview(planned(Cron("0 0 0 1 1 * 2026,2027")), instant("2026-06-01T00:00Z"), 10)) == 1
    assert preview(planned(Cron("0 0 0 1 1 * 2026")), instant("2026-06-01T00:00Z"), 10) == {}


def test_interval_is_told_to_the_millisecond_and_knows_no_clock_change() -> None:
    start = instant("2026-03-29T00:59:59Z")
    found = preview(Plan(Every(1_500), BERLIN, anchor_at=start, start_at=start), start - 1, 2)
    assert list(found.values()) == [
        Coming("2026-03-29T00:59:59Z", "2026-03-29T01:59:59+01:00", None),
        Coming("2026-03-29T01:00:00.500Z", "2026-03-29T03:00:00.500+02:00", None),
    ]


def test_gap_before_the_start_is_not_noted() -> None:
    plan = Plan(parse_cron("30 2 * * *"), BERLIN, start_at=instant("2026-03-30T00:00Z"))
    (coming,) = preview(plan, instant("2026-03-28T12:00Z"), 1).values()
    assert (coming.utc, coming.note) == ("2026-03-30T00:30:00Z", None)


# ---- words


@pytest.mark.parametrize(
    ("cron", "expected"),
    [
        ("30 2 * * *", "At 02:30"),
        ("15 30 2 * * *", "At 02:30:15"),
        ("0,30 2 ? * 7", "At 02:00 and 02:30, on Sunday"),
        ("* * * * * *", "Every second"),
        ("* * * * *", "Every minute"),
        ("*/10 * * * * *", "Every 10 seconds"),
        ("*/20 0 * * * *", "Every 20 seconds at minute 0 of every hour"),
        ("15 */10 2 * * *", "At second 15 every 10 minutes of hour 2"),
        ("*/15 * * * *", "Every 15 minutes"),
        ("7-59/15 * * * *", "Every 15 minutes from minute 7"),
        ("10-20/5,3,*/30 * * * *", "At minutes 0, 3, 10, 15, 20 and 30"),
        ("0 * * * *", "At minute 0 of every hour"),
        ("10-20 * * * *", "At minutes 10 to 20"),
        ("0 */2 * * *", "At minute 0 of every second hour from 00:00"),
        ("0 9-17 * * 1-5", "At minute 0 of hours 9 to 17, on Monday to Friday"),
        ("0 0 * * fri-7", "At 00:00, on Friday to Sunday"),
        ("0 0 * * 1,3", "At 00:00, on Monday and Wednesday"),
        ("0 0 1 * mon", "At 00:00, on day 1 of the month or on Monday"),
        ("0 0 */2 * 1", "At 00:00, on days 1, 3, 5 and so on to 31 of the month if it is Monday"),
        ("0 0 1-31 * mon", "At 00:00"),
        ("0 9 31W * *", "At 09:00, on the weekday nearest to day 31 of the month"),
        ("0 9 LW * *", "At 09:00, on the last weekday (Monday to Friday) of the month"),
        ("0 0 L,L-3,15 * *", "At 00:00, on day 15, the last day and day 3 before the last one of the month"),
        ("0 0 * * 5L", "At 00:00, on the last Friday of the month"),
        ("0 0 * * 1#1,fri#3", "At 00:00, on the first Monday of the month and the third Friday of the month"),
        ("0 0 29 2 *", "At 00:00, on day 29 of the month, in February"),
        ("0 0 0 1 1 * 2027", "At 00:00, on day 1 of the month, in January, in 2027"),
        ("0 0 0 ? * 1 2026-2030", "At 00:00, on Monday, in the years 2026 to 2030"),
        ("@monthly", "At 00:00, on day 1 of the month"),
        ("H H(0-7) * * *", "At 03:29"),
    ],
)
def test_schedule_is_told_in_words(cron: str, expected: str) -> None:
    assert describe(parse_cron(cron, "acme/nightly")) == expected


@pytest.mark.parametrize(
    ("cron", "jitter_ms", "expected"),
    [
        ("@every 90s", 0, "Every 1 minute 30 seconds"),
        ("@every 1h", 0, "Every 1 hour"),
        ("@every 2d1s", 1_500, "Every 2 days 1 second, each up to 1.5 seconds later"),
        ("@daily", 300_000, "At 00:00, each up to 5 minutes later"),
    ],
)
def test_interval_and_jitter_are_told_in_words(cron: str, jitter_ms: int, expected: str) -> None:
    assert describe(parse_schedule(cron), jitter_ms) == expected


@pytest.mark.row("C23")
def test_words_say_whether_either_day_or_both() -> None:
    assert describe(parse_cron("0 0 13 * fri")) == "At 00:00, on day 13 of the month or on Friday"
    both = parse_cron("0 0 13 * fri", day_match="and")
    assert describe(both) == "At 00:00, on day 13 of the month if it is Friday"


# ---- the command, which needs no server


def command(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["minutebook", "schedule", "preview", *arguments])
    with pytest.raises(SystemExit) as ended:
        main.run()
    return int(ended.value.code or 0)


def test_command_writes_a_list_of_instants(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ("30 2 * * *", "--zone", BERLIN, "--after", "2026-03-28T12:00:00Z", "--count", "2")
    assert command(monkeypatch, *asked, "--output", "json") == 0
    assert json.loads(capsys.readouterr().out) == [
        {
            "utc": "2026-03-29T01:00:00Z",
            "local": "2026-03-29T03:00:00+02:00",
            "note": f"{SPRING}: once, here, for the times left out",
        },
        {"utc": "2026-03-30T00:30:00Z", "local": "2026-03-30T02:30:00+02:00", "note": None},
    ]
    assert command(monkeypatch, *asked, "--gap", "skip", "--fold", "both", "--output", "json") == 0
    assert json.loads(capsys.readouterr().out)[0]["utc"] == "2026-03-30T00:30:00Z"


def test_command_shows_a_table_with_the_meaning(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ("0 0 13 * fri", "--day-match", "and", "--after", "2026-01-01T00:00:00Z", "--count", "1")
    assert command(monkeypatch, *asked) == 0
    out = capsys.readouterr().out
    assert out.startswith("At 00:00, on day 13 of the month if it is Friday (UTC)\n")
    assert "2026-02-13T00:00:00Z" in out


def test_command_begins_now_where_nothing_is_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command(monkeypatch, "* * * * * *", "-o", "jsonl") == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 10
    assert instant(json.loads(lines[0])["utc"]) > instant("2026-01-01T00:00Z")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("60 * * * *",), "error: cron: minute field: 60 in '60' is not from 0 to 59"),
        (("* * * * *", "--zone", "Europe/Berln"), "did you mean Europe/Berlin?"),
        (("* * * * *", "--after", "2026-01-01T00:00:00"), "--after"),
        (("* * * * *", "--count", "1001"), "--count"),
        (("* * * * *", "--gap", "later"), "--gap"),
        (("* * * * *", "--every", "90s"), "give either a cron expression or --every"),
        ((), "give either a cron expression or --every"),
        (("--every", "P1Y"), "give a duration such as 30s"),
        (("--every", "0s"), "must be from PT1S to P366D"),
        (("--every", "1m", "--jitter", "25h"), "--jitter"),
        (
            ("--every", "1m", "--start-at", "2030-01-01T00:00:00Z", "--end-at", "2030-01-01T00:00:00Z"),
            "--end-at",
        ),
    ],
)
def test_command_refuses_and_says_why(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: tuple[str, ...],
    said: str,
) -> None:
    assert command(monkeypatch, *arguments) == 2
    assert said in capsys.readouterr().err


def test_command_shows_an_interval_within_its_bounds(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    bounds = ("--start-at", "2030-01-01T00:00:00Z", "--end-at", "2030-01-01T00:03:00Z")
    asked = ("--every", "90s", *bounds, "--jitter", "1m")
    assert command(monkeypatch, *asked, "-o", "json") == 0
    found = json.loads(capsys.readouterr().out)
    assert [item["utc"] for item in found] == ["2030-01-01T00:00:00Z", "2030-01-01T00:01:30Z"]
    assert command(monkeypatch, *asked, "--job-key", "acme/tick") == 0
    out = capsys.readouterr().out
    assert out.startswith("Every 1 minute 30 seconds, each up to 1 minute later (UTC)\n")
    due = due_at("acme", "tick", instant("2030-01-01T00:00Z"), 60_000)
    assert format_instant(due) in out


@pytest.mark.row("C16")
def test_hashed_expression_asks_for_the_job(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command(monkeypatch, "H H * * *") == 2
    assert "H takes its value from the job" in capsys.readouterr().err
    assert command(monkeypatch, "H H * * *", "--job-key", "acme/nightly", "--count", "1", "-o", "json") == 0
    assert json.loads(capsys.readouterr().out)[0]["utc"].endswith("T11:29:00Z")
