"""Logs of the servers: one JSON object a line, on stderr, in UTC."""

from __future__ import annotations

import sys

import structlog


def log_json(level: str = "NOTSET") -> None:
    """Set structlog up for a server's process; records below `level` are dropped."""
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            structlog.processors.JSONRenderer(),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
