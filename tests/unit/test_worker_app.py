"""Tasks: names, signatures, payloads, outcomes, settings, and how the command line finds an app."""

from __future__ import annotations

import asyncio
import dataclasses
import math
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Optional

import msgspec
import pydantic
import pytest
import structlog
from typer.testing import CliRunner

import minutebook
from minutebook.cli import worker as cli
from minutebook.cli import workers
from minutebook.mint import mint_id
from minutebook.worker import App, Cancel, Context, Fail, Retry, Snooze, WorkerSettings, outcomes
from minutebook.worker.app import can_suspend
from minutebook.worker.context import Phase
from minutebook.worker.duration import duration_ms
from minutebook.worker.payload import reader_of
from minutebook.worker.run import Run

if TYPE_CHECKING:
    from decimal import Decimal


@dataclasses.dataclass
class Plain:
    n: int


class Packed(msgspec.Struct):
    n: int


class Model(pydantic.BaseModel):
    n: int


@pydantic.dataclasses.dataclass
class Checked:
    n: int


# -- registering


def test_decorated_function_stays_callable() -> None:
    app = App()

    @app.task("double")
    def double(payload: int) -> int:
        """Twice."""
        return payload * 2

    assert double(4) == 8
    assert (double.name, double.__doc__) == ("double", "Twice.")
    assert app.tasks["double"] is double


async def test_decorated_coroutine_function_stays_callable() -> None:
    app = App()

    @app.task("double")
    async def double(payload: int) -> int:
        return payload * 2

    assert await double(4) == 8


@pytest.mark.parametrize("name", ["", "a b", "ä", "x" * 129])
def test_bad_names_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match="1-128"):
        App().task(name)
    with pytest.raises(ValueError, match="1-128"):
        App().task("fine", queue=name)


def test_name_is_taken_once() -> None:
    app = App()
    app.task("t")(lambda payload: None)
    with pytest.raises(ValueError, match="already"):
        app.task("t")


@pytest.mark.parametrize("timeout", ["0s", "soon", -1, "-1s"])
def test_bad_timeouts_are_refused(timeout: object) -> None:
    with pytest.raises(ValueError):
        App().task("t", timeout=timeout)  # type: ignore[arg-type]  # what a user may give


def test_functions_of_other_shapes_are_refused() -> None:
    for function in (lambda: None, lambda a, b, c: None, lambda *, payload: None, lambda *payloads: None):
        with pytest.raises(TypeError, match=r"\(payload\)"):
            App().task("t")(function)


def test_coroutine_function_cannot_run_on_a_thread() -> None:
    async def work(payload: object) -> None: ...

    with pytest.raises(TypeError, match="event loop"):
        App().task("t", executor="thread")(work)


def test_type_that_is_not_there_at_run_time_is_refused() -> None:
    def work(payload: Decimal) -> None: ...

    with pytest.raises(TypeError, match="TYPE_CHECKING"):
        App().task("t")(work)


def test_types_of_the_context_may_be_missing_at_run_time() -> None:
    def work(payload: int, ctx: Nowhere) -> Nothing: ...  # type: ignore[name-defined]  # noqa: F821  # that is the point

    assert App().task("t")(work).takes_context


def test_queues_are_those_that_tasks_name() -> None:
    app = App()
    assert app.queues == ("default",)
    app.task("a", queue="mail")(lambda payload: None)
    assert app.queues == ("mail",)
    app.task("b")(lambda payload: None)
    assert app.queues == ("default", "mail")


def test_only_coroutines_without_a_wait_are_instant() -> None:
    async def no_wait(payload: object) -> None:
        asyncio.current_task()

    async def waits(payload: object) -> None:
        await asyncio.sleep(0)

    async def loops(payload: object) -> None:
        async for _ in payload:  # type: ignore[attr-defined]  # only its code counts
            pass

    async def opens(payload: object) -> None:
        async with payload:  # type: ignore[attr-defined]  # only its code counts
            pass

    assert [can_suspend(function) for function in (no_wait, waits, loops, opens)] == [False, True, True, True]


