"""Who gets which partitions as owners come and go, by the assignor of the group's leader; no broker."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minutebook.log.settings import KafkaSettings
from minutebook.wire import topics
from streams.app import make_faust
from streams.assignor import fair_shares
from streams.settings import StreamsSettings

Shares = dict[str, set[int]]


class Topics:
    """What an assignor asks of a cluster: how many partitions a topic has."""

    def __init__(self, partitions: int) -> None:
        self._partitions = set(range(partitions))

    def partitions_for_topic(self, topic: str) -> set[int]:
        """All of them, for any topic."""
        return self._partitions


class Group:
    """Owners of a group; each knows of its share by what the leader assigned last."""

    def __init__(self, partitions: int, folder: Path) -> None:
        self._kafka = KafkaSettings()
        self._names = {self._kafka.topic(topic) for topic in topics.INPUTS}
        self._cluster: Any = Topics(partitions)
        self._folder = folder
        self._assignors: dict[str, Any] = {}

    def join(self, name: str) -> Shares:
        """What everybody has once `name` is there too."""
        settings = StreamsSettings(instance_id=name, data_dir=self._folder / name)
        self._assignors[name] = make_faust(self._kafka, settings).assignor
        return self._rebalance()

    def leave(self, name: str) -> Shares:
        """What everybody has once `name` is gone."""
        del self._assignors[name]
        return self._rebalance()

    def _rebalance(self) -> Shares:
        leader = next(iter(self._assignors.values()))
        told = {name: one.metadata(self._names) for name, one in self._assignors.items()}
        shares: Shares = {}
        for name, assignment in leader.assign(self._cluster, told).items():
            self._assignors[name].on_assignment(assignment)
            by_topic = {topic: set(partitions) for topic, partitions in assignment.assignment}
            share, *others = (by_topic.get(topic, set()) for topic in self._names)
            assert others == [share] * len(others)
            shares[name] = share
        return shares


@pytest.mark.parametrize("partitions", [3, 4, 8, 64])
def test_everybody_gets_a_fair_share_whenever_they_come(partitions: int, tmp_path: Path) -> None:
    """The partitions of all inputs together, none of them twice, and no owner has two more than another."""
    group = Group(partitions, tmp_path)
    owners = [f"o{number}" for number in range(4)]
    seen = [group.join(name) for name in owners]
    seen += [group.leave(name) for name in owners[:2]]
    for shares in seen:
        assert sorted(number for share in shares.values() for number in share) == list(range(partitions))
        sizes = [len(share) for share in shares.values()]
        assert max(sizes) - min(sizes) <= 1, shares


# -- the rule by itself

held_before = st.dictionaries(
    st.text("abcdef", min_size=1, max_size=3), st.sets(st.integers(0, 19)), min_size=1
)


@given(held_before, st.integers(0, 16))
def test_shares_are_fair_and_nobody_gives_up_more_than_it_must(held: Shares, partitions: int) -> None:
    """Whatever members say that they held: partitions that are gone, or that another holds too."""
    shares = fair_shares(held, partitions)
    assert sorted(number for share in shares.values() for number in share) == list(range(partitions))
    sizes = sorted(len(share) for share in shares.values())
    assert sizes[-1] - sizes[0] <= 1
    for name, share in shares.items():
        others = set().union(*(held[other] for other in held if other != name))
        own = {number for number in held[name] - others if number < partitions}
        assert len(own & share) >= min(len(own), partitions // len(held))


def test_of_a_ninth_owner() -> None:
    """It gets its share from all the others, each of which keeps the rest of what it had."""
    held: Shares = {f"o{number}": set(range(8 * number, 8 * number + 8)) for number in range(8)} | {
        "new": set()
    }
    shares = fair_shares(held, 64)
    assert len(shares["new"]) == 7
    assert all(shares[name] <= held[name] for name in held if name != "new")


def test_a_fair_share_stays_as_it_is() -> None:
    held: Shares = {"a": {0, 5}, "b": {1, 2, 3}, "c": {4, 6, 7}}
    assert fair_shares(held, 8) == held


async def test_nothing_holds_up_an_owner_that_joins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """There are no tables to wait for: who is back within the session timeout must not be thrown out meanwhile."""
    app = make_faust(KafkaSettings(), StreamsSettings(instance_id="o1", data_dir=tmp_path))
    steps: list[str] = []
    for owner, name in (
        (app.tables, "sleep"),
        (app.tables, "_update_channels"),
        (app.tables.recovery, "start"),
    ):

        async def step(*_: float, name: str = name) -> None:
            steps.append(name)

        monkeypatch.setattr(owner, name, step)
    await app.tables.on_start()
    assert steps == ["_update_channels", "start"]
