"""How slots are offered over partitions: rules one by one, then whole fleets against simple owners."""

from __future__ import annotations

import heapq

import pytest

from minutebook.worker.offers import (
    GATHER_S,
    GROW_AFTER_S,
    MOVE_EVERY_S,
    SHRINK_AFTER_S,
    UNANSWERED_S,
    Offers,
)

STEP_S = 0.01
PULSE_S = 3.0
TELL_EVERY_S = 1.0


def test_idle_partitions_are_offered_a_little_beyond_their_share() -> None:
    offers = Offers(2_000, 8)
    assert [offers.offer(partition) for partition in range(8)] == [266] * 8


def test_no_offer_exceeds_the_free_slots() -> None:
    assert Offers(4, 8).offer(0) == 4


def test_nothing_is_offered_while_no_slot_is_free() -> None:
    offers = Offers(4, 2)
    offers.took(0, 4, 0, 0.0)
    assert [offers.offer(0), offers.offer(1)] == [0, 0]


def test_freed_slot_is_offered_to_its_partition_again() -> None:
    offers = Offers(4, 2)
    offers.told(0, [10], 0.0)
    offers.tick(0.2)
    offers.took(0, 4, 0, 0.2)
    offers.freed(0)
    assert offers.offer(0) == 1


def test_known_work_shares_what_is_really_free() -> None:
    offers = Offers(10, 4)
    for partition in (0, 1):
        offers.told(partition, [50], 0.0)
    offers.tick(0.2)
    for partition in (0, 1):
        offers.sent(partition, offers.offer(partition), 0.2)
    assert [offers.offer(0), offers.offer(1)] == [5, 5]
    assert offers.offer(2) == 10


def test_promised_slots_are_not_promised_again() -> None:
    offers = Offers(10, 2)
    offers.told(0, [50], 0.0)
    offers.tick(0.2)
    offers.sent(0, 10, 0.2)
    offers.told(1, [50], 0.3)
    offers.took(0, 2, 0, 1.15)
    offers.tick(0.2 + MOVE_EVERY_S)
    assert offers.offer(1) == 0
    offers.sent(0, offers.offer(0), 1.21)
    assert offers.offer(1) == 5


def test_higher_priority_gets_the_slots_first() -> None:
    offers = Offers(30, 2)
    offers.told(0, [0, 0, 0, 0, 0, 100], 0.0)
    offers.told(1, [0, 0, 0, 0, 0, 0, 0, 0, 0, 100], 0.0)
    offers.tick(0.2)
    assert [offers.offer(0), offers.offer(1)] == [0, 30]


def test_longest_unoffered_gets_the_only_slot_next() -> None:
    offers = Offers(1, 3)
    for partition in range(3):
        offers.told(partition, [9], 0.0)
    turns = []
    now = 0.2
    for _ in range(3):
        offers.tick(now)
        turn = next(partition for partition in range(3) if offers.offer(partition))
        offers.sent(turn, 1, now)
        offers.took(turn, 1, 0, now)
        offers.freed(turn)
        turns.append(turn)
        now += MOVE_EVERY_S
    assert sorted(turns) == [0, 1, 2]


def test_ties_are_broken_differently_in_each_worker() -> None:
    turns = set()
    for first in range(4):
        offers = Offers(1, 4, first)
        for partition in range(4):
            offers.told(partition, [9], 0.0)
        offers.tick(0.2)
        turns.add(tuple(offers.offer(partition) for partition in range(4)))
    assert len(turns) == 4


def test_slots_move_at_most_once_a_second() -> None:
    offers = Offers(100, 2)
    offers.told(0, [500], 0.0)
    offers.tick(0.2)
    offers.told(1, [500], 0.3)
    offers.tick(0.9)
    assert [offers.offer(0), offers.offer(1)] == [100, 0]
    offers.tick(0.2 + MOVE_EVERY_S)
    assert [offers.offer(0), offers.offer(1)] == [50, 50]


def test_unanswered_offer_sets_the_known_count_to_zero() -> None:
    offers = Offers(100, 2)
    offers.told(0, [500], 0.0)
    offers.tick(0.2)
    offers.sent(0, 100, 0.2)
    offers.tick(0.2 + UNANSWERED_S / 2)
    assert offers.offer(0) == 100
    offers.tick(0.2 + UNANSWERED_S)
    assert offers.offer(0) == 50 + 16