def test_public_names_are_what_exists() -> None:
    assert sorted(minutebook.__all__) == minutebook.__all__
    for name in minutebook.__all__:
        assert getattr(minutebook, name) is not None
    assert minutebook.App is App


# -- payloads


@pytest.mark.parametrize("kind", [Plain, Packed, Model, Checked])
def test_payload_becomes_what_the_task_takes(kind: Any) -> None:
    assert reader_of(kind)(b'{"n":3}') == kind(n=3)
    with pytest.raises(ValueError):
        reader_of(kind)(b'{"n":"three"}')


@pytest.mark.parametrize("kind", [Plain, Packed, Model])
def test_payload_types_may_be_nested(kind: Any) -> None:
    assert reader_of(Optional[kind])(b"null") is None  # noqa: UP045  # people write it
    assert reader_of(kind | None)(b'{"n":3}') == kind(n=3)
    assert reader_of(list[kind])(b'[{"n":3}]') == [kind(n=3)]


@pytest.mark.parametrize("annotation", [Any, dict, int, dict[str, int], str | None])
def test_other_payloads_are_plain_json(annotation: Any) -> None:
    assert reader_of(annotation)(b'{"n":[1,null]}') == {"n": [1, None]}


# -- outcomes


def test_control_characters_are_escaped_and_texts_cut() -> None:
    assert outcomes.legible("a\x00\x1b[0m\n\x85\x7f\ud800é") == "a\\x00\\x1b[0m\\n\\x85\\x7f\\ud800é"
    assert len(outcomes.legible("é" * 10_000).encode()) == 8_192
    assert len(outcomes.legible("x\n" * 10_000)) == 8_192


def test_exception_whose_text_fails_is_reported_all_the_same() -> None:
    class Rude(Exception):
        def __str__(self) -> str:
            raise ValueError("no")

    failure = outcomes.failure_of(Rude())
    assert (failure.error_type, failure.is_permanent) == ("Rude", False)
    assert "ValueError" in failure.message


class Answer(pydantic.BaseModel):
    """A result that pydantic writes."""

    text: str


@pytest.mark.parametrize(
    ("value", "data"),
    [
        (0, b"0"),
        (False, b"false"),
        ("Fail", b'"Fail"'),
        ({"a": [1]}, b'{"a":[1]}'),
        (Answer(text="\u20ac"), '{"text":"\u20ac"}'.encode()),
    ],
)
def test_any_other_value_means_success_and_is_the_result(value: object, data: bytes) -> None:
    assert outcomes.outcome_of(value) == outcomes.Result(data)


def test_no_value_is_success_without_a_result() -> None:
    assert outcomes.outcome_of(None) is outcomes.Verdict.SUCCEEDED


@pytest.mark.row("W11")
def test_the_largest_result_is_kept_and_a_larger_one_refused_with_advice() -> None:
    assert outcomes.outcome_of("x" * (65_536 - 2)) == outcomes.Result(b'"' + b"x" * 65_534 + b'"')
    failure = outcomes.outcome_of("x" * (65_536 - 1))
    assert isinstance(failure, outcomes.Failure)
    assert (failure.error_type, failure.is_permanent) == ("ResultError", True)
    assert "65537 bytes" in failure.message
    assert "store it elsewhere" in failure.message
    huge = outcomes.outcome_of("x" * 100_000_000)
    assert isinstance(huge, outcomes.Failure)
    assert "100000002 bytes" in huge.message


def test_a_result_that_json_cannot_say_is_refused_with_advice() -> None:
    failure = outcomes.outcome_of(object())
    assert isinstance(failure, outcomes.Failure)
    assert (failure.error_type, failure.is_permanent) == ("ResultError", True)
    assert "return None" in failure.message


def test_snooze_and_cancel() -> None:
    until = datetime(2030, 1, 1, tzinfo=UTC)
    at = 1_893_456_000_000
    assert outcomes.outcome_of(Snooze(after="2m", reason="r")) == outcomes.Snoozing(120_000, None, "r")
    assert outcomes.outcome_of(Snooze(until=until)) == outcomes.Snoozing(0, at, "")
    assert outcomes.outcome_of(Cancel("gone")) == outcomes.Cancelling("gone")


