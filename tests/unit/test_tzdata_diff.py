"""What another version of the zone data would change: zones, jobs, and why. Versions are doctored copies of the package."""

from __future__ import annotations

import io
import json
import shutil
import sys
import zipfile
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import tzdata
from msgspec import Raw

from minutebook.cli import main, tzdata_diff
from minutebook.cli.scheduled_jobs import plan_of, scheduled
from minutebook.client import Calendar, NotFoundError
from minutebook.client.models import Calendars, Counts, Job, Problem
from minutebook.schedule import TZDATA_VERSION, parse_cron, zone_names
from minutebook.schedule.dates import Dates
from minutebook.schedule.plan import Plan
from minutebook.schedule.tzif import END_S, Timeline
from minutebook.schedule.zone_changes import Stretch, first_moved, stretches
from minutebook.schedule.zone_data import ZoneData
from minutebook.schedule.zones import timeline

PACKAGE = Path(tzdata.__file__).parent
AFTER = "2027-01-01T00:00:00Z"
Run = Callable[..., int]


def at(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1_000)


@pytest.fixture
def other(tmp_path: Path) -> Path:
    """The package as `2099z`, in which Berlin keeps the time of London, Tokyo is gone and Mars is new."""
    folder = tmp_path / "other" / "tzdata"
    shutil.copytree(PACKAGE, folder, ignore=shutil.ignore_patterns("__pycache__"))
    init = folder / "__init__.py"
    init.write_text(init.read_text().replace(TZDATA_VERSION, "2099z"))
    zones = folder / "zoneinfo"
    shutil.copy(zones / "Europe" / "London", zones / "Europe" / "Berlin")
    shutil.copy(zones / "UTC", zones / "Mars")
    listed = [name for name in (folder / "zones").read_text().split() if name != "Asia/Tokyo"]
    (folder / "zones").write_text("\n".join([*listed, "Mars"]) + "\n")
    return folder


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Run:
    def running(*arguments: str) -> int:
        monkeypatch.setattr(
            sys, "argv", ["minutebook", "schedule", "tzdata-diff", "--after", AFTER, *arguments]
        )
        with pytest.raises(SystemExit) as ended:
            main.run()
        return int(ended.value.code or 0)

    return running


def jobs_file(tmp_path: Path, *jobs: dict[str, Any]) -> str:
    file = tmp_path / "jobs.json"
    file.write_text(json.dumps(list(jobs)))
    return str(file)


# -- zone data


def test_the_installed_package_is_read_like_any_other(other: Path) -> None:
    ours, others = ZoneData(PACKAGE), ZoneData(other)
    assert (ours.version, others.version) == (TZDATA_VERSION, "2099z")
    assert ours.names == zone_names()
    assert others.names == zone_names() - {"Asia/Tokyo"} | {"Mars"}
    assert ours.timeline("Europe/Berlin") == timeline("Europe/Berlin")
    assert others.timeline("Europe/Berlin") == timeline("Europe/London")


@pytest.mark.parametrize(
    ("file", "content", "said"),
    [
        ("__init__.py", "", "IANA_VERSION"),
        ("__init__.py", "IANA_VERSION = open('x').read()", "IANA_VERSION"),
        ("zones", "", "list of zones"),
        ("zones", "../../etc/passwd\n", "list of zones"),
        ("zones", "/etc/passwd\n", "list of zones"),
        ("zoneinfo/Europe/Berlin", "TZif", "Europe/Berlin"),
        ("zoneinfo/Europe/Berlin", "", "Europe/Berlin"),
    ],
)
def test_what_is_no_zone_data_is_refused(other: Path, file: str, content: str, said: str) -> None:
    (other / file).write_text(content)
    with pytest.raises(ValueError, match=said):
        _all_of(other)


def _all_of(folder: Path) -> None:
    found = ZoneData(folder)
    assert found.names
    found.timeline("Europe/Berlin")


def test_a_zone_file_that_is_cut_off_anywhere_is_refused(other: Path) -> None:
    file = other / "zoneinfo" / "Europe" / "Berlin"
    data = file.read_bytes()
    for length in range(0, len(data), 7):
        file.write_bytes(data[:length])
        with pytest.raises(ValueError, match="Europe/Berlin"):
            ZoneData(other).timeline("Europe/Berlin")


