"""What a job may ask of its instants: the owner checks again what the API let pass, and what no API has seen."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from minutebook.domain import events as facts
from minutebook.domain.submit import fingerprint
from minutebook.domain.timing import AT_MAX, DEFAULT, Timing, faults, misplaced
from minutebook.schedule import INSTANT_MAX
from tests.simulation.log_maker import T0, LogMaker, submit

DAY_MS = 86_400_000
CHANGES: dict[str, Any] = {
    "start_at": T0 + 1,
    "end_at": T0 + 2 * DAY_MS,
    "max_runs": 3,
    "gap": "skip",
    "fold": "both",
    "day_match": "and",
    "jitter_ms": 1,
    "exclude": ["a"],
    "include": ["b"],
    "misfire": "none",
    "misfire_window_ms": 1,
    "misfire_max": 1,
    "overlap": "queue_all",
    "is_paused_on_failure": True,
}
FAULTS: list[tuple[dict[str, Any], str]] = [
    ({"start_at": -1}, "start_at"),
    ({"start_at": INSTANT_MAX}, "start_at"),
    ({"end_at": 0}, "end_at"),
    ({"end_at": AT_MAX + 1}, "end_at"),
    ({"start_at": T0, "end_at": T0}, "end_at"),
    ({"max_runs": 0}, "max_runs"),
    ({"gap": "x"}, "gap"),
    ({"fold": ""}, "fold"),
    ({"day_match": "xor"}, "day_match"),
    ({"overlap": "queue"}, "overlap"),
    ({"misfire": "some"}, "misfire/policy"),
    ({"misfire_window_ms": 0}, "misfire/window"),
    ({"misfire_window_ms": 30 * DAY_MS + 1}, "misfire/window"),
    ({"misfire_max": 0}, "misfire/max"),
    ({"misfire_max": 10_001}, "misfire/max"),
    ({"jitter_ms": -1}, "jitter"),
    ({"jitter_ms": DAY_MS + 1}, "jitter"),
    ({"exclude": ["a b"]}, "calendars/exclude"),
    ({"include": [f"c{n}" for n in range(17)]}, "calendars/include"),
]


def test_every_field_is_changed_below() -> None:
    assert CHANGES.keys() == set(Timing.__struct_fields__)
    assert list(faults(Timing(**CHANGES))) == []
    assert all(getattr(DEFAULT, name) != value for name, value in CHANGES.items())


@pytest.mark.parametrize(("change", "field"), FAULTS, ids=str)
def test_value_out_of_its_bounds_is_refused_with_its_field(change: dict[str, Any], field: str) -> None:
    (fault,) = faults(Timing(**change))
    assert fault[0] == field
    (event,) = LogMaker().command(submit("a", cron="@daily", timing=Timing(**change)))
    assert isinstance(event, facts.CommandRejected)
    assert (event.reason, event.field) == ("invalid", field)


@pytest.mark.parametrize("every_ms", [0, 999, 366 * DAY_MS + 1, -1])
def test_interval_out_of_its_bounds_is_refused(every_ms: int) -> None:
    (event,) = LogMaker().command(submit("a", every_ms=every_ms))
    assert isinstance(event, facts.CommandRejected)
    assert (event.reason, event.field) == ("invalid", "every")


def test_one_instant_takes_only_what_it_can_have() -> None:
    fields = [field for field, _ in misplaced(Timing(**CHANGES))]
    of_any = {"jitter_ms", "misfire", "misfire_window_ms", "misfire_max", "is_paused_on_failure"}
    assert [field.removeprefix("calendars/") for field in fields] == [
        name for name in CHANGES if name not in of_any
    ]
    (event,) = LogMaker().command(submit("a", run_at=T0, timing=Timing(overlap="skip")))
    assert isinstance(event, facts.CommandRejected)
    assert event.field == "overlap"
    (event,) = LogMaker().command(submit("a", run_at=T0, timing=Timing(jitter_ms=1, misfire="none")))
    assert isinstance(event, facts.JobSubmitted)


@pytest.mark.parametrize("name", CHANGES)
def test_the_fingerprint_covers_every_field_of_the_timing(name: str) -> None:
    command = submit("a", command_id="c", cron="@daily", timing=DEFAULT)
    changed = msgspec.structs.replace(command, timing=Timing(**{name: CHANGES[name]}))
    assert fingerprint(changed) != fingerprint(command)
    assert fingerprint(command) == fingerprint(msgspec.structs.replace(command, timing=None))


def test_job_that_has_no_instant_left_is_refused() -> None:
    (event,) = LogMaker().command(submit("a", every_ms=1_000, timing=Timing(end_at=T0)))
    assert isinstance(event, facts.CommandRejected)
    assert (event.reason, event.field) == ("invalid", "end_at")
