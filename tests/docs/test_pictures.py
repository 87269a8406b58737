"""What the pictures show is what the code does."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import product
from xml.etree import ElementTree as ET

import pytest

from minutebook.schedule import Cron
from tests.docs.pages import ROOT

SVG = "{http://www.w3.org/2000/svg}"
PICTURE = ET.parse(ROOT / "docs" / "how-to" / "clock-changes.svg").getroot()
MIDNIGHT_X, HALF_HOUR_X = 300, 100


def rows() -> Iterator[tuple[str, ET.Element]]:
    """The day of each half of the picture, with its rows."""
    for night in PICTURE.findall(f"{SVG}g[@data-night]"):
        for row in night.findall(f"{SVG}g[@data-cron]"):
            yield night.attrib["data-night"], row


@pytest.mark.parametrize(("night", "row"), list(rows()))
def test_dots_are_the_instants_of_their_row(night: str, row: ET.Element) -> None:
    start = datetime.fromisoformat(night + "T00:00Z")
    half_hours = [(int(dot.attrib["cx"]) - MIDNIGHT_X) / HALF_HOUR_X for dot in row.findall(f"{SVG}circle")]
    cron, gaps, folds = (row.attrib[name] for name in ("data-cron", "data-gap", "data-fold"))
    for gap, fold in product(gaps.split(), folds.split()):
        schedule = Cron(cron, "Europe/Berlin", gap, fold)  # type: ignore[arg-type]  # a wrong word is refused
        found = schedule.between(start - timedelta(seconds=1), start + timedelta(hours=2))
        assert [(at - start) / timedelta(minutes=30) for at in found] == half_hours
    words = {text.text for text in row.findall(f"{SVG}text")}
    assert cron in words
    assert words & {gaps.replace(" ", ", "), folds.replace(" ", ", ")}


def test_picture_has_both_nights() -> None:
    assert [night for night, _ in rows()] == ["2026-03-29"] * 3 + ["2026-10-25"] * 4