# -- timelines and plans


def test_stretches_are_where_offsets_differ() -> None:
    before = Timeline((100, 200, 300, END_S), (0, 10, 20, 30, 30))
    after = Timeline((100, 250, 300, END_S), (0, 10, 25, 30, 30))
    assert list(stretches(before, after, 0, 1_000)) == [Stretch(200, 250, 20, 10), Stretch(250, 300, 20, 25)]
    assert list(stretches(before, after, 220, 230)) == [Stretch(220, 230, 20, 10)]
    assert list(stretches(before, after, 300, 1_000)) == []
    assert list(stretches(before, before, 0, 1_000)) == []


BERLIN, LONDON = timeline("Europe/Berlin"), timeline("Europe/London")


@pytest.mark.parametrize(
    ("cron", "start", "moved"),
    [
        ("0 9 * * *", "2027-01-01", ("2027-01-01T08:00", "2027-01-01T09:00")),
        ("0 9 * * MON", "2027-01-02", ("2027-01-04T08:00", "2027-01-04T09:00")),
        ("0 0 1 6 *", "2027-01-01", ("2027-05-31T22:00", "2027-05-31T23:00")),
        ("*/15 * * * *", "2027-01-01", None),
        ("* * * * *", "2027-01-01", None),
        ("0 * * * *", "2027-01-01", None),
        # At midnight there it is still the day before by the other clock.
        ("*/5 * * * MON", "2027-01-02", ("2027-01-03T23:00", "2027-01-04T00:00")),
    ],
)
def test_first_instant_that_moves(cron: str, start: str, moved: tuple[str, str] | None) -> None:
    plan = Plan(parse_cron(cron), "Europe/Berlin")
    found = first_moved(plan, BERLIN, LONDON, at(start), at("2029-01-01"))
    assert (None if found is None else (found.before_at, found.after_at)) == (
        None if moved is None else tuple(map(at, moved))
    )


def test_only_what_lies_in_a_stretch_moves_and_only_before_the_end() -> None:
    """Both keep one offset up to the summer."""
    summer = at("2027-06-01") // 1_000
    before = Timeline((END_S,), (3_600, 3_600))
    after = Timeline((summer, summer + 30 * 86_400, END_S), (3_600, 7_200, 3_600, 3_600))
    plan = Plan(parse_cron("0 9 * * *"), "Europe/Berlin")
    found = first_moved(plan, before, after, at("2027-01-01"), at("2028-01-01"))
    assert found is not None
    assert (found.before_at, found.after_at) == (at("2027-06-01T08:00"), at("2027-06-01T07:00"))
    assert found.why == Stretch(summer, summer + 30 * 86_400, 3_600, 7_200)
    assert first_moved(plan, before, after, at("2027-01-01"), at("2027-06-01")) is None
    assert first_moved(plan, before, after, at("2027-01-01"), at("2027-06-01T07:00")) is None
    assert first_moved(plan, before, after, at("2027-07-10"), at("2028-01-01")) is None


def test_an_instant_in_a_gap_that_goes_away_moves() -> None:
    """Clocks are put forward in one version and not in the other."""
    change = at("2027-03-28T01:00") // 1_000
    before = Timeline((change, END_S), (3_600, 7_200, 7_200))
    after = Timeline((END_S,), (3_600, 3_600))
    plan = Plan(parse_cron("30 2 * * *"), "Europe/Berlin", "run")
    found = first_moved(plan, before, after, at("2027-01-01"), at("2028-01-01"))
    assert found is not None
    assert (found.before_at, found.after_at) == (at("2027-03-28T01:00"), at("2027-03-28T01:30"))


def test_an_instant_before_a_change_depends_on_it_where_the_last_pass_counts() -> None:
    """Clocks are put back in one version and not in the other: the first pass is then the only one."""
    change = at("2027-10-31T01:00") // 1_000
    before = Timeline((change, END_S), (7_200, 3_600, 3_600))
    after = Timeline((END_S,), (7_200, 7_200))
    plan = Plan(parse_cron("30 2 * * *"), "Europe/Berlin", fold="last")
    found = first_moved(plan, before, after, at("2027-01-01"), at("2028-01-01"))
    assert found is not None
    assert (found.before_at, found.after_at) == (at("2027-10-31T01:30"), at("2027-10-31T00:30"))


