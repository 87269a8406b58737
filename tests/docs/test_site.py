"""The site: it builds without a warning, has every page, and loads nothing from elsewhere."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from docs import generate_llms
from tests.docs.pages import ROOT

DOCS = ROOT / "docs"
LOADED = re.compile(r"<(?:script|img|iframe|source)[^>]*\bsrc=\"?([^\"\s>]+)|<link[^>]*\bhref=\"?([^\"\s>]+)")
IMPORTED = re.compile(r"url\(['\"]?(https?://[^)]+)|@import ['\"](https?://[^'\"]+)")


def test_every_page_is_in_the_navigation_once() -> None:
    named = [path for _, path in generate_llms.entries() if path.endswith(".md")]
    assert sorted(named) == sorted(path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md"))


def test_index_for_programs_is_what_the_pages_say() -> None:
    assert generate_llms.PAGE.read_text() == generate_llms.page(), "run `python -m docs.generate_llms`"
    assert all(": " in line for line in generate_llms.page().splitlines() if line.startswith("- "))


@pytest.mark.slow
@pytest.mark.timeout(60)
def test_site_builds_without_a_warning_and_loads_nothing_from_elsewhere(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)]
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    built = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    pages = list(tmp_path.rglob("*.html"))
    assert len(pages) > 50
    for page in pages:
        for found in LOADED.finditer(page.read_text()):
            target = found[1] or found[2]
            assert not re.match(r"(https?:)?//", target), f"{page.name} loads {target}"
    for sheet in tmp_path.rglob("*.css"):
        assert not IMPORTED.search(sheet.read_text()), sheet.name
    linked = (tmp_path / "explanation" / "identities.html").read_text()
    assert 'href="../source/minutebook/ids.py.txt"' in linked, "code that a page links to is there"
    assert (tmp_path / "source" / "minutebook" / "ids.py.txt").read_text() == (
        ROOT / "minutebook" / "ids.py"
    ).read_text()
    assert not list(tmp_path.glob("*.py")), "generators are no pages"
