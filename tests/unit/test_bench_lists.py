"""The made log of W10 is a lawful one, and each of its queries finds something."""

from __future__ import annotations

from types import SimpleNamespace

import msgspec

from api.view import View
from bench.lists import PARTITIONS, TENANT, Story, queries
from minutebook.domain import view_index, view_lists
from minutebook.domain.view_rows import FAMILIES
from minutebook.store.memory import MemoryRows


def test_every_query_is_answered_from_what_was_folded() -> None:
    story = Story(View(MemoryRows(FAMILIES), PARTITIONS))
    while story.runs < 3_000:
        story.step(40)
        story.clock.advance(60_000)
    story.view.commit_all()
    found = [
        view_lists.counts_by_status(part, view_index.EXECUTION_TOTALS, TENANT) for part in story.view.parts
    ]
    assert sum(sum(counts.values()) for counts in found) == story.runs
    services = SimpleNamespace(view=story.view, clock=story.clock)
    answers = {
        name: msgspec.json.decode(msgspec.json.encode(query())) for name, query in queries(services).items()
    }
    assert answers["overview"]["executions"]["failed"] > 0
    for name in (
        "jobs",
        "jobs, active",
        "jobs, tag",
        "executions",
        "executions, failed",
        "executions, error",
    ):
        assert answers[name][0], name
    assert len(answers["jobs"][0]) == len(answers["executions"][0]) == 100