@pytest.mark.parametrize(
    "fields", [{}, {"after": "1s", "until": datetime(2030, 1, 1, tzinfo=UTC)}, {"after": "soon"}]
)
def test_a_senseless_snooze_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(ValueError):
        Snooze(**fields)


def test_a_snooze_until_an_instant_without_a_zone_is_refused() -> None:
    with pytest.raises(ValueError, match="zone"):
        Snooze(until=datetime(2030, 1, 1))  # what is refused


@pytest.mark.parametrize("after", [-1, math.nan, math.inf, "soon", timedelta(seconds=-1)])
def test_bad_retry_after_is_refused(after: Any) -> None:
    with pytest.raises(ValueError):
        Retry(after=after)


def test_retry_without_after_leaves_it_to_the_policy() -> None:
    failure = outcomes.outcome_of(Retry(reason="busy"))
    assert failure == outcomes.Failure("Retry", "busy", is_permanent=False, retry_after_ms=None)
    assert outcomes.outcome_of(Fail("no")) == outcomes.Failure("Fail", "no", is_permanent=True)


@pytest.mark.parametrize(
    ("value", "ms"),
    [("30s", 30_000), ("PT2M", 120_000), (1.5, 1_500), (0, 0), (timedelta(minutes=1), 60_000)],
)
def test_durations_are_read(value: Any, ms: int) -> None:
    assert duration_ms(value) == ms


def test_context_logger_carries_the_fields_of_the_attempt() -> None:
    run = Run(3, 0, 77, "acme", "j:1", 2, "t", "mail", 0, 0, 1_000, b"null", 0.0)
    with structlog.testing.capture_logs() as logs:
        Context(run, 1_000, 0, Phase(), lambda _: None).logger.info("hello")
    assert logs[0].items() >= {
        "job_id": "j", "execution_id": "j:1", "attempt": 2, "task": "t", "queue": "mail", "tenant": "acme",
    }.items()  # fmt: skip
    assert "token" not in logs[0]


# -- settings and command line


def test_settings_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINUTEBOOK_WORKER_QUEUES", "mail, default")
    monkeypatch.setenv("MINUTEBOOK_WORKER_CONCURRENCY", "7")
    settings = WorkerSettings()
    assert (settings.queues, settings.concurrency, settings.lease_ms) == (("mail", "default"), 7, 10_000)


@pytest.mark.parametrize("bad", [{"concurrency": 0}, {"lease_ms": 1}, {"pulse_ms": 6_000}, {"grace_s": -1}])
def test_bad_settings_are_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(pydantic.ValidationError):
        WorkerSettings(**bad)


def test_minted_ids_are_new_and_rise() -> None:
    ids = [mint_id() for _ in range(1_000)]
    assert len(set(ids)) == 1_000
    assert all(text[14] == "7" for text in ids)


def test_app_is_loaded_from_the_working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "some_tasks.py").write_text("import minutebook\nclass ns: app = minutebook.App()\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", [*__import__("sys").path])
    assert isinstance(cli.load("some_tasks:ns.app"), App)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nowhere"], "module:app"),
        (["nowhere_at_all:app"], "no module 'nowhere_at_all'"),
        (["minutebook:nothing"], "no minutebook.App"),
        (["minutebook.ids:is_name"], "no minutebook.App"),
        (["examples:app", "--grace", "soon"], "duration"),
    ],
)
def test_wrong_usage_exits_with_2(arguments: list[str], words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli, "load", cli.load if "--grace" not in arguments else lambda target: App())
    result = CliRunner().invoke(workers.app, ["run", *arguments])
    assert (result.exit_code, words in result.output) == (2, True)


@pytest.mark.parametrize(("text", "seconds"), [("30s", 30.0), ("PT2M", 120.0), ("2.5", 2.5), (None, None)])
def test_grace_is_a_duration_or_seconds(text: str | None, seconds: float | None) -> None:
    assert cli._seconds(text) == seconds


def test_bad_setting_exits_with_2(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli, "load", lambda target: App())
    result = CliRunner().invoke(workers.app, ["run", "m:app", "--concurrency", "0"])
    assert (result.exit_code, "concurrency" in result.output) == (2, True)
