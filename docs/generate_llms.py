"""`python -m docs.generate_llms` writes `docs/llms.txt`: every page of the navigation in one line, for programs that read."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import yaml

DOCS: Final = Path(__file__).parent
PAGE: Final = DOCS / "llms.txt"
_HEAD: Final = """# minutebook

> A job scheduler whose only truth is a Kafka log: jobs that fire once or again and again, run by workers, with every due
> instant accounted for.
"""


def page() -> str:
    """The file as it must be."""
    parts = [_HEAD]
    section = ""
    for title, path in entries():
        if title != section:
            parts.append(f"\n## {title}\n\n")
            section = title
        parts.append(f"- [{_title(path)}]({path}){_line(path)}\n")
    return "".join(parts)


def entries() -> Iterator[tuple[str, str]]:
    """Files of the navigation, each with the title of its outermost section."""
    for item in yaml.safe_load((DOCS.parent / "mkdocs.yml").read_text())["nav"]:
        ((title, inside),) = item.items()
        yield from ((title, path) for path in _paths(inside))


def _paths(inside: Any) -> Iterator[str]:
    if isinstance(inside, str):
        yield inside
    elif isinstance(inside, dict):
        for one in inside.values():
            yield from _paths(one)
    else:
        for one in inside:
            yield from _paths(one)


def _title(path: str) -> str:
    if not path.endswith(".md"):
        return path
    return (DOCS / path).read_text().partition("\n")[0].removeprefix("# ")


def _line(path: str) -> str:
    """The first sentence of the page, without its marks."""
    if not path.endswith(".md"):
        return ": the HTTP API as an OpenAPI document."
    texts = (part for part in (DOCS / path).read_text().split("\n\n")[1:] if re.match(r"[\w*]|`(?!``)", part))
    text = " ".join(next(texts, "").split())
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
    sentence = re.split(r"(?<=[.:!?]) (?=[A-Z`])", text)[0].rstrip(":.")
    return f": {sentence}." if sentence else ""


if __name__ == "__main__":
    PAGE.write_text(page())
