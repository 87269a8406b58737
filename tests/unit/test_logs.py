"""What our processes log: JSON with stable actions, nothing that must not be told, and every action is on the list."""

from __future__ import annotations

import ast
import contextvars
import io
import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import structlog
from fastapi import FastAPI

from api.server import server_config
from minutebook import tracing
from minutebook.actions import ACTIONS
from minutebook.logs import CHARS_MAX, set_up
from tests.spans import collected

ROOT = Path(__file__).parents[2]
LEVELS = {"debug", "info", "warning", "error", "critical", "exception"}


@pytest.fixture
def stream() -> Iterator[io.StringIO]:
    made = io.StringIO()
    handlers, level = logging.root.handlers[:], logging.root.level
    set_up(made, "INFO")
    yield made
    structlog.reset_defaults()
    logging.root.handlers[:] = handlers
    logging.root.setLevel(level)


def lines(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_a_line_is_json_with_its_action_its_meaning_and_utc(stream: io.StringIO) -> None:
    structlog.get_logger().info("partition_served", partition=3, offset=7)
    structlog.get_logger().debug("partition_served")
    (line,) = lines(stream)
    assert line.pop("timestamp").endswith("Z")
    assert line == {
        "level": "info",
        "action": "partition_served",
        "message": ACTIONS["partition_served"],
        "partition": 3,
        "offset": 7,
    }


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_gets_text_without_control_characters_of_others(stream: io.StringIO) -> None:
    set_up(terminal := Terminal(), "INFO")
    structlog.get_logger().warning("view_halted", reason="a\x1b]0;title")
    shown = terminal.getvalue()
    assert "view_halted" in shown
    assert ACTIONS["view_halted"] in shown
    assert "\x1b]0" not in shown


def test_what_must_not_be_told_is_not(stream: io.StringIO) -> None:
    log = structlog.get_logger()
    log.warning("kafka_away", servers="kafka://user:secret@host:9092", error="Bearer abc.def was refused")
    log.warning("view_halted", reason="\x1b[31mred\n{\x00}", many=["a\tb"])
    log.warning("request_failed", reason="x" * (CHARS_MAX + 10))
    first, second, third = lines(stream)
    assert (first["servers"], first["error"]) == ("kafka://***@host:9092", "Bearer *** was refused")
    assert (second["reason"], second["many"]) == ("\\x1b[31mred\\x0a{\\x00}", ["a\\x09b"])
    assert third["reason"] == "x" * CHARS_MAX + "…"


def test_an_exception_shows_where_it_was_raised_by_lines(stream: io.StringIO) -> None:
    try:
        raise ValueError("at amqp://me:pw@x")
    except ValueError:
        structlog.get_logger().exception("owner_failed", partition=1)
    (line,) = lines(stream)
    assert "test_logs.py" in line["exception"]
    assert line["exception"].splitlines()[-1] == "ValueError: at amqp://***@x"


def test_a_library_and_a_task_are_told_apart_from_us(stream: io.StringIO) -> None:
    logging.getLogger("aiokafka.consumer").warning("gone: %s", "x")
    logging.getLogger("aiokafka.consumer").info("chatter")
    structlog.get_logger().bind(action="task_said", job_id="j").info("halfway\nthere")
    library, task = lines(stream)
    assert (library["action"], library["logger"], library["message"]) == (
        "library",
        "aiokafka.consumer",
        "gone: x",
    )
    assert (task["action"], task["job_id"], task["message"]) == ("task_said", "j", "halfway\\x0athere")


def test_a_line_names_the_trace_it_is_a_part_of(stream: io.StringIO, monkeypatch: pytest.MonkeyPatch) -> None:
    with collected(monkeypatch):
        made = tracing.begin("x", "INTERNAL", "", {})
        assert made is not None
        made.enter(contextvars.copy_context()).run(lambda: structlog.get_logger().info("partition_served"))
    assert lines(stream)[0]["trace_id"] == made.traceparent.split("-")[1]


def calls() -> Iterator[tuple[str, str]]:
    """(place, first argument as source) of each call of a logger."""
    for folder in ("minutebook", "streams", "api", "replay"):
        for file in sorted((ROOT / folder).rglob("*.py")):
            for node in ast.walk(ast.parse(file.read_text())):
                if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
                    continue
                owner = ast.unparse(node.func.value).split(".")[-1]
                if node.func.attr in LEVELS and (
                    owner in ("log", "_log", "logger") or owner.startswith("get_logger(")
                ):
                    yield f"{file.relative_to(ROOT)}:{node.lineno}", ast.unparse(node.args[0])


def test_every_action_in_the_code_is_on_the_list_and_every_one_listed_is_used() -> None:
    found = list(calls())
    assert len(found) > 40
    unknown = [place for place, text in found if text.strip("'\"") not in ACTIONS]
    assert unknown == [], "name the action in minutebook/actions.py"
    assert set(ACTIONS) - {"library", "task_said"} == {text.strip("'\"") for _, text in found}


def test_replay_and_fold_are_silent() -> None:
    assert not [place for place, _ in calls() if place.startswith(("replay/", "minutebook/domain/"))]


def test_requests_are_not_logged() -> None:
    assert server_config(FastAPI(), "127.0.0.1", 0).access_log is False
