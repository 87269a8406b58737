"""The pages, and what can be taken out of them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).parents[2]
PAGES: Final = sorted(
    [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), ROOT / "schemas" / "README.md"],
)
_BLOCK: Final = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_SPAN: Final = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")


class Block(NamedTuple):
    """A fenced block: where it is, its language, its text."""

    page: Path
    line: int
    language: str
    text: str

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def blocks(page: Path, language: str) -> list[Block]:
    """Fenced blocks of one language."""
    text = page.read_text()
    return [
        Block(page, text.count("\n", 0, found.start()) + 1, found[1], found[2])
        for found in _BLOCK.finditer(text)
        if found[1] == language
    ]


def prose(page: Path) -> str:
    """The page without its fenced blocks."""
    return _BLOCK.sub("", page.read_text())


def spans(page: Path) -> list[str]:
    """Inline code, outside of blocks."""
    return _SPAN.findall(prose(page))


def shell_lines() -> list[tuple[Block, str]]:
    """Each command of each `sh` block, continued lines joined, comments and variables in front left out."""
    return [
        (block, line.strip())
        for page in PAGES
        for block in blocks(page, "sh")
        for line in block.text.replace("\\\n", " ").splitlines()
        if line.strip()
    ]