# -- the command


def test_jobs_of_a_file_are_told_with_the_reason(
    run: Run, other: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = jobs_file(
        tmp_path,
        {"id": "daily", "cron": "0 9 * * *", "zone": "Europe/Berlin", "payload": {"x": 1}, "next_at": None},
        {"id": "often", "cron": "*/5 * * * *", "zone": "Europe/Berlin"},
        {"id": "paris", "cron": "0 9 * * *", "zone": "Europe/Paris"},
        {"id": "tokyo", "cron": "0 9 * * *", "zone": "Asia/Tokyo"},
        {"id": "late", "cron": "0 9 * * *", "zone": "Europe/Berlin", "start_at": "2027-03-01T00:00:00Z"},
        {"id": "interval", "cron": "@every 1h", "zone": "Europe/Berlin"},
        {"id": "once", "run_at": "2027-03-01T00:00:00Z"},
    )
    assert run("--to", str(other), "--jobs", file, "-o", "json") == 1
    told = json.loads(capsys.readouterr().out)
    assert (told["old"], told["new"]) == (TZDATA_VERSION, "2099z")
    found = {job["id"]: job for job in told["jobs"]}
    assert set(found) == {"daily", "tokyo", "late"}
    daily = found["daily"]
    assert daily["zone"] == "Europe/Berlin"
    assert (daily["at"], daily["local"]) == ("2027-01-01T08:00:00.000Z", "2027-01-01T09:00:00+01:00")
    assert (daily["new_at"], daily["new_local"]) == ("2027-01-01T09:00:00.000Z", "2027-01-01T09:00:00+00:00")
    assert daily["is_next"]
    for part in ("Europe/Berlin", f"UTC+01:00 from {AFTER[:-1]}.000Z", TZDATA_VERSION, "UTC+00:00 in 2099z"):
        assert part in daily["reason"]
    assert "2099z" in found["tokyo"]["reason"]
    assert found["late"]["at"] == "2027-03-01T08:00:00.000Z"
    zones = {zone["zone"]: zone for zone in told["zones"]}
    assert set(zones) == {"Europe/Berlin", "Asia/Tokyo", "Mars"}
    assert (zones["Europe/Berlin"]["offset"], zones["Europe/Berlin"]["new_offset"]) == ("+01:00", "+00:00")
    assert (zones["Asia/Tokyo"]["offset"], zones["Asia/Tokyo"]["new_offset"]) == ("+09:00", None)
    assert (zones["Mars"]["offset"], zones["Mars"]["new_offset"]) == (None, "+00:00")


def test_table_says_the_same(
    run: Run, other: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = jobs_file(tmp_path, {"id": "daily", "cron": "0 9 * * *", "zone": "Europe/Berlin"})
    assert run("--from", str(PACKAGE), "--to", str(other.parent), "--jobs", file) == 1
    out = capsys.readouterr().out
    assert f"{TZDATA_VERSION} to 2099z" in out
    assert "1 jobs would change:" in out
    assert "3 zones differ:" in out
    assert "2027-01-01T09:00:00+01:00" in out


def test_nothing_to_change_ends_well(
    run: Run, other: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    unmoved = jobs_file(tmp_path, {"id": "a", "cron": "0 9 * * *", "zone": "Europe/Paris"})
    assert run("--to", str(other), "--jobs", unmoved) == 0
    assert "0 jobs would change" in capsys.readouterr().out
    assert run("--to", str(PACKAGE)) == 0
    # Without jobs the zones are what is asked for.
    assert run("--to", str(other)) == 1
    assert run("--to", str(other), "--until", "2027-01-01T00:00:01Z", "--jobs", unmoved) == 0


def test_wheels_are_read_as_they_are(
    run: Run, other: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wheel = tmp_path / "tzdata-2099.26-py2.py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for path in sorted(other.rglob("*")):
            if path.is_file():
                archive.write(path, path.relative_to(other.parent))
    assert run("--from", str(wheel), "--to", str(other), "-o", "json") == 0
    assert json.loads(capsys.readouterr().out)["old"] == "2099z"


@pytest.mark.parametrize("form", ["items", "lines", "one"])
def test_jobs_come_in_any_form(
    run: Run, form: str, other: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = {"id": "daily", "cron": "0 9 * * *", "zone": "Europe/Berlin"}
    texts = {
        "items": json.dumps({"items": [job], "next_cursor": None}),
        "lines": "\n".join(json.dumps(one) for one in (job, job)),
        "one": json.dumps(job, indent=2),
    }
    monkeypatch.setattr(sys, "stdin", io.StringIO(texts[form]))
    assert run("--to", str(other), "--jobs", "-") == 1


def test_hashed_expressions_need_to_know_whose_they_are(
    run: Run, other: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = jobs_file(tmp_path, {"id": "daily", "cron": "H 9 * * *", "zone": "Europe/Berlin"})
    assert run("--to", str(other), "--jobs", file) == 2
    assert "--tenant" in capsys.readouterr().err
    assert run("--to", str(other), "--jobs", file, "--tenant", "acme") == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--to", "nowhere"), "wheel"),
        (("--to", __file__), "wheel"),
        (("--to", str(Path(__file__).parent)), "wheel"),
        (("--jobs", "nowhere.json"), "cannot be read"),
        (("--jobs", __file__), "holds no jobs"),
        (("--until", "2026-01-01T00:00:00Z"), "later than --after"),
        (("--until", "soon"), "--until"),
    ],
    ids=str,
)
def test_bad_arguments_say_which_and_why(
    run: Run, arguments: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*arguments) == 2
    told = capsys.readouterr()
    assert said in told.err
    assert told.out == ""


def test_a_bad_job_is_named(
    run: Run, other: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = jobs_file(tmp_path, {"id": "odd", "cron": "61 * * * *", "zone": "Europe/Berlin"})
    assert run("--to", str(other), "--jobs", file) == 2
    assert "odd" in capsys.readouterr().err


def test_a_job_of_the_api_has_all_that_its_instants_follow_from() -> None:
    job = Job(
        id="a",
        task="t",
        payload=Raw(b"1"),
        queue="q",
        run_at=None,
        cron="0 9 * * *",
        zone="Europe/Berlin",
        start_at="2027-01-02T00:00:00Z",
        calendars=Calendars(exclude=["c"], include=[]),
        fold="last",
        day_match="and",
        late="refuse",
        timeout="PT1M",
        status="active",
        version=1,
        next_at=None,
        created_at="2027-01-01T00:00:00Z",
        executions=Counts(open=0, succeeded=0, dead=0, cancelled=0, skipped=0),
    )
    found = scheduled(job)
    plan = plan_of(found, "acme", Dates([(0, 1)], None))
    assert plan is not None
    assert (plan.zone, plan.start_at, plan.fold, plan.gap) == (
        "Europe/Berlin",
        at("2027-01-02"),
        "last",
        "auto",
    )
    assert (found.day_match, found.calendars.exclude, found.id) == ("and", ["c"], "a")


def test_jobs_of_the_api_are_on_the_dates_of_their_calendars(
    run: Run, other: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[str] = []

    class Found:
        id, cron, zone, start_at, end_at = "daily", "0 9 * * *", "Europe/Berlin", None, None

        class calendars:  # a field
            exclude, include = ["days", "gone"], list[str]()

    class Calls:
        def get(self, name: str) -> Any:
            asked.append(name)
            if name == "gone":
                problem = Problem(type="", title="", status=404, detail="", code="not-found", trace_id="")
                raise NotFoundError(problem)
            return Calendar(name, 1, ["2027-01-01"])

    class Api:
        calendars = Calls()

        def get(self, job_id: str) -> Found:
            return Found()

        def __enter__(self) -> Api:
            return self

        def __exit__(self, *_: object) -> None: ...

    monkeypatch.setattr(tzdata_diff, "SyncClient", Api)
    assert run("daily", "daily", "--to", str(other), "-o", "json") == 1
    told = json.loads(capsys.readouterr().out)
    assert [job["at"] for job in told["jobs"]] == ["2027-01-02T08:00:00.000Z"] * 2
    assert asked == ["days", "gone"]
