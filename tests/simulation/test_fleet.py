"""Fleets on a clock of their own: no slot idles while work waits, grants are rarely handed back, nobody holds up others."""

from __future__ import annotations

import pytest

from tests.simulation.fleet import PULSE_MS, Fleet

JOINED_MS = 5_000
"""Until all sessions are known everywhere."""
SEEDS = [1, 2, 3]


@pytest.mark.parametrize("seed", SEEDS)
def test_no_slot_idles_while_one_partition_has_all_the_work(seed: int) -> None:
    fleet = Fleet(8, seed)
    fleet.add(3, slots=4, run_ms=2_000)
    fleet.run(JOINED_MS)
    fleet.submit(200, partition=3, after_ms=1_000)
    fleet.run_to_end(60_000)
    assert fleet.idle_ms_max < 2 * PULSE_MS
    assert fleet.hand_backs() < len(fleet.due)
    assert fleet.lateness_ms(list(fleet.due)) < 200 / 12 * 2_000 + PULSE_MS


@pytest.mark.parametrize("seed", SEEDS)
def test_no_slot_idles_with_fewer_slots_than_partitions(seed: int) -> None:
    fleet = Fleet(8, seed)
    fleet.add(40, slots=1, run_ms=2_000)
    fleet.run(JOINED_MS)
    for partition in range(8):
        fleet.submit(100, partition, after_ms=1_000)
    fleet.run_to_end(90_000)
    assert fleet.idle_ms_max < 2 * PULSE_MS
    assert fleet.hand_backs() < len(fleet.due)


@pytest.mark.slow
def test_a_hundred_workers_with_one_slot_each_hand_back_less_than_they_run() -> None:
    fleet = Fleet(8)
    fleet.add(100, slots=1, run_ms=2_000)
    fleet.run(JOINED_MS)
    for partition in range(8):
        fleet.submit(250, partition, after_ms=1_000)
    fleet.run_to_end(90_000)
    assert fleet.idle_ms_max < 2 * PULSE_MS
    assert fleet.hand_backs() < len(fleet.due)


def test_slots_go_to_the_partition_that_gets_work_while_they_are_taken_elsewhere() -> None:
    fleet = Fleet(8)
    fleet.add(3, slots=4, run_ms=300)
    fleet.run(JOINED_MS)
    fleet.submit(300, partition=3, after_ms=1_000)
    late = fleet.submit(20, partition=6, after_ms=3_000)
    fleet.run_to_end(60_000)
    assert fleet.lateness_ms(late) < 2 * PULSE_MS
    assert fleet.idle_ms_max < 2 * PULSE_MS


@pytest.mark.parametrize("seed", SEEDS)
def test_a_worker_that_hands_back_everything_holds_nobody_up(seed: int) -> None:
    fleet = Fleet(8, seed)
    fleet.add(2, slots=4, run_ms=2_000)
    [bad] = fleet.add(1, slots=4, run_ms=1, is_bad=True)
    fleet.run(JOINED_MS)
    fleet.submit(100, partition=3, after_ms=1_000)
    fleet.run_to_end(60_000)
    assert 0 < fleet.handed_back[bad.name] < 2 * len(fleet.due), "and does not storm"
    assert fleet.hand_backs() < len(fleet.due)
    assert fleet.idle_ms_max < 2 * PULSE_MS
    assert fleet.lateness_ms(list(fleet.due)) < 100 / 8 * 2_000 + PULSE_MS


def test_what_was_handed_back_goes_to_another_worker_that_offers() -> None:
    fleet = Fleet(1)
    [bad] = fleet.add(1, slots=50, run_ms=1, is_bad=True)
    fleet.add(2, slots=8, run_ms=20)
    fleet.run(JOINED_MS)
    fleet.submit(8, partition=0, after_ms=1_000)
    fleet.run_to_end(10_000)
    assert [name for _, name in fleet.grants].count(bad.name) == 8, "each once: it offers most"


@pytest.mark.parametrize("seed", SEEDS)
def test_one_tenants_flood_does_not_hold_up_the_others(seed: int) -> None:
    fleet = Fleet(2, seed)
    fleet.add(4, slots=50, run_ms=200)
    fleet.run(JOINED_MS)
    flood = fleet.submit(5_000, partition=0, tenant="flood", after_ms=1_000)
    others = [
        name
        for number in range(20)
        for name in fleet.submit(1, number % 2, tenant=f"tenant{number}", after_ms=2_000)
    ]
    fleet.run_to_end(60_000)
    assert fleet.lateness_ms(others) < 2_000
    drained_at = max(fleet.started_at[name] for name in flood)
    assert all(fleet.started_at[name] < drained_at for name in others)
