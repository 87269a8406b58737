"""Ways to run code that came as data: none of them is used anywhere in the sources."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ("minutebook", "streams", "api", "replay", "bench", "examples")
MODULES = {
    "pickle": "encode with minutebook.wire or msgspec",
    "cPickle": "encode with minutebook.wire or msgspec",
    "dill": "encode with minutebook.wire or msgspec",
    "cloudpickle": "encode with minutebook.wire or msgspec",
    "marshal": "encode with minutebook.wire or msgspec",
    "shelve": "keep it in minutebook.store",
}
CALLS = {
    "eval": "parse the text by a grammar of its own",
    "exec": "call a function instead",
    "yaml.load": "use yaml.safe_load",
    "yaml.unsafe_load": "use yaml.safe_load",
    "yaml.full_load": "use yaml.safe_load",
}


def sources() -> list[Path]:
    return sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))


def offences(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Line and message of each banned import or call."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module or ""]
        elif isinstance(node, ast.Call) and (called := ast.unparse(node.func)) in CALLS:
            yield node.lineno, f"{called}() is banned: {CALLS[called]}"
            continue
        else:
            continue
        for name in names:
            if (top := name.split(".")[0]) in MODULES:
                yield node.lineno, f"{top} is banned: {MODULES[top]}"


def test_sources_run_no_code_from_data() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}: {message}"
        for path in sources()
        for line, message in offences(ast.parse(path.read_text()))
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    "text", ["import pickle", "from shelve import open", "eval('1')", "import yaml; yaml.load(x)"]
)
def test_a_banned_line_is_found(text: str) -> None:
    assert list(offences(ast.parse(text)))


def test_there_are_sources_to_check() -> None:
    assert len(sources()) > 10
