"""Reports as pages that stand for themselves: one file, nothing to fetch."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from minutebook.times import format_instant
from replay.completeness import CompletenessReport


@cache
def _environment() -> Environment:
    loader = FileSystemLoader(Path(__file__).parent / "templates")
    return Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True)


def completeness_page(report: CompletenessReport, made_at: int) -> str:
    """The report as an HTML page. `made_at`: ms since the epoch, UTC."""
    template = _environment().get_template("completeness.html")
    return template.render(report=report, made_at=format_instant(made_at))
