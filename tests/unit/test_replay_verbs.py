"""`python -m replay` on exported files: what each verb prints, and the code that it ends with."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NoReturn

import msgspec
import pytest
from typer.testing import CliRunner, Result

from minutebook.domain import events as facts
from minutebook.errors import SettingsError
from minutebook.history.ledger import Range
from minutebook.log.last_audit import Accounted, Place, read_last
from minutebook.log.port import RawRecord
from minutebook.log.reader import next_head
from minutebook.times import format_instant, parse_instant
from minutebook.wire.frames import decode_frame, encode_frame
from replay.__main__ import app
from replay.completeness import completeness
from replay.decided import Decided, PartitionDecided
from replay.files import export, sha256_of
from replay.pages import completeness_page
from replay.verbs import verify as verify_verb
from replay.verbs.completeness import last_day
from tests.simulation.copies import CopiedLog
from tests.simulation.log_maker import LogMaker, pause, submit, success

MINUTE = 60_000


def log_of_a_minutely_job() -> LogMaker:
    """Five minutes of a job, of which it is paused for one."""
    maker = LogMaker()
    maker.open()
    maker.command(submit("minutely", cron="* * * * *", actor="key:a via cli"))
    for _ in range(5):
        maker.clock.advance(MINUTE)
        maker.due("w1.1")
        maker.report(success(maker.running()))
    return maker


def rechained(records: list[RawRecord], events: dict[int, list[facts.Event]]) -> list[RawRecord]:
    """The log with other events in some frames, as somebody would write it who makes all frames behind anew."""
    head, found = bytes(32), []
    for record in records:
        frame = decode_frame(record.value)
        frame = msgspec.structs.replace(frame, head=head, events=events.get(record.offset, frame.events))
        found.append(record._replace(value=encode_frame(frame)))
        head = next_head(head, found[-1])
    return found


@pytest.fixture
def maker() -> LogMaker:
    return log_of_a_minutely_job()


@pytest.fixture
def whole(maker: LogMaker) -> list[str]:
    """FROM and TO around the log."""
    stamps = [record.stamp for record in maker.records]
    return [format_instant(stamps[0] - MINUTE), format_instant(stamps[-1] + 1)]


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


def exported(folder: Path, records: list[RawRecord]) -> str:
    export(CopiedLog(records), folder / "files", [0])
    return str(folder / "files")


def test_a_log_is_complete(maker: LogMaker, whole: list[str], tmp_path: Path) -> None:
    files = exported(tmp_path, maker.records)
    found = run("completeness", *whole, "--files", files, "-o", "json", "--report", str(tmp_path / "kept"))
    assert found.exit_code == 0, found.output
    report = json.loads(found.stdout)
    (tenant,) = report["tenants"]
    assert (tenant["implied"], tenant["ran"], tenant["ended"]["succeeded"], tenant["open"]) == (5, 5, 5, 0)
    assert report["missing"] == []
    day = report["first_at"][:10]
    names = sorted(path.name for path in (tmp_path / "kept").iterdir())
    assert names == [f"completeness-{day}.html", f"completeness-{day}.json", "last-completeness.json"]
    last = read_last(tmp_path / "kept").completeness
    assert last is not None
    assert last.tenants == {tenant["tenant"]: Accounted(implied=5, missing=0)}
    assert (last.first_at, last.last_at) == (report["first_at"], report["last_at"])
    assert "Complete: each instant ran" in run("completeness", *whole, "--files", files).stdout


def test_an_instant_that_is_not_there_is_named(maker: LogMaker, whole: list[str], tmp_path: Path) -> None:
    found = None
    for record in maker.records[4:]:
        frame = decode_frame(record.value)
        if any(isinstance(event, facts.ExecutionsDueGranted) for event in frame.events):
            found = frame
            break
    assert found is not None
    (event,) = [one for one in found.events if isinstance(one, facts.ExecutionsDueGranted)]
    at = format_instant(event.scheduled_at[0])
    left = [one for one in found.events if one is not event]
    files = exported(tmp_path, rechained(maker.records, {found.offset: left}))
    said = run("completeness", *whole, "--files", files)
    assert said.exit_code == 1
    assert f"MISSING {at}: job minutely of acme" in said.stdout
    report = completeness(
        CopiedLog(rechained(maker.records, {found.offset: left})), [0], Range(0, 4_000_000_000_000)
    )
    page = completeness_page(report, 0)
    assert at in page
    assert "Not complete." in page


def test_a_page_shows_any_text_as_it_is(maker: LogMaker) -> None:
    report = completeness(CopiedLog(maker.records), [0], Range(0, 4_000_000_000_000))
    report.tenants[0].tenant = "<script>alert(1)</script>"
    assert "<script>" not in completeness_page(report, 0)


def test_a_pause_explains(tmp_path: Path, whole: list[str]) -> None:
    maker = log_of_a_minutely_job()
    maker.command(pause("minutely", issued_at=maker.clock.now(), reason="why not"))
    maker.clock.advance(3 * MINUTE)
    maker.command(submit("other", issued_at=maker.clock.now(), run_at=maker.clock.now() + MINUTE))
    report = completeness(CopiedLog(maker.records), [0], Range(0, 4_000_000_000_000))
    assert report.ok
    assert report.tenants[0].explained == {"paused": 3}
    assert report.behind_the_log == [0]


def test_what_is_overdue_at_the_end_of_the_log_is_missing() -> None:
    maker = log_of_a_minutely_job()
    maker.clock.advance(10 * MINUTE)
    maker.command(submit("other", issued_at=maker.clock.now(), run_at=maker.clock.now() + MINUTE))
    report = completeness(CopiedLog(maker.records), [0], Range(0, 4_000_000_000_000))
    assert not report.ok
    assert [one.what for one in report.missing] == [
        "it was due, and the log does not say what became of it"
    ] * 9
    assert report.tenants[0].pending == 1


@pytest.mark.parametrize(
    ("now", "day"),
    [
        ("2026-03-02T00:04:59.999Z", "2026-02-28"),
        ("2026-03-02T00:05:00.000Z", "2026-03-01"),
        ("2026-03-02T23:59:59.999Z", "2026-03-01"),
    ],
)
def test_a_night_reports_on_the_last_day_that_is_over(now: str, day: str) -> None:
    asked = last_day(parse_instant(now))
    assert format_instant(asked.first_at) == f"{day}T00:00:00.000Z"
    assert format_instant(asked.last_at) == f"{day}T23:59:59.999Z"


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("completeness",), 2),
        (("completeness", "2026-01-01T00:00:00Z"), 2),
        (("completeness", "2026-01-02T00:00:00Z", "2026-01-01T00:00:00Z"), 2),
        (("completeness", "2026-01-01", "2026-01-02T00:00:00Z"), 2),
        (("completeness", "--nightly"), 2),
        (("story", "minutely"), 2),
        (("story", "a b", "--tenant", "acme"), 2),
        (("at", "soon"), 2),
        (("at", "5"), 2),
        (("at", "2026-01-01T00:00:00Z", "--job", "a"), 2),
        (("verify", "--files", "/nowhere"), 2),
        (("verify", "--against", "/nowhere"), 2),
        (("verify", "--report", "kept", "--until", "5"), 2),
        (("import", "/nowhere", "--into", "x"), 2),
    ],
)
def test_senseless_arguments_are_refused(arguments: tuple[str, ...], code: int) -> None:
    assert run(*arguments).exit_code == code


def broken(folder: Path, maker: LogMaker, *, is_manifest_fitted: bool) -> str:
    """Exported files in which one stamp was changed: what follows is void."""
    files = Path(exported(folder, maker.records))
    records = [*maker.records]
    records[3] = records[3]._replace(stamp=records[3].stamp + 1)
    (stretch,) = export(CopiedLog(records), folder / "other", [0]).stretches
    (folder / "other" / stretch.file).rename(files / stretch.file)
    manifest = json.loads((files / "manifest.json").read_text())
    manifest["stretches"][0]["sha256"] = stretch.sha256
    if is_manifest_fitted:
        manifest["stretches"][0]["head_after"] = stretch.head_after
    (files / "manifest.json").write_text(json.dumps(manifest))
    return str(files)


BY_VERB = [
    ("decide",),
    ("at", "2030-01-01T00:00:00Z"),
    ("story", "minutely", "--tenant", "acme"),
    ("why", "minutely", "2025-07-01T12:01:00Z", "--tenant", "acme"),
    ("completeness", "2025-01-01T00:00:00Z", "2026-01-01T00:00:00Z"),
]


@pytest.mark.parametrize("verb", BY_VERB)
def test_files_whose_chain_breaks_are_no_answer(
    verb: tuple[str, ...], maker: LogMaker, tmp_path: Path
) -> None:
    found = run(*verb, "--files", broken(tmp_path, maker, is_manifest_fitted=False))
    said = " ".join(found.output.split())
    assert found.exit_code == 1, said
    assert "the last record that continues the chain is at offset 3" in said
    assert "python -m replay verify" in said


@pytest.mark.parametrize("verb", BY_VERB)
def test_void_records_up_to_the_end_are_said(verb: tuple[str, ...], maker: LogMaker, tmp_path: Path) -> None:
    files = broken(tmp_path, maker, is_manifest_fitted=True)
    said = " ".join(run(*verb, "--files", files).output.split())
    last = len(maker.records) - 1
    assert f"the last {last - 3} records, from offset 4 through {last}, are void" in said


@pytest.mark.parametrize("output", ["table", "json"])
def test_an_import_says_void_records_up_to_the_end(output: str, maker: LogMaker, tmp_path: Path) -> None:
    files = broken(tmp_path, maker, is_manifest_fitted=True)
    said = run("import", files, "--into", str(tmp_path / "copies"), "-o", output).stdout
    last = len(maker.records) - 1
    if output == "table":
        assert f"the last {last - 3} records, from offset 4 through {last}, are void" in said
    else:
        (one,) = json.loads(said)["partitions"]
        assert (one["position"], one["void_at_end"]) == (last, last - 3)


def test_the_state_then_says_void_records_up_to_its_end_as_json(maker: LogMaker, tmp_path: Path) -> None:
    files = broken(tmp_path, maker, is_manifest_fitted=True)
    found = json.loads(run("at", "4", "--partition", "0", "--files", files, "-o", "json").stdout)
    assert found["partitions"][0]["void_at_end"] == 1


@pytest.mark.parametrize(
    "verb", [("import", "FILES", "--into", "OUT"), ("export", "OUT", "--files", "FILES", "--tenant", "acme")]
)
def test_what_cannot_be_done_to_its_end_leaves_nothing(
    verb: tuple[str, ...], maker: LogMaker, tmp_path: Path
) -> None:
    gap = [record for record in maker.records if record.offset != 4]
    names = {"FILES": exported(tmp_path, gap), "OUT": str(tmp_path / "new" / "out")}
    found = run(*(names.get(word, word) for word in verb))
    assert found.exit_code == 1, found.output
    assert "error: the log cannot be read on" in found.output
    assert [path.name for path in tmp_path.iterdir()] == ["files"]


@pytest.mark.parametrize(
    "verb", [("import", "FILES", "--into", "OUT"), ("export", "OUT", "--files", "FILES")]
)
def test_a_place_that_cannot_be_written_is_named(
    verb: tuple[str, ...], maker: LogMaker, tmp_path: Path
) -> None:
    (tmp_path / "note").write_text("mine")
    names = {"FILES": exported(tmp_path, maker.records), "OUT": str(tmp_path / "note" / "out")}
    found = run(*(names.get(word, word) for word in verb))
    assert (found.exit_code, (tmp_path / "note").read_text()) == (3, "mine")
    assert f"error: {tmp_path / 'note'}" in found.output


def test_an_export_of_a_time_without_records_leaves_nothing(maker: LogMaker, tmp_path: Path) -> None:
    files = exported(tmp_path, maker.records)
    found = run("export", str(tmp_path / "out"), "--files", files, "--from", "2100-01-01T00:00:00Z")
    assert found.exit_code == 3
    assert "no record in that time" in found.output
    assert not (tmp_path / "out").exists()


OF_A_LOG = [
    ("verify", "--files", "FILES"),
    *((*verb, "--files", "FILES") for verb in BY_VERB),
    ("import", "FILES", "--into", "OUT"),
    ("export", "OUT", "--files", "FILES"),
]


@pytest.mark.parametrize("verb", OF_A_LOG)
def test_a_file_that_breaks_off_is_named(verb: tuple[str, ...], maker: LogMaker, tmp_path: Path) -> None:
    """Somebody has made the hash of the file anew, too."""
    files = Path(exported(tmp_path, maker.records))
    file = files / "partition-0.avro"
    file.write_bytes(file.read_bytes()[:-200])
    manifest = json.loads((files / "manifest.json").read_text())
    manifest["stretches"][0]["sha256"] = sha256_of(file)
    (files / "manifest.json").write_text(json.dumps(manifest))
    names = {"FILES": str(files), "OUT": str(tmp_path / "out")}
    found = run(*(names.get(word, word) for word in verb))
    assert found.exit_code == 3, found.output
    assert f"error: {file} is cut or damaged" in found.output
    assert [path.name for path in tmp_path.iterdir()] == ["files"]


@pytest.mark.parametrize("verb", OF_A_LOG)
def test_a_folder_that_is_no_export_is_named(verb: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "files").mkdir()
    names = {"FILES": str(tmp_path / "files"), "OUT": str(tmp_path / "out")}
    found = run(*(names.get(word, word) for word in verb))
    assert found.exit_code == 3, found.output
    assert "holds no export: there is no manifest.json" in found.output
    assert [path.name for path in tmp_path.iterdir()] == ["files"]


@pytest.mark.parametrize(
    ("verb", "code", "said"),
    [
        (("verify", "--files", "FILES"), 0, "The log holds no record: nothing was checked"),
        (("decide", "--files", "FILES"), 0, "Nothing could be decided again"),
        (("at", "2030-01-01T00:00:00Z", "--files", "FILES"), 0, "partition 0: no decision by then"),
        (
            ("completeness", "2025-01-01T00:00:00Z", "2026-01-01T00:00:00Z", "--files", "FILES"),
            0,
            "holds no record",
        ),
        (("import", "FILES", "--into", "OUT"), 3, "the log has no record up to there"),
        (("export", "OUT", "--files", "FILES"), 3, "the log has no record in that time"),
    ],
)
def test_an_empty_log_is_said_to_be_empty(
    verb: tuple[str, ...], code: int, said: str, tmp_path: Path
) -> None:
    names = {"FILES": exported(tmp_path, []), "OUT": str(tmp_path / "out")}
    found = run(*(names.get(word, word) for word in verb))
    text = " ".join(found.output.split())
    assert found.exit_code == code, text
    assert said in text
    assert "All agree" not in text
    assert "Complete" not in text
    assert [path.name for path in tmp_path.iterdir()] == ["files"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("at", "soon"), "TIME|OFFSET: 'soon' is neither an offset nor a time such as"),
        (("at", "2026-01-01T00:00:00"), "TIME|OFFSET: the time 2026-01-01T00:00:00 needs a zone"),
        (("verify", "--until", "soon"), "--until: 'soon' is neither an offset nor a time such as"),
        (("completeness", "x", "y"), "FROM: 'x' is no time such as"),
        (("why", "a", "x", "--tenant", "acme"), "AT: 'x' is no time such as"),
        (
            ("completeness", "2026-01-02T00:00:00Z", "2026-01-01T00:00:00Z"),
            "TO: must be later than FROM",
        ),
    ],
)
def test_a_senseless_argument_is_named_with_the_remedy(arguments: tuple[str, ...], said: str) -> None:
    found = CliRunner().invoke(app, list(arguments), env={"COLUMNS": "200"})
    assert found.exit_code == 2
    assert said in " ".join(found.output.replace("│", " ").split())


def test_an_answer_of_a_log_that_ends_before_says_so(
    maker: LogMaker, whole: list[str], tmp_path: Path
) -> None:
    files = exported(tmp_path, maker.records)
    found = run("completeness", whole[0], "2100-01-01T00:00:00Z", "--files", files)
    assert "Complete as far as the log goes" in found.output


@pytest.mark.parametrize(
    ("records", "said"), [(0, "The log holds no record:"), (4, "Complete as far as the log goes.")]
)
def test_a_page_says_how_far_the_log_goes(records: int, said: str, maker: LogMaker) -> None:
    log = CopiedLog(maker.records[:records])
    found = completeness(log, [0], Range(maker.records[0].stamp, maker.records[-1].stamp))
    page = completeness_page(found, 0)
    assert f"<strong>{said}</strong>" in page


def test_a_story_of_a_stretch_says_where_it_begins(maker: LogMaker, tmp_path: Path) -> None:
    export(CopiedLog(maker.records), tmp_path / "cut", [0], since=maker.records[4].stamp)
    found = run("story", "minutely", "--tenant", "acme", "--files", str(tmp_path / "cut"), "-o", "json")
    assert json.loads(found.stdout)
    assert "partition 0 begins at offset 4 here" in found.stderr


def test_story_and_state_and_proof_from_files(maker: LogMaker, tmp_path: Path) -> None:
    files = exported(tmp_path, maker.records)
    story = run("story", "minutely", "--tenant", "acme", "--files", files, "-o", "json")
    assert story.exit_code == 0, story.output
    assert [step["kind"] for step in json.loads(story.stdout)] == [
        "submitted",
        *["due_granted", "succeeded"] * 5,
    ]
    assert run("story", "none", "--tenant", "acme", "--files", files).exit_code == 3
    assert "came due" in run("story", "minutely", "--tenant", "acme", "--files", files).stdout
    then = run(
        "at", "2", "--partition", "0", "--tenant", "acme", "--job", "minutely", "--files", files, "-o", "json"
    )
    assert json.loads(then.stdout)["job"]["executions"]["open"] == 1
    assert (
        run(
            "at", "0", "--partition", "0", "--tenant", "acme", "--job", "minutely", "--files", files
        ).exit_code
        == 3
    )
    heads = str(tmp_path / "heads.json")
    assert run("verify", "--files", files, "--heads", heads).exit_code == 0
    assert run("verify", "--files", files, "--against", heads).exit_code == 0
    cut = CopiedLog(maker.records[:-1])
    export(cut, tmp_path / "cut", [0])
    assert run("verify", "--files", str(tmp_path / "cut"), "--against", heads).exit_code == 1
    into = str(tmp_path / "copies")
    assert run("import", files, "--into", into).exit_code == 0
    assert run("import", files, "--into", into).exit_code == 3
    assert run("verify", "--files", files, "--checkpoints", into).exit_code == 0
    again = run("export", str(tmp_path / "again"), "--files", files)
    assert again.exit_code == 0, again.output
    assert run("export", str(tmp_path / "again"), "--files", files).exit_code == 3


def test_a_result_is_left_for_the_pages(maker: LogMaker, tmp_path: Path) -> None:
    files, kept = exported(tmp_path, maker.records), tmp_path / "kept"
    assert run("verify", "--files", files, "--processes", "1", "--report", str(kept)).exit_code == 0
    last = read_last(kept).verify
    assert last is not None
    assert (last.ok, last.findings, last.first, last.is_interrupted) == (True, 0, None, False)
    assert last.records == len(maker.records)
    assert last.through[0] == Place(partition=0, position=maker.records[-1].offset)
    assert read_last(kept).completeness is None
    heads = tmp_path / "heads.json"
    assert run("verify", "--files", files, "--processes", "1", "--heads", str(heads)).exit_code == 0
    told = json.loads(heads.read_text())
    told["partitions"]["0"]["head"] = "00" * 32
    heads.write_text(json.dumps(told))
    found = run(
        "verify", "--files", files, "--processes", "1", "--against", str(heads), "--report", str(kept)
    )
    assert found.exit_code == 1, found.output
    last = read_last(kept).verify
    assert last is not None
    assert (last.ok, last.findings) == (False, 1)
    assert last.first is not None


@pytest.mark.parametrize("part", [("--partition", "0"), ("--until", "3")])
def test_a_part_of_the_log_does_not_replace_the_result_of_the_whole(
    part: tuple[str, str], maker: LogMaker, tmp_path: Path
) -> None:
    files, kept = exported(tmp_path, maker.records), tmp_path / "kept"
    found = run("verify", "--files", files, *part, "--report", str(kept))
    assert found.exit_code == 2
    assert "--report" in found.output
    assert not kept.exists()


@pytest.mark.parametrize("is_exported", [False, True])
def test_a_report_on_one_tenant_is_no_result_for_all(
    is_exported: bool, maker: LogMaker, whole: list[str], tmp_path: Path
) -> None:
    files, kept = exported(tmp_path, maker.records), tmp_path / "kept"
    only = ["--files", files, "--tenant", "acme"]
    if is_exported:
        assert run("export", str(tmp_path / "acme"), *only).exit_code == 0
        only = ["--files", str(tmp_path / "acme")]
    found = run("completeness", *whole, *only, "--report", str(kept))
    assert found.exit_code == 0, found.output
    assert list(kept.glob("completeness-*.json"))
    assert read_last(kept).completeness is None


def unwritable(folder: Path, name: str) -> tuple[str, str]:
    """A folder of reports that the command takes and in which nothing can be kept, and what is said of it."""
    if name == "sub":
        (folder / "kept").write_text("a file")
        return str(folder / "kept" / "sub"), "kept"
    (folder / "kept" / name).mkdir(parents=True)
    return str(folder / "kept"), name


@pytest.mark.parametrize("name", ["last-verify.json", "sub"])
@pytest.mark.parametrize("code", [1, 3])
def test_a_result_that_cannot_be_kept_hides_no_difference(
    code: int, name: str, maker: LogMaker, tmp_path: Path
) -> None:
    files = (
        exported(tmp_path, maker.records) if code == 3 else broken(tmp_path, maker, is_manifest_fitted=False)
    )
    kept, said = unwritable(tmp_path, name)
    found = run("verify", "--files", files, "--processes", "1", "--report", kept)
    assert found.exit_code == code, found.output
    assert "the log folded again" in found.stdout
    assert ("DIFFERENT" in found.stdout) is (code == 1)
    assert "error: " in found.stderr
    assert said in found.stderr


@pytest.mark.parametrize("name", ["last-completeness.json", "sub"])
@pytest.mark.parametrize("code", [1, 3])
def test_a_report_that_cannot_be_kept_hides_nothing_that_is_missing(
    code: int, name: str, maker: LogMaker, whole: list[str], tmp_path: Path
) -> None:
    if code == 1:
        maker.clock.advance(10 * MINUTE)
        maker.command(submit("other", issued_at=maker.clock.now(), run_at=maker.clock.now() + MINUTE))
        whole = [whole[0], format_instant(maker.clock.now())]
    files = exported(tmp_path, maker.records)
    kept, said = unwritable(tmp_path, name)
    found = run("completeness", *whole, "--files", files, "--report", kept)
    assert found.exit_code == code, found.output
    assert "Instants from" in found.stdout
    assert ("MISSING" in found.stdout) is (code == 1)
    assert "error: " in found.stderr
    assert said in found.stderr


def test_what_was_verified_stays_said_if_deciding_fails(
    maker: LogMaker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object, **__: object) -> NoReturn:
        raise SettingsError("the inputs are damaged")

    monkeypatch.setattr(verify_verb, "decide_again", fails)
    files, kept = exported(tmp_path, maker.records), tmp_path / "kept"
    found = run("verify", "--files", files, "--processes", "1", "--decide", "--report", str(kept))
    assert found.exit_code == 3
    assert "the inputs are damaged" in found.stderr
    assert "the log folded again" in found.stdout
    last = read_last(kept).verify
    assert last is not None
    assert (last.ok, last.is_interrupted, last.records) == (True, True, len(maker.records))


def test_an_interruption_while_deciding_is_kept(
    maker: LogMaker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(*_: object, **__: object) -> Decided:
        return Decided(
            ok=True, inputs="", partitions=[PartitionDecided(partition=0, is_interrupted=True)], findings=[]
        )

    monkeypatch.setattr(verify_verb, "decide_again", stopped)
    files, kept = exported(tmp_path, maker.records), tmp_path / "kept"
    found = run("verify", "--files", files, "--processes", "1", "--decide", "--report", str(kept))
    assert found.exit_code == 130, found.output
    last = read_last(kept).verify
    assert last is not None
    assert last.is_interrupted