def test_repeated_pulses_do_not_put_off_the_missing_answer() -> None:
    offers = Offers(100, 2)
    offers.told(0, [500], 0.0)
    offers.tick(0.2)
    for now in (0.2, 0.25, 0.3, 0.35):
        offers.sent(0, 100, now)
    offers.tick(0.2 + UNANSWERED_S)
    assert offers.offer(0) == 66


def test_report_without_counts_changes_nothing() -> None:
    offers = Offers(100, 2)
    offers.told(0, [500], 0.0)
    offers.told(0, [], 0.1)
    offers.tick(0.2)
    assert offers.offer(0) == 100


def test_pulse_is_wanted_when_slots_are_free_again() -> None:
    offers = Offers(4, 2)
    offers.took(0, 4, 0, 0.0)
    offers.sent(1, 0, 0.0)
    assert offers.pulse_at(1) == float("inf")
    offers.freed(0, 4)
    assert offers.pulse_at(1) < SHRINK_AFTER_S


def test_pulse_is_wanted_in_a_while_when_no_slot_is_left() -> None:
    offers = Offers(4, 2)
    offers.sent(1, 4, 0.0)
    offers.took(0, 4, 0, 0.1)
    assert offers.pulse_at(1) == SHRINK_AFTER_S


def test_small_changes_of_an_offer_need_no_pulse_of_their_own() -> None:
    offers = Offers(100, 2)
    offers.sent(0, offers.offer(0), 0.0)
    offers.took(1, 10, 0, 0.1)
    assert offers.pulse_at(0) == float("inf")


def test_other_partitions_hear_of_a_free_slot_only_if_it_stays_free() -> None:
    offers = Offers(4, 2)
    offers.told(0, [50], 0.0)
    offers.tick(0.2)
    offers.took(0, 4, 0, 0.2)
    offers.sent(1, 0, 0.3)
    offers.freed(0)
    offers.tick(5.0)
    assert offers.pulse_at(1) == 5.0 + GROW_AFTER_S
    offers.took(0, 1, 0, 5.01)
    assert offers.pulse_at(1) == float("inf")


def test_counts_that_come_in_give_the_offer_its_time_anew() -> None:
    offers = Offers(100, 2)
    offers.sent(0, 66, 0.0)
    offers.told(0, [500], 5.0)
    offers.tick(5.0 + UNANSWERED_S / 2)
    assert offers.offer(0) == 100
    offers.tick(5.0 + UNANSWERED_S)
    assert offers.offer(0) == 66, "nobody answered, so nothing is known"


def test_work_that_shows_up_again_finds_slots_without_a_move() -> None:
    offers = Offers(4, 8, first=4)
    offers.told(0, [9], 0.0)
    offers.tick(0.2)
    offers.told(0, [0], 0.5)
    offers.tick(0.2 + MOVE_EVERY_S)
    offers.told(0, [9], 1.3)
    assert offers.offer(0) == 0
    offers.tick(1.3 + GATHER_S)
    assert offers.offer(0) == 4


