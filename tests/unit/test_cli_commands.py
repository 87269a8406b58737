"""What all commands have in common: a quick start, an environment name for each option, how results are shown."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from minutebook.cli import main, presentation
from minutebook.cli.nouns import NOUNS, commands, loaded
from minutebook.cli.output import fault, note, shown
from minutebook.cli.presentation import TimeFormat
from minutebook.cli.shown_times import from_now

Run = Callable[..., int]
HEAVY = (
    "aiokafka",
    "confluent_kafka",
    "fastapi",
    "fastavro",
    "faust",
    "kafka",
    "rocksdict",
    "uvicorn",
    "yaml",
)
COMMANDS = list(commands())


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Run:
    def running(*arguments: str) -> int:
        monkeypatch.setattr(sys, "argv", ["minutebook", *arguments])
        with pytest.raises(SystemExit) as ended:
            main.run()
        return int(ended.value.code or 0)

    return running


def modules_of(*arguments: str) -> set[str]:
    """Top-level modules that a command loads, in a process of its own; no API is there."""
    code = (
        "import sys\nfrom minutebook.cli import main\n"
        f"sys.argv = ['minutebook', *{arguments!r}]\n"
        "try:\n    main.run()\nexcept SystemExit:\n    pass\n"
        "print('\\nLOADED', *{name.partition('.')[0] for name in sys.modules})"
    )
    environment = {"MINUTEBOOK_CLIENT_URL": "http://127.0.0.1:1", "MINUTEBOOK_CLIENT_RETRIES_MAX": "0"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.partition("\nLOADED ")[2].split())


@pytest.mark.parametrize("arguments", [("job", "show", "a"), ("job", "history", "a"), ("queue", "list")])
def test_command_of_the_api_loads_no_heavy_module(arguments: tuple[str, ...]) -> None:
    loaded_ = modules_of(*arguments)
    assert "httpx" in loaded_
    assert loaded_.isdisjoint(HEAVY)


@pytest.mark.parametrize("arguments", [("--help",), ("version",)])
def test_help_and_version_load_not_even_the_client(arguments: tuple[str, ...]) -> None:
    assert modules_of(*arguments).isdisjoint({*HEAVY, "httpx"})


@pytest.mark.parametrize("name", NOUNS)
def test_noun_says_of_itself_what_the_list_says(name: str) -> None:
    told = loaded(name).help.partition("\n\n")[0]
    assert told == NOUNS[name].help


def test_near_name_is_suggested(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("jbo", "list") == 2
    assert "'job'" in capsys.readouterr().err


def options() -> list[tuple[str, Any]]:
    return [
        (f"{' '.join(words)} {option.opts[0]}", option)
        for words, command in COMMANDS
        for option in command.params
        if option.param_type_name == "option" and option.name != "help"
    ]


def test_every_option_has_an_environment_name_that_help_shows() -> None:
    assert not [name for name, option in options() if not option.show_envvar or not option.envvar]
    names = {name: option.envvar for name, option in options()}
    assert names["calendar delete --dry-run"] == "MINUTEBOOK_CALENDAR_DELETE_DRY_RUN"
    assert names["job submit --max-runs"] == "MINUTEBOOK_JOB_SUBMIT_MAX_RUNS"
    assert len(names) > 100


def test_option_is_taken_from_the_environment(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run("schedule", "preview", "x") == 2
    monkeypatch.setenv("MINUTEBOOK_SCHEDULE_PREVIEW_EVERY", "soon")
    assert run("schedule", "preview") == 2
    monkeypatch.setenv("MINUTEBOOK_SCHEDULE_PREVIEW_EVERY", "90s")
    assert run("schedule", "preview") == 0


def test_every_command_can_be_quiet_and_show_times_otherwise() -> None:
    for words, command in COMMANDS:
        names = {option.name for option in command.params}
        assert names >= {"quiet", "time_format"}, words


def test_every_command_that_prints_data_has_each_form() -> None:
    without = {words for words, command in COMMANDS if "output" not in {one.name for one in command.params}}
    assert without == {("dev",), ("version",), ("worker", "run")}, "these print no data"


def test_quiet_keeps_faults_and_leaves_hints_out(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    for given, hint in (((), "hint\n"), (("--quiet",), "")):
        assert run("version", *given) == 0
        capsys.readouterr()
        note("hint")
        fault("wrong")
        assert capsys.readouterr().err == hint + "error: wrong\n"


def test_instant_is_shown_as_asked(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(presentation.ASKED, "time_format", TimeFormat.UTC)
    instant = "1970-01-02T00:00:00.250Z"
    assert shown(instant) == instant
    run("version", "--time-format", "epoch")
    assert (shown(instant), shown("a:86400250"), shown(f"at {instant}")) == (
        "86400250",
        "a:86400250",
        f"at {instant}",
    )
    run("version", "--time-format", "local")
    assert shown(instant).startswith("1970-01-0")
    assert shown(instant)[-6] in "+-"
    run("version", "--time-format", "relative")
    assert shown(instant).endswith(" ago")
    run("version")
    assert shown(instant) == instant
    assert run("version", "--time-format", "julian") == 2


@pytest.mark.parametrize(
    ("ms", "told"),
    [
        (0, "now"),
        (999, "now"),
        (-1_000, "1s ago"),
        (61_000, "in 1m 1s"),
        (3_600_000, "in 1h"),
        (-3_601_000, "1h ago"),
        (90_061_000, "in 1d 1h"),
    ],
)
def test_distance_is_told_by_its_two_largest_units(ms: int, told: str) -> None:
    assert from_now(ms) == told


def test_setting_that_is_refused_is_named(
    run: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MINUTEBOOK_CLIENT_TIMEOUT_S", "soon")
    assert run("job", "show", "a") == 2
    assert "MINUTEBOOK_CLIENT_TIMEOUT_S: Input should be a valid number" in capsys.readouterr().err
