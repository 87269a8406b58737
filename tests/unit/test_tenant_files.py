"""Files of one tenant: nothing of another's is in them, their answers are those of the whole log, and every event of them
is found there again.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pyarrow.parquet as pq
import pytest
from fastavro import writer
from typer.testing import CliRunner, Result

from minutebook.domain import events as facts
from minutebook.errors import SettingsError
from minutebook.history.ledger import Range
from minutebook.history.steps import Wanted, steps_of
from minutebook.log.reader import FrameReader, Taken
from minutebook.wire.frames import Frame, encode_frame
from replay.__main__ import app
from replay.completeness import completeness
from replay.files import FileLog, export, sha256_of
from replay.parquet import write_parquet
from replay.part import part_of
from replay.reading import Until
from replay.story import steps_in
from replay.tenant_files import MANIFEST, SCHEMA, TenantLog, TenantRecord, export_tenant
from replay.verify_part import verify_part
from replay.why import why_in
from tests.simulation.busy_log import BusyLog
from tests.simulation.copies import CopiedLog
from tests.simulation.log_maker import LogMaker, failure, submit, success

MINE, OTHER = "acme", "blue"
MARK = "aa7mark"
"""In all that other tenants have, one before ours by name, one behind."""
OTHERS = (MARK, f"z-{MARK}")
PAYLOAD = b'"aa7mark"'
WORKERS = ("no_worker", "workers_busy", "workers_untold")
ALWAYS = Range(0, 4_000_000_000_000)


@pytest.fixture(scope="module", params=[3, 4])
def whole(request: pytest.FixtureRequest) -> CopiedLog:
    return CopiedLog(BusyLog(request.param).run(250).records)


@pytest.fixture(params=[MINE, OTHER])
def files(request: pytest.FixtureRequest, whole: CopiedLog, tmp_path: Path) -> TenantLog:
    export_tenant(whole, tmp_path / "out", request.param)
    return TenantLog(tmp_path / "out")


def frames(log: CopiedLog) -> list[Frame]:
    reader = FrameReader()
    taken = [reader.take(record) for record in log.read(0, *log.bounds(0))]
    return [one.frame for one in taken if isinstance(one, Taken)]


def test_steps_are_those_of_the_whole_log_place_for_place(whole: CopiedLog, files: TenantLog) -> None:
    wanted = Wanted(files.tenant)
    found = [step for frame in frames(whole) for step in steps_of(0, frame, wanted)]
    assert len(found) > 50
    assert list(steps_in(files, wanted)) == [msgspec.structs.replace(step, said=step.said) for step in found]


@pytest.mark.parametrize(("ours", "theirs"), [(MINE, OTHER), (OTHER, MINE)])
def test_nothing_of_another_tenant_is_in_a_part(whole: CopiedLog, ours: str, theirs: str) -> None:
    parts = [part for frame in frames(whole) if (part := part_of(frame, ours)) is not None]
    assert len(parts) > 50
    for part in parts:
        assert theirs not in repr(part)
        assert part_of(part, ours) == part
        for event in part.events:
            if isinstance(event, facts.ExecutionsGranted):
                assert all(event.executions[row] for row in event.permit_row)
                assert len(event.permit_row) == len(event.permit_limit) == len(event.permit_ids)


def test_whether_it_is_complete_is_answered_the_same(whole: CopiedLog, files: TenantLog) -> None:
    ours, theirs = completeness(files, [0], ALWAYS), completeness(whole, [0], ALWAYS, files.tenant)
    assert ours.tenants == theirs.tenants
    assert ours.tenants[0].implied > 10
    assert ours.missing == theirs.missing
    assert ours.partitions[0].ends_at == theirs.partitions[0].ends_at


def test_why_is_answered_the_same_but_for_workers(whole: CopiedLog, files: TenantLog) -> None:
    asked = {
        (step.job_id, step.said["scheduled_at"])
        for step in steps_in(files, Wanted(files.tenant))
        if step.kind in ("queued", "due_granted") and step.execution.rpartition(":")[2].isdecimal()
    }
    for job_id, at in sorted(asked)[:: max(1, len(asked) // 8)]:
        ours, theirs = why_in(files, files.tenant, job_id, at), why_in(whole, files.tenant, job_id, at)
        codes = {reason.code for reason in ours.reasons}
        assert not {"no_worker", "workers_busy"} & codes
        for answer in (ours, theirs):
            answer.reasons = [reason for reason in answer.reasons if reason.code not in WORKERS]
        assert ours == theirs


def test_of_workers_nothing_is_said(tmp_path: Path) -> None:
    maker = LogMaker()
    maker.open()
    maker.command(submit("a"))
    maker.due()
    maker.clock.advance(60_000)
    maker.grant()
    log = CopiedLog(maker.records)
    (step,) = [one for one in steps_in(log, Wanted(MINE)) if one.kind == "queued"]
    asked = MINE, "a", step.said["scheduled_at"]
    assert "no_worker" in {reason.code for reason in why_in(log, *asked).reasons}
    export_tenant(log, tmp_path / "out", MINE)
    found = why_in(TenantLog(tmp_path / "out"), *asked)
    assert "workers_untold" in {reason.code for reason in found.reasons}


def three_tenants() -> LogMaker:
    """Jobs of three tenants, due and run together, in events that they share."""
    maker = LogMaker()
    maker.open()
    maker.add(
        facts.QueueCopied("shared", 1, False, [MINE, *OTHERS]),
        facts.QueueCopied(f"{MARK}-queue", 1, False, [*OTHERS]),
        facts.LimitCopied(MARK, f"{MARK}-limit", 1, 1, -1, -1, -1, False),
    )
    for number in range(3):
        about = {"task": f"{MARK}-task", "payload": PAYLOAD}
        maker.command(
            submit(f"{MARK}-{number}", tenant=OTHERS[0], queue="shared", **about),
            submit(f"mine-{number}", queue="shared"),
            submit(f"{MARK}-{number}", tenant=OTHERS[1], queue=f"{MARK}-queue", **about),
        )
    maker.due()
    maker.grant()
    mine = [held for held in maker.running() if held.key.startswith(MINE.encode())]
    maker.report(failure(mine[0]))
    maker.report(success(held for held in maker.running() if held is not mine[0]))
    return maker


def test_not_a_byte_of_another_tenant_is_in_the_files(tmp_path: Path) -> None:
    log = CopiedLog(three_tenants().records)
    export_tenant(log, tmp_path / "out", MINE)
    files = TenantLog(tmp_path / "out")
    write_parquet(files, tmp_path / "out")
    held = [*tmp_path.rglob("*.json"), *tmp_path.rglob("*.parquet")]
    data = [path.read_bytes() for path in held] + [encode_frame(one.frame) for one in files.records(0)]
    assert len(held) == 2
    assert not [one for one in data if MARK.encode() in one]
    assert MARK.encode() in b"".join(record.value or b"" for record in log.read(0, 0, 100))
    table = pq.read_table(tmp_path / "out" / "partition-0.parquet")
    assert MARK not in str(table.to_pylist())
    assert {"mine-0", "mine-1", "mine-2"} <= set(table["job_id"].to_pylist())


def test_permits_of_others_are_left_out() -> None:
    maker = LogMaker()
    maker.open()
    granted = facts.ExecutionsGranted(
        [MARK, MINE],
        [0, 1, 0],
        [f"{MARK}:1", "mine:1", f"{MARK}:2"],
        [1, 1, 1],
        ["w1.1", f"{MARK}.1"],
        [1, 0, 1],
        [],
        [MARK, "k"],
        [0, 1, 2],
        [0, 1, 0],
        [65_536, 65_537, 65_538],
    )
    part = part_of(maker.made([granted], maker.clock.now()), MINE)
    assert part is not None
    (event,) = part.events
    assert isinstance(event, facts.ExecutionsGranted)
    assert MARK not in repr(event)
    assert (event.executions, event.limits) == (["", "mine:1"], ["k"])
    assert (event.permit_row, event.permit_limit, event.permit_ids) == ([1], [0], [65_537])


DROPPED = {
    facts.QueueDeclared,
    facts.SessionStarted,
    facts.SessionEnded,
    facts.RecordRejected,
    facts.InputRefused,
    facts.OutputRefused,
    facts.MailTaken,
    facts.DayForgotten,
    facts.TaskDeclared,
    facts.WorkerAsked,
    facts.ReschedulingStarted,
}
SHARED = {facts.LogOpened, facts.OwnershipTaken, facts.QueueCopied}


def test_of_each_event_it_is_said_whose_it_is() -> None:
    ours = {
        kind
        for kind in facts.Event.__args__
        if {"tenant", "fact", "job"} & {field.name for field in msgspec.structs.fields(kind)}
    }
    assert ours | SHARED | DROPPED == set(facts.Event.__args__)
    assert not ours & (SHARED | DROPPED)


# -- found in the log again


def test_files_alone_fit_together_and_prove_nothing(files: TenantLog) -> None:
    report = verify_part(files)
    assert (report.ok, report.is_proved, report.findings) == (True, False, [])
    assert report.partitions[0].records > 50


@pytest.mark.parametrize("is_cut", [False, True])
def test_each_record_is_found_in_the_log(whole: CopiedLog, tmp_path: Path, *, is_cut: bool) -> None:
    records = list(whole.read(0, *whole.bounds(0)))
    since = records[60].stamp if is_cut else 0
    export_tenant(whole, tmp_path / "out", MINE, since, Until(offset=150))
    export(whole, tmp_path / "whole", [0])
    report = verify_part(TenantLog(tmp_path / "out"), FileLog(tmp_path / "whole"))
    assert report.findings == []
    assert (report.ok, report.is_proved, report.partitions[0].log) == (True, True, "equal")
    assert report.partitions[0].end == 151
    assert (report.partitions[0].start > 0) is is_cut


def written_anew(folder: Path, change: Callable[[list[TenantRecord]], None]) -> TenantLog:
    """The files as somebody would leave them who changes them, manifest and all."""
    files = TenantLog(folder)
    records = list(files.records(0))
    change(records)
    path = folder / "partition-0.avro"
    with path.open("wb") as out:
        writer(out, SCHEMA, [one._asdict() | {"frame": encode_frame(one.frame)} for one in records])
    manifest = json.loads((folder / MANIFEST).read_text())
    manifest["stretches"][0]["sha256"] = sha256_of(path)
    (folder / MANIFEST).write_text(json.dumps(manifest))
    return TenantLog(folder)


def _of(records: list[TenantRecord], kind: type) -> int:
    return next(
        place
        for place, one in enumerate(records)
        if one.frame.events and isinstance(one.frame.events[0], kind)
    )


def left_out(records: list[TenantRecord]) -> None:
    del records[_of(records, facts.AttemptsSucceeded)]


def other_event(records: list[TenantRecord]) -> None:
    place = _of(records, facts.AttemptsSucceeded)
    one = records[place]
    event = msgspec.structs.replace(one.frame.events[0], run_ms=[7] * len(one.frame.events[0].run_ms))  # type: ignore[union-attr]
    records[place] = one._replace(frame=msgspec.structs.replace(one.frame, events=[event]))


def other_head(records: list[TenantRecord]) -> None:
    records[3] = records[3]._replace(head=bytes(32))


def other_time(records: list[TenantRecord]) -> None:
    place = _of(records, facts.AttemptsSucceeded)
    records[place] = records[place]._replace(stamp=records[place].stamp + 1)


def put_in(records: list[TenantRecord]) -> None:
    place = _of(records, facts.AttemptsSucceeded)
    one = records[place]
    del records[place]
    at = one.offset + 1
    assert all(other.offset != at for other in records)
    records.insert(place, one._replace(offset=at, frame=msgspec.structs.replace(one.frame, offset=at)))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (left_out, "what the log holds of acme there is left out here"),
        (other_event, "event 0 (AttemptsSucceeded) is another in the log"),
        (other_head, "the chain's head after it is another in the log"),
        (other_time, "its header (owner, times, stamp) is another in the log"),
        (put_in, "the log holds nothing of acme there"),
    ],
)
def test_what_was_changed_in_the_files_is_found_in_the_log(
    change: Callable[[list[TenantRecord]], None], said: str, tmp_path: Path
) -> None:
    maker = three_tenants()
    maker.void(b"junk")
    maker.void(b"junk")
    maker.command(submit("mine-last"))
    log = CopiedLog(maker.records)
    export_tenant(log, tmp_path / "out", MINE)
    files = written_anew(tmp_path / "out", change)
    report = verify_part(files, log)
    assert not report.ok
    assert said in [finding.what for finding in report.findings]


def test_the_log_at_hand_must_hold_the_stretch(whole: CopiedLog, tmp_path: Path) -> None:
    export_tenant(whole, tmp_path / "out", MINE)
    files, records = TenantLog(tmp_path / "out"), list(whole.read(0, *whole.bounds(0)))
    report = verify_part(files, CopiedLog(records[:-5]))
    assert "the log at hand ends before" in [finding.what for finding in report.findings]
    export(whole, tmp_path / "cut", [0], since=records[60].stamp)
    report = verify_part(files, FileLog(tmp_path / "cut"))
    assert [finding.what[:23] for finding in report.findings] == ["the log at hand begins "]


def of_two_partitions() -> CopiedLog:
    records = three_tenants().records
    return CopiedLog(records, records[:5])


def manifest_changed(folder: Path, change: Callable[[dict[str, Any]], None]) -> TenantLog:
    manifest = json.loads((folder / MANIFEST).read_text())
    change(manifest)
    (folder / MANIFEST).write_text(json.dumps(manifest))
    return TenantLog(folder)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda held: held["stretches"].pop(0), ["0 stretches of this partition are here instead of one"]),
        (
            lambda held: held["stretches"].clear(),
            ["0 stretches of this partition are here instead of one"] * 2,
        ),
        (
            lambda held: held["stretches"].append(held["stretches"][1]),
            ["2 stretches of this partition are here instead of one"],
        ),
        (
            lambda held: held.update(partitions=1),
            ["it lies behind the last partition that the files know of"],
        ),
    ],
)
@pytest.mark.parametrize("is_within", [False, True])
def test_of_each_partition_one_stretch_must_be_there(
    change: Callable[[dict[str, Any]], None], said: list[str], tmp_path: Path, *, is_within: bool
) -> None:
    log = of_two_partitions()
    export_tenant(log, tmp_path / "out", MINE)
    assert verify_part(TenantLog(tmp_path / "out"), log).is_proved
    report = verify_part(manifest_changed(tmp_path / "out", change), log if is_within else None)
    assert (report.ok, report.is_proved) == (False, False)
    found = [finding.what for finding in report.findings]
    assert [what for what in found if "the log has" not in what] == said


def test_a_partition_that_the_files_do_not_know_of_is_found_in_the_log(tmp_path: Path) -> None:
    log = of_two_partitions()
    export_tenant(log, tmp_path / "out", MINE)

    def forget(held: dict[str, Any]) -> None:
        held["partitions"] = 1
        held["stretches"].pop()

    files = manifest_changed(tmp_path / "out", forget)
    assert verify_part(files).ok
    report = verify_part(files, log)
    assert [finding.what for finding in report.findings] == ["the log has 2 partitions, the files know of 1"]
    assert not report.is_proved


def test_files_of_more_partitions_than_the_log_has_are_found(tmp_path: Path) -> None:
    log = of_two_partitions()
    export_tenant(log, tmp_path / "out", MINE)
    report = verify_part(TenantLog(tmp_path / "out"), CopiedLog(list(log.read(0, *log.bounds(0)))))
    assert [finding.what for finding in report.findings] == ["the log has 1 partitions, the files know of 2"]


def test_more_than_is_the_tenants_own_is_found_without_the_log(whole: CopiedLog, tmp_path: Path) -> None:
    export_tenant(whole, tmp_path / "out", MINE)
    foreign = facts.JobPaused(OTHER, "job", "c", "a", "", 1, "command")

    def add(records: list[TenantRecord]) -> None:
        frame = records[9].frame
        records[9] = records[9]._replace(
            frame=msgspec.structs.replace(frame, events=[*frame.events, foreign])
        )

    report = verify_part(written_anew(tmp_path / "out", add))
    assert [finding.what for finding in report.findings] == ["it holds more than what is acme's own"]


# -- the command


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


def test_verbs_on_the_files_of_a_tenant(tmp_path: Path) -> None:
    export(CopiedLog(three_tenants().records), tmp_path / "whole", [0])
    whole, out = str(tmp_path / "whole"), str(tmp_path / "out")
    made = run("export", out, "--files", whole, "--tenant", MINE, "--parquet")
    assert made.exit_code == 0, made.output
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "partition-0.avro",
        "partition-0.parquet",
        "tenant.json",
    ]
    assert run("story", "mine-1", "--tenant", MINE, "--files", out).exit_code == 0
    other = run("story", f"{MARK}-1", "--tenant", MARK, "--files", out)
    assert other.exit_code == 3
    assert "holds what is of the tenant acme alone, and nothing of aa7mark" in other.output
    since, until = "2025-01-01T00:00:00Z", "2026-01-01T00:00:00Z"
    found = run("completeness", since, until, "--files", out, "-o", "json")
    assert found.exit_code == 0, found.output
    assert [one["tenant"] for one in json.loads(found.stdout)["tenants"]] == [MINE]
    alone = run("verify", "--files", out)
    assert alone.exit_code == 0, alone.output
    assert "Not proved: that the log has these events" in " ".join(alone.stdout.split())
    proved = run("verify", "--files", out, "--within", whole)
    assert proved.exit_code == 0, proved.output
    assert "Each record is the log's" in proved.stdout
    report = json.loads(run("verify", "--files", out, "--within", whole, "-o", "json").stdout)
    assert report["is_proved"] is True
    written_anew(tmp_path / "out", other_event)
    assert run("verify", "--files", out, "--within", whole).exit_code == 1


def test_an_export_says_how_much_is_the_tenants_own(tmp_path: Path) -> None:
    export(CopiedLog(three_tenants().records), tmp_path / "whole", [0])
    made = run("export", str(tmp_path / "out"), "--files", str(tmp_path / "whole"), "--tenant", MINE)
    (part,) = verify_part(TenantLog(tmp_path / "out")).partitions
    assert part.events > part.records > 1
    assert f"partition 0: {part.events} events in {part.records} of {part.end} records, head" in made.stdout


@pytest.mark.parametrize("is_there", [False, True])
def test_an_export_of_a_tenant_that_is_not_there_leaves_nothing(tmp_path: Path, *, is_there: bool) -> None:
    export(CopiedLog(three_tenants().records), tmp_path / "whole", [0])
    out = tmp_path / "out"
    if is_there:
        out.mkdir()
    found = run("export", str(out), "--files", str(tmp_path / "whole"), "--tenant", "nobody", "--parquet")
    assert found.exit_code == 3, found.output
    assert "the log holds nothing of the tenant nobody in that time" in found.output
    assert out.exists() is is_there
    assert not list(tmp_path.glob("out/*"))
    assert run("export", str(out), "--files", str(tmp_path / "whole"), "--tenant", "").exit_code == 2


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("at", since := "2026-01-01T00:00:00Z", "--files", "OUT"), 3),
        (("import", "OUT", "--into", "copies"), 3),
        (("export", "again", "--files", "OUT"), 3),
        (("verify", "--files", "OUT", "--within", "OUT"), 3),
        (("verify", "--files", "OUT", "--within", "nowhere"), 2),
        (("verify", "--files", "OUT", "--heads", "heads.json"), 2),
        (("verify", "--files", "OUT", "--until", "5"), 2),
        (("verify", "--within", "kafka"), 2),
        (("completeness", since, "2026-01-02T00:00:00Z", "--tenant", "other", "--files", "OUT"), 3),
    ],
)
def test_what_needs_the_whole_log_says_so(
    arguments: tuple[str, ...], code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    export_tenant(CopiedLog(three_tenants().records), tmp_path / "OUT", MINE)
    found = run(*arguments)
    assert found.exit_code == code, found.output
    assert [path.name for path in tmp_path.iterdir()] == ["OUT"]


@pytest.mark.parametrize(
    "text", ["{}", '{"format": 9, "tenant": "a", "topic": "t", "partitions": 1, "stretches": []}']
)
def test_what_is_no_export_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / MANIFEST).write_text(text)
    with pytest.raises(SettingsError, match=r"holds no export|is of format 9, 1 is known"):
        TenantLog(tmp_path)


def test_a_changed_file_is_refused(whole: CopiedLog, tmp_path: Path) -> None:
    export_tenant(whole, tmp_path / "out", MINE)
    path = tmp_path / "out" / "partition-0.avro"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(SettingsError, match=r"partition-0\.avro is not the file that was exported"):
        TenantLog(tmp_path / "out")
