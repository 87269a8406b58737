"""The demo's own settling up finds what it is there to find."""

from __future__ import annotations

from typing import Any

import pytest

from examples.demo.audit import Account, History, Kill, Life, settle
from examples.demo.plan import (
    LEAD_MS,
    MINUTE_MS,
    SPREAD_MS,
    Planned,
    cron_instants,
    expected_instants,
    is_near_minute,
    plan,
    rfc3339,
)
from examples.demo.witness import Moment, Sighting, Witness, WitnessFiles

AT = 1_800_000_000_000
NOTE = Planned({"id": "a"}, "completed", instants=(AT,))
DEAD = Planned({"id": "a"}, "dead", outcome="failed", attempts=2, instants=(AT,))
LIVES = {"a": Life(AT - 5_000, AT - 5_000)}


def attempt(number: int, status: str, at: int = AT) -> dict[str, Any]:
    shown = {"execution_id": f"a:{at}", "attempt": number, "status": status}
    return shown | {"scheduled_at": rfc3339(at), "due_at": rfc3339(at)}


def stretch(reason: str, first_at: int, last_at: int, count: int) -> dict[str, Any]:
    """Skipped instants, as the API tells them."""
    return attempt(1, "skipped", first_at) | {
        "reason": reason,
        "last_at": rfc3339(last_at),
        "count": count,
    }


def seen(moment: Moment, number: int = 1, after_ms: float = 5, pid: int = 1) -> Sighting:
    return Sighting(moment, f"a:{AT}", number, AT, AT + after_ms, pid)


GOOD = [seen("started"), seen("finished", after_ms=6)]


def account(
    job: Planned, status: str, attempts: list[Any], sightings: list[Sighting], *kills: Kill
) -> Account:
    return settle([job], LIVES, {"a": History(status, attempts)}, sightings, kills)


def test_three_accounts_that_agree_give_no_complaint() -> None:
    found = account(NOTE, "completed", [attempt(1, "succeeded")], GOOD)

    assert (found.complaints, found.lost, found.early, found.repeated) == ([], 0, 0, 0)
    assert found.executions == {"succeeded": 1}
    assert found.late_s == [0.005]


@pytest.mark.parametrize(
    ("status", "attempts", "sightings"),
    [
        ("completed", [], GOOD),
        ("completed", [attempt(1, "running")], GOOD),
        ("completed", [attempt(1, "succeeded")], []),
        ("completed", [attempt(1, "succeeded")], GOOD[:1]),
        ("completed", [attempt(1, "failed"), attempt(2, "succeeded")], GOOD),
    ],
    ids=["no history", "still open", "no handler", "never finished", "an attempt too many"],
)
def test_due_instant_without_its_run_is_lost(
    status: str, attempts: list[Any], sightings: list[Sighting]
) -> None:
    found = account(NOTE, status, attempts, sightings)

    assert found.lost == 1
    assert found.complaints


def test_wrong_status_and_strangers_are_complaints() -> None:
    wrong = account(NOTE, "active", [attempt(1, "succeeded")], GOOD)
    later = AT + MINUTE_MS
    stranger = account(NOTE, "completed", [attempt(1, "succeeded"), attempt(1, "succeeded", later)], GOOD)
    ghost = account(Planned({"id": "a"}, "cancelled", is_started=False), "cancelled", [], GOOD)

    assert wrong.complaints == ["a: is active, wanted completed"]
    assert stranger.complaints == [f"a:{later}: succeeded, but never due"]
    assert ghost.complaints == [f"a:{AT}: started, but never due"]


def test_cancelled_attempt_of_a_cancelled_job_is_no_stranger() -> None:
    cancelled = Planned({"id": "a"}, "cancelled", is_started=False)
    found = account(cancelled, "cancelled", [attempt(1, "cancelled")], [])

    assert found.complaints == []
    assert found.executions == {"cancelled": 1}


SLOW = Planned({"id": "a"}, "completed", instants=tuple(range(AT, AT + 5_000, 1_000)), skips="overlap")


