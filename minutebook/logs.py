"""Logs of our processes: one JSON object a line on stderr, in UTC; for people where stderr is a terminal.

A line has its `action` (a name of `minutebook.actions`), a `message`, and fields such as job_id, execution_id, attempt, task,
queue, tenant, partition, offset, trace_id. Payloads, credentials and what a URL says of its user are never in it.
"""

from __future__ import annotations

import logging
import re
import sys
from typing import Any, Final, TextIO

import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

from minutebook import tracing
from minutebook.actions import ACTIONS, LIBRARY, TASK

CHARS_MAX: Final = 4_000
"""A longer value is cut; of stacks the end is kept, which says where."""
_STACKS: Final = frozenset({"exception", "stack"})
_ESCAPES: Final = {code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160))}
_LINES: Final = {code: text for code, text in _ESCAPES.items() if code != ord("\n")}
_USERINFO: Final = re.compile(r"(?<=://)[^\s/@]+@")
_BEARER: Final = re.compile(r"(?i)(?<=bearer )\S+")
_HIDDEN: Final = "***"


def log_to_stderr(level: str = "NOTSET") -> None:
    """Set logging up for a process of ours; lines below `level` are dropped. Of libraries only warnings are told."""
    set_up(sys.stderr, level)


def set_up(stream: TextIO, level: str) -> None:
    """As `log_to_stderr`, to `stream`."""
    renderer: Processor = (
        structlog.dev.ConsoleRenderer(event_key="action", exception_formatter=structlog.dev.plain_traceback)
        if stream.isatty()
        else structlog.processors.JSONRenderer()
    )
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        add_trace,
        structlog.processors.format_exc_info,
        name_action,
        make_safe,
    ]
    structlog.configure(
        processors=[*shared, renderer],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.PrintLoggerFactory(stream),
    )
    handler = logging.StreamHandler(stream)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[from_library, *shared],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, renderer],
        )
    )
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)


def from_library(logger: WrappedLogger, method: str, line: EventDict) -> EventDict:
    """A line of the standard library's logging."""
    record: logging.LogRecord = line["_record"]
    return {**line, "action": LIBRARY, "logger": record.name}


def add_trace(logger: WrappedLogger, method: str, line: EventDict) -> EventDict:
    """The trace that the line is a part of."""
    found = tracing.current_trace_id()
    if found:
        line.setdefault("trace_id", found)
    return line


def name_action(logger: WrappedLogger, method: str, line: EventDict) -> EventDict:
    """Our lines are events by name, which the list explains; those of tasks and libraries are texts."""
    said = line.pop("event")
    if "action" in line:
        line["message"] = said
    elif said in ACTIONS:
        line.update(action=said, message=ACTIONS[said])
    else:
        line.update(action=TASK, message=said)
    return line


def make_safe(logger: WrappedLogger, method: str, line: EventDict) -> EventDict:
    """Control characters escaped, nothing too long, no user or token."""
    return {
        name: value
        if isinstance(value, bool | int | float | None) or name.startswith("_")
        else _safe(name, value)
        for name, value in line.items()
    }


def _safe(name: str, value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_safe(name, item) for item in value[:CHARS_MAX]]
    text = _BEARER.sub(_HIDDEN, _USERINFO.sub(f"{_HIDDEN}@", str(value)))
    if name in _STACKS:
        return text.translate(_LINES)[-4 * CHARS_MAX :]
    text = text.translate(_ESCAPES)
    return text if len(text) <= CHARS_MAX else f"{text[:CHARS_MAX]}…"
