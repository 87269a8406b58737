"""Decisions made again: every history comes out as it is on record, and whatever was decided otherwise is found and named."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from minutebook.domain import events as facts
from minutebook.domain.policy import Policy
from minutebook.domain.rules import RULES
from minutebook.log.port import RawRecord
from minutebook.store.memory import MemoryRows
from minutebook.wire import topics
from minutebook.wire.frames import Frame, placed
from replay.__main__ import app
from replay.again import MEMORY
from replay.decided import Decided
from replay.deciding import TAKE_OVER, decide_again
from replay.files import export
from replay.inputs import FileInputs
from tests.golden import history
from tests.golden.memory import MemoryInputs
from tests.golden.plays_of_time import at
from tests.golden.retold import replace, retold
from tests.golden.scene import KeptInputs, Scene
from tests.simulation.copies import CopiedLog
from tests.simulation.fleet import Fleet

Event = facts.Event
Change = Callable[[Event], Event | None]
GRANTS = (facts.ExecutionsDueGranted, facts.ExecutionsGranted)
OLDER_ZONE_DATA = "decided with the zone data 2001a"


def in_memory(folder: Path, families: tuple[str, ...]) -> MemoryRows:
    return MemoryRows(families)


def decided(name: str, **changed: list[RawRecord]) -> Decided:
    """A history decided again; `partition_0` and so on stand in place of its own records."""
    log = history.log_of(name)
    records = [
        changed.get(f"partition_{number}", history.records_of(log, number)) for number in log.partitions()
    ]
    inputs = FileInputs(history.HISTORIES / name)
    return decide_again(CopiedLog(*records), inputs, log.partitions(), make_rows=in_memory)


@pytest.mark.parametrize("name", history.names())
def test_a_history_is_decided_again_as_it_is_on_record(name: str) -> None:
    if history.expected_of(name).rules != RULES:
        pytest.skip("it was decided by other rules, and is only folded")
    found = decided(name)
    assert found.findings == []
    reasons = [why for why in found.unchecked() if why not in (MEMORY, TAKE_OVER)]
    assert all(why.startswith(OLDER_ZONE_DATA) and name == "zone-data-change" for why in reasons), reasons
    assert sum(part.equal for part in found.partitions) > 0


# -- what was decided otherwise


def changed(name: str, kind: type[Event], change: Change, number: int = 0) -> tuple[int, Decided]:
    """The history with one event of a kind changed, or left out: the offset of its frame, and what comes of it."""
    records = history.records_of(history.log_of(name), 0)
    places = [
        (frame.offset, index)
        for frame in history.frames_of(records)
        for index, event in enumerate(frame.events)
        if isinstance(event, kind)
    ]
    offset, index = places[number]

    def edit(frame: Frame) -> Frame:
        event = change(frame.events[index])
        put = [] if event is None else [event]
        return replace(frame, events=[*frame.events[:index], *put, *frame.events[index + 1 :]])

    return offset, decided(name, partition_0=retold(records, offset, edit))


def gone(event: Event) -> None:
    """It is left out."""


def later(field: str) -> Change:
    """A number is one more; of a column the last."""

    def change(event: Event) -> Event:
        value = getattr(event, field)
        return replace(
            event, **{field: [*value[:-1], value[-1] + 1] if isinstance(value, list) else value + 1}
        )

    return change


def refused(event: Event) -> Event:
    """A job that was good is refused."""
    assert isinstance(event, facts.JobSubmitted)
    why = ("SubmitJob", "invalid", "cron", "no")
    return facts.CommandRejected(event.tenant, event.job_id, event.command_id, *why, event.actor, "")


def not_found(event: Event) -> Event:
    """A result that was good is refused."""
    assert isinstance(event, facts.AttemptsSucceeded)
    where = (event.tenants[0], event.executions[0], event.tokens[0])
    return facts.ReportRefused("w1.0", "result", *where, "stale token")


def to_nobody(event: Event) -> Event:
    """A grant goes to a session that has started and offers nothing of that kind."""
    return replace(event, queues=["other"])


@pytest.mark.parametrize(
    ("name", "kind", "change", "said"),
    [
        ("interval", facts.ExecutionsDueGranted, later("next_at"), "next_at of row 0 is"),
        ("jitter", facts.ExecutionsDueGranted, later("due_at"), "due_at of row 0 is"),
        ("cron-over-a-night-of-25-hours", facts.JobSubmitted, later("next_at"), "next_at is"),
        ("retries", facts.AttemptFailed, later("retry_at"), "retry_at is"),
        ("dead-letter", facts.ExecutionDead, gone, "ExecutionDead"),
        ("dead-letter", facts.AlertRaised, gone, "AlertRaised"),
        ("deadlines-without-a-worker", facts.ExecutionExpired, gone, "ExecutionExpired"),
        ("misfire-none", facts.ExecutionsSkipped, gone, "left out"),
        ("misfire-latest", facts.ExecutionsSkipped, later("count"), "count is"),
        ("misfire-all", facts.ExecutionsPlaced, later("place_at"), "place_at of row"),
        ("overlap-skip", facts.ExecutionsSkipped, gone, "ExecutionsSkipped"),
        ("overlap-queue-one", facts.ExecutionsPlaced, later("due_at"), "due_at of row"),
        ("pause-and-skip", facts.JobResumed, later("next_at"), "next_at is"),
        ("pause-and-skip", facts.ExecutionsSkipped, gone, "ExecutionsSkipped"),
        ("one-off", facts.JobSubmitted, refused, "the frame says CommandRejected"),
        ("one-off", facts.JobSubmitted, gone, "JobSubmitted"),
        ("one-off", facts.CommandRejected, gone, "CommandRejected"),
        ("one-off", facts.AttemptsSucceeded, not_found, "AttemptsSucceeded"),
        ("one-off", facts.AttemptsSucceeded, gone, "AttemptsSucceeded"),
        ("one-off", facts.ExecutionsDueGranted, to_nobody, "queues of row 0 is 'other'"),
        ("edit", facts.JobEdited, later("version"), "version is"),
        ("calendar-change", facts.JobsRescheduled, later("next_at"), "next_at of row"),
        ("calendar-change", facts.CalendarCopied, later("version"), "version is"),
        ("backfill-operation", facts.OperationAdvanced, later("done"), "done is"),
        ("limit", facts.PermitsGranted, gone, "PermitsGranted"),
        ("limit", facts.PermitsDemanded, later("count"), "count is"),
        ("rate-limit", facts.PermitsReleased, later("permits"), "permits of row"),
        ("forgotten-days", facts.DayForgotten, gone, "DayForgotten"),
        ("forgotten-days", facts.DayForgotten, later("day"), "day is"),
        ("bad-records", facts.RecordRejected, gone, "RecordRejected"),
        ("keys-declared-and-revoked", facts.CommandRejected, gone, "CommandRejected"),
        ("loss-of-a-lease", facts.AttemptsLost, later("tokens"), "does not run under the token"),
        ("hand-over-with-a-void-frame", facts.OwnershipTaken, later("reports_to"), "reports_to is"),
    ],
)
def test_a_changed_decision_is_found_and_named(
    name: str, kind: type[Event], change: Change, said: str
) -> None:
    number = 1 if kind in (facts.OwnershipTaken, facts.JobsRescheduled) else 0
    offset, found = changed(name, kind, change, number)
    assert not found.ok
    first = found.findings[0]
    assert (first.partition, first.offset) == (0, offset), first
    assert said in first.what


def test_an_execution_that_was_due_and_is_left_out_is_found() -> None:
    """The frame that queued it says that nothing is left up to its instant."""
    offset, found = changed("deadlines-without-a-worker", facts.ExecutionsQueued, gone)
    assert found.findings[0].offset == offset
    assert "left out" in found.findings[0].what


def test_a_lease_that_ends_too_early_is_found() -> None:
    """The frame that ends it comes where the reports that were read do not say so."""
    log = history.log_of("loss-of-a-lease")
    records = history.records_of(log, 0)
    lost = next(
        frame
        for frame in history.frames_of(records)
        if any(isinstance(event, facts.AttemptsLost) for event in frame.events)
    )
    first = next(
        position.offset
        for frame in history.frames_of(records)
        if frame.offset == lost.offset - 1
        for position in frame.inputs
        if position.topic == topics.REPORTS
    )

    def edit(frame: Frame) -> Frame:
        inputs = [replace(one, offset=first) if one.topic == topics.REPORTS else one for one in frame.inputs]
        return replace(frame, inputs=inputs, slices=[])

    found = decided("loss-of-a-lease", partition_0=retold(records, lost.offset, edit))
    assert found.findings[0].offset == lost.offset
    assert "the lease of w1.0 was good for" in found.findings[0].what


def test_an_input_that_was_passed_over_is_found() -> None:
    """A command is consumed, and neither an event nor a slice speaks of it."""
    records = history.records_of(history.log_of("run-now"), 0)
    asked = next(
        frame for frame in history.frames_of(records) if isinstance(frame.events[0], facts.ExecutionRequested)
    )
    found = decided(
        "run-now",
        partition_0=retold(records, asked.offset, lambda frame: replace(frame, events=[], slices=[])),
    )
    assert found.findings[0].offset == asked.offset
    assert "ExecutionRequested" in found.findings[0].what
    assert "job-commands offset" in found.findings[0].what


# -- attempts that are taken from workers


def first_with(records: list[RawRecord], kind: type[Event]) -> Frame:
    """The first frame with an event of a kind."""
    frames = history.frames_of(records)
    return next(frame for frame in frames if any(isinstance(event, kind) for event in frame.events))


LOST = "as not_held follows from no report"
BACK = "as handed_back follows from no report"


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("not_held", LOST),
        ("handed_back", BACK),
        ("Timeout", "its owner may end it 310002 ms later"),
        ("Stuck", "is ended as stuck, and was not found to be"),
        ("Weather", "fails as Weather, which no report says"),
        ("stuck", "need not show progress"),
        ("session_died", "counts as lost, but does not wait"),
    ],
)
def test_an_end_that_no_report_bears_out_is_found(how: str, said: str) -> None:
    """Half a second after a grant its attempt is ended by what only the frame says."""
    records = history.records_of(history.log_of("one-off"), 0)
    frame = first_with(records, facts.ExecutionsDueGranted)
    granted, token = next(one for one in placed(frame) if isinstance(one[0], facts.ExecutionsDueGranted))
    assert isinstance(granted, facts.ExecutionsDueGranted)
    tenant, name, session = granted.tenants[0], granted.executions[0], granted.sessions[0]
    one = (tenant, name, granted.attempts[0], token, session)
    columns = ([0], [name], [token], [session], [0])
    offset = frame.offset + 1
    now = next(one.now for one in history.frames_of(records) if one.offset == offset)
    ends: dict[str, Event] = {
        "handed_back": facts.GrantsReturned([tenant], how, *columns, [-1]),
        "not_held": facts.AttemptsLost([tenant], how, *columns, [True]),
        "session_died": facts.AttemptsLost([tenant], how, *columns, [True]),
        "stuck": facts.AttemptStuck(*one, now),
    }
    made = ends.get(how) or facts.AttemptFailed(*one, how, "no", False, now + 1_000, 0, 0)
    changed = retold(
        records, offset, lambda then: replace(then, inputs=frame.inputs, slices=[], events=[made])
    )
    found = decided("one-off", partition_0=changed)
    assert found.findings[0].offset == offset
    assert said in found.findings[0].what


def test_a_grant_that_was_shown_and_is_withdrawn_is_found() -> None:
    """What was lost with its lease is told as withdrawn."""
    records = history.records_of(history.log_of("loss-of-a-lease"), 0)
    frame = first_with(records, facts.AttemptsLost)
    lost = next(event for event in frame.events if isinstance(event, facts.AttemptsLost))
    columns = (lost.tenant, lost.executions, lost.tokens, lost.sessions, lost.session)
    back = facts.GrantsReturned(lost.tenants, "withdrawn", *columns, [-1])
    found = decided(
        "loss-of-a-lease",
        partition_0=retold(records, frame.offset, lambda frame: replace(frame, events=[back])),
    )
    assert found.findings[0].offset == frame.offset
    assert "w1.0 had shown that it holds the token" in found.findings[0].what


def decided_scene(scene: Scene, records: list[RawRecord]) -> Decided:
    inputs = MemoryInputs.of_desks(scene.desks)
    return decide_again(CopiedLog(records), inputs, [0], make_rows=in_memory)


def test_ends_that_reports_bear_out_are_allowed_and_never_equal() -> None:
    """A run that its worker forgot, and one long past its time."""
    scene = at("2025-07-01T12:00Z")
    worker = scene.workers[0]
    worker.ending = lambda execution: "hangs"
    for job in ("forgotten", "late"):
        scene.submit(job, timeout_ms=5_000, policy=Policy(max_attempts=1))
    scene.go(2_000)
    worker.forget("forgotten")
    scene.go(8_000)
    for _ in range(4):
        scene.go(2_500)
        scene.tick()
    scene.go(1_000)
    records = scene.desk.records
    events = [event for frame in history.frames_of(records) for event in frame.events]
    lost = next(event for event in events if isinstance(event, facts.AttemptsLost))
    assert lost.cause == "not_held"
    assert [event.error_type for event in events if isinstance(event, facts.AttemptFailed)] == ["Timeout"]
    found = decided_scene(scene, records)
    assert found.findings == []
    grants = [event for event in events if isinstance(event, GRANTS)]
    assert found.partitions[0].allowed == len(grants) + 4  # the loss, the failure, its dead letter and alert
    assert list(found.unchecked()) == [TAKE_OVER]

    # the other run, which the very report lists, is told as lost
    frame = first_with(records, facts.AttemptsLost)
    running = next(event for event in events if isinstance(event, facts.AttemptFailed))
    other = replace(lost, executions=[running.execution], tokens=[running.token])
    swapped = retold(records, frame.offset, lambda frame: replace(frame, events=[other]))
    told = decided_scene(scene, swapped)
    assert told.findings[0].offset == frame.offset
    assert "decides 0 events, the frame counts 1" in told.findings[0].what


# -- what cannot be decided again


def test_without_inputs_what_comes_from_time_alone_is_decided_again(tmp_path: Path) -> None:
    log = history.log_of("overlap-skip")
    found = decide_again(log, FileInputs(tmp_path), [0], make_rows=in_memory)
    assert found.ok
    assert "not among the files" in found.inputs
    assert found.unchecked()["the inputs are not at hand"] > 0
    assert sum(part.equal for part in found.partitions) > 10


def test_inputs_that_are_gone_are_counted_by_topic() -> None:
    inputs = MemoryInputs.of_files("one-off")
    inputs.forget(topics.COMMANDS, 1)
    found = decide_again(history.log_of("one-off"), inputs, [0], make_rows=in_memory)
    assert found.ok
    assert found.unchecked()["job-commands is not kept for as long"] == 4


def test_frames_of_other_rules_are_folded_and_counted() -> None:
    records = history.records_of(history.log_of("interval"), 0)
    older = retold(records, 3, lambda frame: replace(frame, rules=RULES - 1))
    found = decided("interval", partition_0=older)
    assert found.ok
    assert list(found.unchecked()) == [TAKE_OVER, f"decided by rules {RULES - 1}, here are rules {RULES}"]


def test_a_fleet_with_a_bad_worker_is_decided_again() -> None:
    fleet = Fleet(2, seed=5)
    for desk in fleet.desks:
        desk.inputs = {topic: KeptInputs() for topic in topics.INPUTS}
        desk.open()
    fleet.add(2, 4, 800)
    fleet.add(1, 2, 300, is_bad=True)
    for partition in range(2):
        fleet.submit(40, partition)
        fleet.submit(20, partition, after_ms=3_000)
    fleet.run_to_end(300_000)
    found = decide_again(
        CopiedLog(*(desk.records for desk in fleet.desks)),
        MemoryInputs.of_desks(fleet.desks),
        [0, 1],
        make_rows=in_memory,
    )
    assert found.findings == []
    assert list(found.unchecked()) == [TAKE_OVER]


# -- the command


def run(folder: Path, *arguments: str) -> Result:
    return CliRunner().invoke(app, ["decide", "--files", str(folder), *arguments], env={"COLUMNS": "160"})


def wrong_interval(folder: Path) -> int:
    """An export of the history `interval`, in which one instant is a millisecond late; the offset of its frame."""
    records = history.records_of(history.log_of("interval"), 0)
    frame = next(
        frame
        for frame in history.frames_of(records)
        if isinstance(frame.events[0], facts.ExecutionsDueGranted)
    )
    events = [later("next_at")(frame.events[0]), *frame.events[1:]]
    export(CopiedLog(retold(records, frame.offset, lambda frame: replace(frame, events=events))), folder, [0])
    for path in (history.HISTORIES / "interval").glob("*-*-0.avro"):
        shutil.copy(path, folder)
    return frame.offset


def test_the_command_names_differences_and_ends_with_1(tmp_path: Path) -> None:
    offset = wrong_interval(tmp_path / "log")
    table = run(tmp_path / "log")
    assert table.exit_code == 1
    assert (
        f"DIFFERENT partition 0, offset {offset}, event 0 of the frame: ExecutionsDueGranted" in table.output
    )
    told = run(tmp_path / "log", "--output", "json")
    assert told.exit_code == 1
    assert json.loads(told.output)["findings"][0]["offset"] == offset
    assert run(tmp_path / "log", "--until", str(offset - 1)).exit_code == 0


def test_the_command_says_that_inputs_are_not_among_the_files(tmp_path: Path) -> None:
    export(history.log_of("one-off"), tmp_path / "log", [0])
    result = run(tmp_path / "log", "--partition", "0")
    assert result.exit_code == 0
    assert "the inputs are not among the files" in result.output
    assert "the inputs are not at hand" in result.output
    assert run(tmp_path / "log", "--partition", "7").exit_code == 2


# -- as a part of `verify`


def verified(folder: Path, *arguments: str) -> Result:
    told = ["verify", "--decide", "--files", str(folder), *arguments]
    return CliRunner().invoke(app, told, env={"COLUMNS": "160"})


@pytest.mark.parametrize("processes", ["1", "2"])
def test_an_audit_that_decides_again_says_it_all_in_one_report(processes: str) -> None:
    told = verified(history.HISTORIES / "one-off", "--processes", processes, "-o", "json")
    assert told.exit_code == 0, told.output
    report = json.loads(told.stdout)
    alone = run(history.HISTORIES / "one-off", "-o", "json")
    assert report["decided"] == json.loads(alone.stdout)
    assert sum(part["equal"] for part in report["decided"]["partitions"]) > 0
    assert [part["partition"] for part in report["partitions"]] == [
        part["partition"] for part in report["decided"]["partitions"]
    ]


def test_a_log_that_is_whole_but_was_decided_otherwise_is_no_good_log(tmp_path: Path) -> None:
    """And its heads are not kept."""
    offset = wrong_interval(tmp_path / "log")
    heads = tmp_path / "heads.json"
    told = verified(tmp_path / "log", "--until", str(offset), "--heads", str(heads))
    assert told.exit_code == 1
    assert f"DIFFERENT partition 0, offset {offset}, event 0 of the frame" in told.output
    assert "All agree" not in told.output
    assert not heads.exists()
    report = json.loads(verified(tmp_path / "log", "--until", str(offset), "-o", "json").stdout)
    assert (report["ok"], report["findings"]) == (False, [])
    assert report["decided"]["findings"][0]["offset"] == offset


def test_a_log_that_breaks_off_is_told_in_one_report(tmp_path: Path) -> None:
    records = history.records_of(history.log_of("interval"), 0)
    export(CopiedLog([record for record in records if record.offset != 3]), tmp_path / "log", [0])
    told = verified(tmp_path / "log", "-o", "json")
    assert told.exit_code == 1
    report = json.loads(told.stdout)
    assert [finding["offset"] for finding in report["findings"]] == [3]
    assert [finding["offset"] for finding in report["decided"]["findings"]] == [3]
    assert report["decided"]["partitions"][0]["position"] == 2


def test_decisions_that_were_interrupted_say_how_far_they_came() -> None:
    log = history.log_of("one-off")
    asked = iter([False, False, False, True])
    found = decide_again(
        log,
        FileInputs(history.HISTORIES / "one-off"),
        log.partitions(),
        make_rows=in_memory,
        is_stopped=lambda: next(asked, True),
    )
    assert found.is_interrupted()
    first = found.partitions[0]
    assert (first.is_interrupted, first.position >= 0) == (True, True)
