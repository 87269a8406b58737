"""What the pages name exists, what they show runs, and what they repeat from the code is the same there."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import pytest

from minutebook.domain.transitions import LEGAL
from tests.docs.pages import PAGES, ROOT, Block, blocks, prose, spans

STATES = ROOT / "docs" / "explanation" / "execution-states.md"
PYTHON = [block for page in PAGES for block in blocks(page, "python")]
FOLDERS = tuple(path.name for path in ROOT.iterdir() if path.is_dir() and not path.name.startswith("."))
SETTINGS = "".join((ROOT / "docs" / "reference" / page).read_text() for page in ("settings.md", "cli.md"))
OTHER_SETTINGS = {"MINUTEBOOK_ROUNDS", "MINUTEBOOK_TEST_BOOTSTRAP_SERVERS", "MINUTEBOOK_TEST_BROWSER"}
LINK = re.compile(r"\]\(([^)\s]+)\)")
TEST_NAME = re.compile(r"tests/[\w/.-]+::\w+")


def anchors(page: Path) -> set[str]:
    """What GitHub makes of the headings of a page."""
    headings = re.findall(r"^#+ (.+)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for target in LINK.findall(prose(page)):
        if target.startswith("https://"):
            continue
        path, _, anchor = target.partition("#")
        there = (page.parent / path).resolve() if path else page
        assert there.exists(), f"{target} is not there"
        assert not anchor or anchor in anchors(there), f"{target}: no such heading"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_named_paths_exist(page: Path) -> None:
    for span in spans(page):
        path = span.partition("::")[0]
        if re.fullmatch(r"[\w.-]+(/[\w.-]+)+/?", path) and path.split("/")[0] in FOLDERS:
            assert (ROOT / path).exists() or _is_made_later(path), f"{path} is not there"


def _is_made_later(path: str) -> bool:
    """Folders that a build or a run makes."""
    return path.startswith(("minutebook/_schemas", "bench/results"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_named_tests_exist(page: Path) -> None:
    for named in TEST_NAME.findall(page.read_text()):
        path, _, name = named.partition("::")
        tree = ast.parse((ROOT / path).read_text())
        names = {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
        assert name in names, f"{path} has no test {name}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_named_settings_exist(page: Path) -> None:
    for name in set(re.findall(r"\bMINUTEBOOK_[A-Z_]+[A-Z]\b", page.read_text())) - OTHER_SETTINGS:
        assert f"`{name}`" in SETTINGS, f"{name} is not a setting"


@pytest.mark.parametrize("block", PYTHON, ids=str)
def test_python_of_a_page_runs(block: Block, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    run(block)


def run(block: Block) -> dict[str, Any]:
    """Names that a block defines. What it asserts must hold."""
    code = compile("\n" * block.line + block.text, str(block.page), "exec", dont_inherit=True)
    names: dict[str, Any] = {"__name__": "shown"}
    exec(code, names)
    return names


def test_diagram_shows_the_table_of_transitions() -> None:
    (diagram,) = blocks(STATES, "mermaid")
    drawn = re.findall(r"^\s*(\[\*\]|\w+) --> (\w+): (\w+)$", diagram.text, re.MULTILINE)
    shown = {("" if before == "[*]" else before, event, becomes) for before, becomes, event in drawn}
    assert shown == {(*change, becomes) for change, all_of_it in LEGAL.items() for becomes in all_of_it}


def test_every_status_is_explained() -> None:
    text = STATES.read_text()
    statuses = {becomes for all_of_it in LEGAL.values() for becomes in all_of_it} | {"skipped"}
    assert statuses == set(re.findall(r"^\*\*(\w+)\.\*\*", text, re.MULTILINE))


def test_there_are_pages_to_check() -> None:
    assert {page.name for page in PAGES} > {"README.md", "ARCHITECTURE.md", "guarantees.md", "settings.md"}
    assert len(PYTHON) > 5
    assert sum(len(TEST_NAME.findall(page.read_text())) for page in PAGES) > 30