class Fleet:
    """Workers with slots, owners with queued runs that last `run_s`, one step between saying and hearing."""

    def __init__(self, workers: int, slots: int, queued: list[int], run_s: float) -> None:
        self.now = 0.0
        self.queued = list(queued)
        self.total = sum(queued)
        self.run_s = run_s
        self.workers = [Offers(slots, len(queued), first) for first in range(workers)]
        self.full_at = [[0.0] * len(queued) for _ in range(workers)]
        self.has_results = [[False] * len(queued) for _ in range(workers)]
        self.ends: list[tuple[float, int, int]] = []
        self.grants: list[tuple[int, int, int]] = []
        self.allowed = [[0] * len(queued) for _ in range(workers)]
        self.told_at = [[0.0] * len(queued) for _ in range(workers)]
        self.started = self.handed_back = self.finished = 0

    def step(self) -> None:
        self.now += STEP_S
        self._end_runs()
        self._take_grants()
        for number, offers in enumerate(self.workers):
            offers.tick(self.now)
            for partition in range(len(self.queued)):
                self._pulse(number, partition)
        self._grant()
        self._tell()

    def run_to_end(self, limit_s: float) -> None:
        while self.finished < self.total:
            assert self.now < limit_s, f"{self.finished} of {self.total} after {self.now:.1f} s"
            self.step()

    def _end_runs(self) -> None:
        while self.ends and self.ends[0][0] <= self.now:
            _, number, partition = heapq.heappop(self.ends)
            self.workers[number].freed(partition)
            self.has_results[number][partition] = True
            self.finished += 1

    def _take_grants(self) -> None:
        grants, self.grants = self.grants, []
        for number, partition, count in grants:
            offers = self.workers[number]
            started = min(count, offers.free)
            self.queued[partition] += count - started
            self.started += started
            self.handed_back += count - started
            offers.took(partition, started, count - started, self.now)
            offers.told(partition, [self.queued[partition]], self.now)
            self.has_results[number][partition] |= count > started
            for _ in range(started):
                heapq.heappush(self.ends, (self.now + self.run_s, number, partition))

    def _pulse(self, number: int, partition: int) -> None:
        offers = self.workers[number]
        is_full = self.now >= self.full_at[number][partition]
        if not (is_full or self.has_results[number][partition] or offers.pulse_at(partition) <= self.now):
            return
        if is_full:
            self.full_at[number][partition] = self.now + PULSE_S
        self.has_results[number][partition] = False
        offer = offers.offer(partition)
        offers.sent(partition, offer, self.now)
        self.allowed[number][partition] = offer

    def _grant(self) -> None:
        for partition in range(len(self.queued)):
            for number in sorted(range(len(self.workers)), key=lambda n: -self.allowed[n][partition]):
                count = min(self.queued[partition], self.allowed[number][partition])
                if count:
                    self.queued[partition] -= count
                    self.allowed[number][partition] -= count
                    self.grants.append((number, partition, count))

    def _tell(self) -> None:
        """What waits and finds no offer is told, once a second at most."""
        for number, offers in enumerate(self.workers):
            for partition, queued in enumerate(self.queued):
                is_due = self.now >= self.told_at[number][partition] + TELL_EVERY_S
                if queued and is_due and not self.allowed[number][partition]:
                    self.told_at[number][partition] = self.now
                    offers.told(partition, [queued], self.now)


def test_all_slots_serve_the_one_partition_with_work() -> None:
    fleet = Fleet(1, 4, [200, 0, 0, 0, 0, 0, 0, 0], run_s=30.0)
    while fleet.started < 4:
        assert fleet.now < 2 * PULSE_S
        fleet.step()


def test_many_slots_gather_at_the_one_partition_with_work() -> None:
    fleet = Fleet(1, 2_000, [10_000, 0, 0, 0, 0, 0, 0, 0], run_s=30.0)
    while fleet.started < 2_000:
        assert fleet.now < 2 * PULSE_S
        fleet.step()


def test_uniform_burst_hands_back_little() -> None:
    fleet = Fleet(2, 2_000, [12_500] * 8, run_s=0.02)
    fleet.run_to_end(20.0)
    assert fleet.handed_back < fleet.total / 50


def test_no_slot_idles_long_while_work_waits() -> None:
    fleet = Fleet(3, 4, [200, 0, 0, 0, 0, 0, 0, 0], run_s=2.0)
    fleet.run_to_end(60.0)
    assert fleet.handed_back < fleet.total
    assert fleet.now < 200 / 12 * 2.0 * 1.3


@pytest.mark.parametrize("run_s", [0.02, 2.0])
def test_fewer_slots_than_partitions_serve_all_of_them(run_s: float) -> None:
    fleet = Fleet(24, 1, [60] * 8, run_s=run_s)
    fleet.run_to_end(480 / 24 * run_s * 2 + 10.0)
    assert fleet.handed_back < fleet.total


def test_partition_that_gets_work_later_is_not_starved() -> None:
    fleet = Fleet(1, 10, [100_000, 0], run_s=0.05)
    while fleet.now < 3.0:
        fleet.step()
    fleet.queued[1] += 100
    while fleet.queued[1] > 0:
        assert fleet.now < 10.0
        fleet.step()
