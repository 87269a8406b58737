"""Bad inputs, listed as data: each row of `tests/data/inputs.jsonl` has a test that names it by its id."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
ROWS = [json.loads(line) for line in (TESTS / "data" / "inputs.jsonl").read_text().splitlines()]
IDS = [row["id"] for row in ROWS]
COUNTS = {"K": 20, "W": 18, "R": 21, "J": 22, "D": 29, "C": 32, "Z": 30, "U": 23, "A": 18}
LATER = {
    "A4": "keys are settings: they are not revoked",
    "A16": "no route makes keys",
}
"""Rows about what does not exist yet."""


def texts(tree: ast.AST) -> Iterator[str]:
    """Every text in a program that is more than a statement of its own, as docstrings are."""
    spoken = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in spoken:
            yield node.value


def named(tree: ast.AST) -> set[str]:
    """Rows that a module names, in the ids of its cases or in a marker: by the first word of a text."""
    return {word for text in texts(tree) for word in text.split()[:1]} & set(IDS)


@pytest.fixture(scope="module")
def tested() -> set[str]:
    modules = [path for path in TESTS.rglob("test_*.py") if path != Path(__file__)]
    return {row for path in modules for row in named(ast.parse(path.read_text()))}


def test_list_of_inputs_is_whole() -> None:
    assert sorted(IDS) == sorted(
        f"{group}{number}" for group, count in COUNTS.items() for number in range(1, count + 1)
    )
    assert all({"id", "group", "title", "where", "expect"} <= row.keys() for row in ROWS)


@pytest.mark.parametrize("row", IDS)
def test_row_has_a_test(tested: set[str], row: str) -> None:
    assert (row in tested) != (row in LATER), LATER.get(row, "no test names it")


def test_a_row_that_is_named_is_found() -> None:
    tree = ast.parse('"""K1 in a docstring."""\n@pytest.mark.row("K2", "W3")\ndef f(): g({"K4 null": 1})')
    assert named(tree) == {"K2", "W3", "K4"}
