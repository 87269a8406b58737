"""The last results of audits on the page of the audit log."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from minutebook.log.last_audit import Accounted, LastCompleteness, LastVerify, Place, keep_last
from tests.api.memory import installation
from tests.api.test_pages import browser_of, log_in

AT = "2026-01-01T00:00:00.000Z"
TO = "2026-01-01T23:59:59.999Z"


def verified(findings: int = 0, *, is_interrupted: bool = False, records: int = 42) -> LastVerify:
    through = [Place(partition=0, position=41), Place(partition=1, position=-1)]
    first = Place(partition=0, position=17) if findings else None
    return LastVerify(
        made_at=AT,
        ok=not findings,
        is_interrupted=is_interrupted,
        records=records,
        through=through,
        findings=findings,
        first=first,
    )


def completed(**missing: int) -> LastCompleteness:
    tenants = {name: Accounted(implied=9, missing=count) for name, count in missing.items()}
    return LastCompleteness(made_at=AT, first_at=AT, last_at=TO, tenants=tenants, behind_the_log=[])


async def shown(folder: Path | None) -> str:
    """The page for an operator of the tenant acme, with its spaces made one."""
    world = installation(reports_dir=folder)
    async with browser_of(world) as browser:
        await log_in(browser, "key-operator")
        answer = await browser.get("/audit")
        assert answer.status_code == 200
        return " ".join(answer.text.split())


@pytest.mark.parametrize("is_set", [False, True])
async def test_what_was_never_verified_says_how(tmp_path: Path, is_set: bool) -> None:
    page = await shown(tmp_path if is_set else None)
    assert page.count("Never verified here") == 2
    assert "python -m replay verify --report FOLDER" in page
    assert ("MINUTEBOOK_API_REPORTS_DIR" in page) is not is_set


@pytest.mark.parametrize(
    ("result", "says"),
    [
        (verified(), "all agree"),
        (verified(2), "<strong>2</strong> differences, the first in partition 0 at offset 17"),
        (verified(is_interrupted=True), "nothing wrong so far"),
        (verified(records=0), "nothing checked</span> in 0 records"),
        (completed(acme=0, blue=3), "all 9 instants ran"),
        (completed(acme=4), "<strong>4</strong> of 9 instants"),
        (completed(blue=4), "none was due"),
    ],
)
async def test_the_last_result_is_shown(
    tmp_path: Path, result: LastVerify | LastCompleteness, says: str
) -> None:
    keep_last(tmp_path, verified(7))
    keep_last(tmp_path, result)
    page = await shown(tmp_path)
    assert says in page
    assert "2026-01-01 00:00:00" in page
    if isinstance(result, LastVerify):
        assert "partition 0: through offset 41; partition 1: nothing" in page


BAD = [
    b"{}",
    b"no json",
    b" " * (4 << 20) + b"  ",
    b'{"b":' + b"[" * 100_000,
    *(
        msgspec.json.encode(verified()).replace(AT.encode(), at)
        for at in (b"soon", b"2026-13-01T00:00:00Z", b"9999-12-31T23:59:59-23:59")
    ),
]


@pytest.mark.parametrize("data", BAD)
async def test_a_result_that_cannot_be_read_is_said_and_hides_no_other(tmp_path: Path, data: bytes) -> None:
    keep_last(tmp_path, completed(acme=0))
    (tmp_path / "last-verify.json").write_bytes(data)
    page = await shown(tmp_path)
    assert "not readable</span> last-verify.json" in page
    assert "all 9 instants ran" in page
    assert "Never verified here" not in page


async def test_a_fault_of_the_disk_is_said_without_the_path(tmp_path: Path) -> None:
    keep_last(tmp_path, verified())
    (tmp_path / "last-completeness.json").mkdir()
    page = await shown(tmp_path)
    assert "last-completeness.json cannot be read: Is a directory" in page
    assert "all agree" in page
    assert "Never verified here" not in page
    assert str(tmp_path) not in page
