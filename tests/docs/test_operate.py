"""Dashboard, alert rules and runbooks name metrics and labels that are there, and one another."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from docs import generate_dashboard
from minutebook.metrics import BY_NAME, COUNTER, HISTOGRAM, Metric

OPERATE = Path(__file__).parents[2] / "docs" / "operate"
RULES: list[dict[str, Any]] = [
    rule
    for group in yaml.safe_load((OPERATE / "alerts.yml").read_text())["groups"]
    for rule in group["rules"]
]
DASHBOARD: dict[str, Any] = json.loads((OPERATE / "dashboard.json").read_text())
NAME = re.compile(r"\bminutebook_\w+")
SELECTED = re.compile(r"\b(minutebook_\w+|up)\{([^}]*)\}")
GROUPED = re.compile(r"\bby \(([^)]*)\)")
SCRAPED = {"job", "instance"}
"""Labels that Prometheus adds."""
SECTIONS = ["What it means", "What to look at", "What to do"]
JOBS = {"minutebook-owners", "minutebook-api", "minutebook-worker"}


def expressions() -> Iterator[tuple[str, str]]:
    for rule in RULES:
        yield rule["alert"], rule["expr"]
    for panel in DASHBOARD["panels"]:
        for target in panel["targets"]:
            yield panel["title"], target["expr"]


EXPRESSIONS = list(expressions())


def metric(name: str) -> Metric:
    """The row of the table behind a name in an expression."""
    plain = re.sub(r"_(bucket|sum|count)$", "", name)
    found = BY_NAME.get(name) or BY_NAME.get(plain)
    assert found is not None, f"{name} is not a metric"
    assert name == found.name or found.kind == HISTOGRAM, f"{name} is no part of a histogram"
    return found


@pytest.mark.parametrize(("where", "expression"), EXPRESSIONS)
def test_expressions_name_metrics_and_labels_that_are_there(where: str, expression: str) -> None:
    metrics = {name: metric(name) for name in NAME.findall(expression)}
    known = {label for row in metrics.values() for label in row.labels} | SCRAPED | {"le"}
    assert metrics or "up{" in expression
    for name, selectors in SELECTED.findall(expression):
        labels = set(re.findall(r"(\w+)\s*[=!]~?", selectors))
        allowed = SCRAPED if name == "up" else {*metrics[name].labels, *SCRAPED}
        assert labels <= allowed, f"{name} has no label {labels - allowed}"
    for grouped in GROUPED.findall(expression):
        assert {label.strip() for label in grouped.split(",")} <= known, f"by ({grouped})"
    assert expression.count("(") == expression.count(")")


@pytest.mark.parametrize(("where", "expression"), EXPRESSIONS)
def test_counters_are_read_as_rates_and_gauges_are_not(where: str, expression: str) -> None:
    for name in NAME.findall(expression):
        is_rated = bool(re.search(rf"(rate|increase)\({name}\b", expression))
        assert is_rated == (metric(name).kind in (COUNTER, HISTOGRAM)), name


@pytest.mark.parametrize(("where", "expression"), EXPRESSIONS)
def test_selected_values_that_are_known_beforehand_are_known(where: str, expression: str) -> None:
    for name, selectors in SELECTED.findall(expression):
        for label, value in re.findall(r'(\w+)="([^"]*)"', selectors):
            if label == "job":
                assert value in JOBS
                continue
            row = metric(name)
            if row.known:
                assert value in row.known[row.labels.index(label)], f"{name}: {label}={value}"


def test_every_alert_has_its_runbook_and_every_runbook_its_alert() -> None:
    pages = {file.stem for file in (OPERATE / "runbooks").glob("*.md")}
    assert pages == {rule["alert"] for rule in RULES}
    for rule in RULES:
        assert rule["annotations"]["runbook_url"] == f"docs/operate/runbooks/{rule['alert']}.md"


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["alert"])
def test_an_alert_says_what_is_wrong_and_how_bad(rule: dict[str, Any]) -> None:
    assert rule["labels"]["severity"] in ("critical", "warning")
    assert rule["annotations"]["summary"]
    used = set(re.findall(r"\$labels\.(\w+)", rule["annotations"]["summary"]))
    left = {label for grouped in GROUPED.findall(rule["expr"]) for label in grouped.replace(",", " ").split()}
    assert used <= (left or SCRAPED)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["alert"])
def test_a_runbook_says_what_it_means_and_what_to_do(rule: dict[str, Any]) -> None:
    text = (OPERATE / "runbooks" / f"{rule['alert']}.md").read_text()
    assert text.startswith(f"# {rule['alert']}\n")
    assert re.findall(r"^## (.+)$", text, re.MULTILINE) == SECTIONS


def test_metrics_and_actions_in_runbooks_are_there() -> None:
    from minutebook.actions import ACTIONS

    for file in (OPERATE / "runbooks").glob("*.md"):
        text = file.read_text()
        for name in NAME.findall(text):
            metric(name)
        for name in re.findall(
            r"`((?:partition|owner|owners|view|frame|input|reports|kafka)_[a-z_]+)`", text
        ):
            assert name in ACTIONS, f"{file.stem}: {name}"


def test_panels_named_in_runbooks_are_on_the_dashboard() -> None:
    titles = {panel["title"] for panel in DASHBOARD["panels"]}
    for file in (OPERATE / "runbooks").glob("*.md"):
        for name in re.findall(r"(?<!\*)\*([^*\n]+)\*(?!\*)", file.read_text()):
            assert name in titles or any(title.startswith(name) for title in titles), f"{file.stem}: {name}"


def test_the_dashboard_is_what_its_table_says() -> None:
    assert generate_dashboard.FILE.read_text() == generate_dashboard.text(), (
        "run `python -m docs.generate_dashboard`"
    )


def test_panels_lie_beside_one_another() -> None:
    cells = [
        (panel["gridPos"]["x"] + x, panel["gridPos"]["y"] + y)
        for panel in DASHBOARD["panels"]
        for x in range(panel["gridPos"]["w"])
        for y in range(panel["gridPos"]["h"])
    ]
    assert len(cells) == len(set(cells))
    assert max(x for x, _ in cells) == 23
