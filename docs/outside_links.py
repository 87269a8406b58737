"""A hook of MkDocs: files of the checkout that pages link to (code, schemas, tests) become files of the site, under `source/`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

from mkdocs.structure.files import File, Files, InclusionLevel

ROOT: Final = Path(__file__).parents[1]
_LINK: Final = re.compile(r"(?<=\]\()((?:\.\./)+)([^)#\s]+)(?=[)#])")


def on_files(files: Files, config: Any) -> Files:
    """Add what lies outside of docs and is linked to. It is shown as text, so pages of ours keep their own place."""
    for page in files.documentation_pages():
        for found in _LINK.finditer(page.content_string):
            target = _outside(page.src_uri, found)
            if target is not None and f"source/{target}.txt" not in files.src_uris:
                text = (ROOT / target).read_text()
                files.append(
                    File.generated(
                        config, f"source/{target}.txt", content=text, inclusion=InclusionLevel.NOT_IN_NAV
                    )
                )
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Let links that leave docs lead to these files."""

    def led(found: re.Match[str]) -> str:
        target = _outside(page.file.src_uri, found)
        return found[0] if target is None else f"{'../' * page.file.src_uri.count('/')}source/{target}.txt"

    return _LINK.sub(led, markdown)


def _outside(page: str, link: re.Match[str]) -> str | None:
    """Path from the root of the checkout, None for what lies in docs."""
    target = (ROOT / "docs" / page).parent.joinpath(link[0]).resolve().relative_to(ROOT).as_posix()
    return None if target.startswith("docs/") else target
