"""The life of one job on the page happens, by curl and by command line, with the same decisions in the log."""

from __future__ import annotations

import asyncio
import re
import shlex
from collections.abc import Callable, Iterator

import httpx
import pytest

from minutebook.domain import events as facts
from minutebook.wire.frames import decode_frame
from tests.api.cli_runs import runner
from tests.api.memory import Installation, installation
from tests.api.runs import come, fail
from tests.api.test_history import MemoryRecords
from tests.docs.pages import ROOT, prose

PAGE = ROOT / "docs" / "how-to" / "one-job-three-ways.md"
TEMPLATES = "".join(
    path.read_text() for path in (ROOT / "api" / "pages").rglob("*.*") if path.suffix in (".html", ".py")
)
FAILED = "nightly:1767229200000"
HOUR = 3_600_000
DECIDED = (
    facts.JobSubmitted,
    facts.JobEdited,
    facts.JobPaused,
    facts.JobResumed,
    facts.ExecutionRequested,
    facts.ExecutionDead,
    facts.ExecutionRedriven,
)
"""What the page does, in its order."""


def lines(way: str) -> Iterator[tuple[str, str]]:
    """Commands of one way, each with the heading over it."""
    for section in re.split(r"^## ", PAGE.read_text(), flags=re.MULTILINE)[1:]:
        for block in re.findall(r"^```sh\n(.*?)^```$", section, re.MULTILINE | re.DOTALL):
            for line in block.replace("\\\n", " ").splitlines():
                if line.startswith(way):
                    yield section.partition("\n")[0], line


@pytest.fixture
def world() -> Installation:
    made = installation()
    made.services.records = MemoryRecords(made)
    return made


@pytest.fixture
def ways(world: Installation, monkeypatch: pytest.MonkeyPatch) -> dict[str, Callable[[str], None]]:
    """How a line of each way is run."""
    transport = httpx.ASGITransport(app=world.app)
    run = runner(transport, "key-operator", monkeypatch)

    def minutebook(line: str) -> None:
        assert run(*shlex.split(line)[1:]) == 0, line

    return {"minutebook": minutebook, "curl": lambda line: curl(line, transport)}


def curl(line: str, transport: httpx.ASGITransport) -> None:
    """Do what curl would."""
    words = shlex.split(line.replace("$API", "http://api").replace("$KEY", "key-operator"))
    url = next(word for word in words if word.startswith("http://api"))
    body = words[words.index("--data") + 1] if "--data" in words else None
    method = words[words.index("-X") + 1] if "-X" in words else "GET" if body is None else "POST"
    headers = [tuple(words[n + 1].split(": ", 1)) for n, word in enumerate(words) if word == "-H"]

    async def call() -> httpx.Response:
        async with httpx.AsyncClient(transport=transport) as client:
            return await client.request(method, url, headers=headers, content=body)  # type: ignore[arg-type]

    answer = asyncio.run(call())
    assert answer.is_success, f"{line}: {answer.status_code} {answer.text}"


@pytest.mark.parametrize("way", ["curl", "minutebook"])
def test_all_of_it_happens(way: str, ways: dict[str, Callable[[str], None]], world: Installation) -> None:
    has_failed = False
    for heading, line in lines(way):
        if heading == "It failed" and not has_failed:
            world.clock.advance(HOUR)
            come(world)
            fail(world, FAILED)
            has_failed = True
        ways[way](line)
    assert has_failed
    partition = world.services.view.partition_of_job("acme", "nightly")
    events = [event for record in world.log.logs[partition] for event in decode_frame(record.value).events]
    assert tuple(type(event) for event in events if isinstance(event, DECIDED)) == DECIDED


def test_both_ways_take_the_same_steps() -> None:
    steps = [[heading for heading, _ in lines(way)] for way in ("curl", "minutebook")]
    assert steps[0] == steps[1]
    assert len(set(steps[0])) == 7


def test_buttons_of_the_pages_are_called_so() -> None:
    named = re.findall(r"\*\*(.+?)\*\*", prose(PAGE), re.DOTALL)
    assert len(named) > 12
    for name in named:
        assert re.search(rf'[>"]{name}\b', TEMPLATES), f"no page says {name}"