def test_instants_that_are_skipped_on_record_are_accounted_for() -> None:
    rows = [attempt(1, "succeeded"), stretch("overlap", AT + 1_000, AT + 4_000, 4)]
    found = account(SLOW, "completed", rows, GOOD)

    assert (found.complaints, found.lost) == ([], 0)
    assert (found.skipped, found.executions) == ({"overlap": 4}, {"succeeded": 1})


@pytest.mark.parametrize(
    "row",
    [
        stretch("misfire", AT + 1_000, AT + 4_000, 4),
        stretch("overlap", AT + 1_000, AT + 4_000, 3),
        stretch("overlap", AT + 1_000, AT + 3_000, 3),
    ],
    ids=["another reason", "miscounted", "one is missing"],
)
def test_instants_that_are_skipped_otherwise_are_complaints(row: dict[str, Any]) -> None:
    assert account(SLOW, "completed", [attempt(1, "succeeded"), row], GOOD).complaints


def test_due_instant_beyond_its_jitter_is_a_fault() -> None:
    spread = Planned({"id": "a"}, "completed", instants=(AT,), jitter_ms=3_000)
    within = attempt(1, "succeeded") | {"due_at": rfc3339(AT + 3_000)}
    found = account(spread, "completed", [within], GOOD)
    assert (found.complaints, found.spread_ms) == ([], 3_000)
    beyond = attempt(1, "succeeded") | {"due_at": rfc3339(AT + 3_001)}
    assert account(spread, "completed", [beyond], GOOD).lost == 1
    early = attempt(1, "succeeded") | {"due_at": rfc3339(AT - 1)}
    assert account(spread, "completed", [early], GOOD).lost == 1


def test_start_before_the_due_instant_is_early() -> None:
    found = account(NOTE, "completed", [attempt(1, "succeeded")], [seen("started", after_ms=-1), *GOOD[1:]])

    assert found.early == 1


def test_start_that_no_outcome_explains_is_a_repeat() -> None:
    again = [seen("started"), seen("started", 2, 11_000, pid=2), seen("finished", 2, 11_001, pid=2)]
    found = account(
        NOTE, "completed", [attempt(1, "lost"), attempt(2, "succeeded")], again, Kill("w", AT + 50, 1)
    )

    assert (found.complaints, found.repeated) == ([], 1)
    assert found.kills == [{"what": "w", "latest_start_s": 11.0}]


def test_retries_are_no_repeats() -> None:
    twice = [seen("started"), seen("raised"), seen("started", 2, 1_100), seen("raised", 2, 1_101)]
    found = account(DEAD, "dead", [attempt(1, "failed"), attempt(2, "failed")], twice)

    assert (found.complaints, found.repeated) == ([], 0)


def test_cron_instants_are_the_whole_minutes_of_its_life() -> None:
    minute = AT // MINUTE_MS * MINUTE_MS
    cron = Planned({"id": "c"}, "cancelled", instants=None)

    assert cron_instants(minute, minute + MINUTE_MS) == (minute + MINUTE_MS,)
    assert cron_instants(minute - 1, minute + 1) == (minute,)
    assert cron_instants(minute + 1, minute + 2) == ()
    assert expected_instants(cron, minute - 1, minute + 1) == (minute,)
    assert [is_near_minute(minute + at, 1_000) for at in (0, 999, 1_000, 59_000, 59_001)] == [
        True, True, False, False, True,
    ]  # fmt: skip


def test_plan_spreads_its_jobs_over_half_a_minute() -> None:
    jobs = plan(AT)
    due = sorted(at for job in jobs for at in job.instants or ())

    assert len({job.id for job in jobs}) == len(jobs) > 300
    assert due[0] == AT + LEAD_MS
    assert due[-1] < AT + LEAD_MS + SPREAD_MS


def test_witness_files_give_each_sighting_once_and_wait_for_cut_lines(tmp_path: Any) -> None:
    files = WitnessFiles(tmp_path)
    witness = Witness(tmp_path)
    witness.record("started", "a:1", 1, 1)
    assert [one.moment for one in files.news()] == ["started"]
    witness.record("finished", "a:1", 1, 1)
    (file,) = tmp_path.iterdir()
    whole = file.read_bytes()
    file.write_bytes(whole[:-3])

    assert list(files.news()) == []
    file.write_bytes(whole)
    assert [one.moment for one in files.news()] == ["finished"]
