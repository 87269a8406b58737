"""What the auditor's page shows is what `python -m replay` prints. `python -m tests.docs.test_auditor_page` writes it anew."""

from __future__ import annotations

import re
import shlex
import tempfile
from contextlib import chdir
from pathlib import Path

from typer.testing import CliRunner

from replay.__main__ import app
from replay.files import export
from tests.docs.audited_log import nights
from tests.docs.pages import ROOT
from tests.simulation.copies import CopiedLog

PAGE = ROOT / "docs" / "how-to" / "answer-an-auditor.md"
SHOWN = re.compile(
    r"^```sh\n((?:python -m replay [^\n]*\n)+)```\n\n```text\n(.*?)```$", re.MULTILINE | re.DOTALL
)
HASH = re.compile(r"\b[0-9a-f]{12,64}\b")
"""Heads and digests follow from the zone data and the formats in use."""
CUT = ("## What only a kept head", "## Hand it over")
"""Between these headings somebody has taken the last record away."""
WIDTH = "112"


def printed(folder: Path) -> str:
    """The page with what its commands print, in `folder`, about the log: without its last record where that is the subject."""
    records = nights().records
    for name, some in (("whole", records), ("cut", records[:-1])):
        export(CopiedLog(some), folder / name, [0])

    page = PAGE.read_text()
    cut_at, whole_again_at = (page.index(heading) for heading in CUT)

    def run(found: re.Match[str]) -> str:
        name = "cut" if cut_at < found.start() < whole_again_at else "whole"
        environment = {
            "MINUTEBOOK_REPLAY_FILES": str(folder / name),
            "COLUMNS": WIDTH,
        }
        output = ""
        for line in found[1].splitlines():
            result = CliRunner().invoke(app, shlex.split(line)[3:], env=environment)
            assert result.exit_code == (1 if "--against" in line else 0), f"{line}: {result.output}"
            output += result.output
        text = "\n".join(line.rstrip() for line in output.splitlines())
        return f"```sh\n{found[1]}```\n\n```text\n{text}\n```"

    with chdir(folder):
        return SHOWN.sub(run, page)


def masked(text: str) -> list[str]:
    return HASH.sub("HASH", text).splitlines()


def test_page_shows_what_is_printed(tmp_path: Path) -> None:
    assert len(SHOWN.findall(PAGE.read_text())) == 10
    remedy = "run `python -m tests.docs.test_auditor_page`"
    assert masked(PAGE.read_text()) == masked(printed(tmp_path)), remedy


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        PAGE.write_text(printed(Path(folder)))
