"""How far the log is read, how fast, and when it is worth asking again."""

from __future__ import annotations

import pytest

from api.catch_up import RETRY_AFTER_S_MAX, CatchUp


def test_nothing_is_said_of_a_rate_before_a_second_has_passed() -> None:
    catch_up = CatchUp()
    unknown = catch_up.all()
    assert (unknown.share, unknown.ready_in_s, catch_up.retry_after_s()) == (0.0, None, 1)
    assert unknown.text() == "how much there is to read is not known yet"
    catch_up.note(5.0, {0: 100}, {0: 300})
    catch_up.note(5.5, {0: 200}, {0: 200})
    found = catch_up.all()
    assert (found.read, found.left, found.per_s, found.ready_in_s) == (200, 200, None, None)
    assert found.text() == "200 records left of 400, 50% read"
    assert catch_up.retry_after_s() == 1


def test_rate_and_end_are_told_for_each_partition_and_for_all() -> None:
    catch_up = CatchUp()
    catch_up.note(0.0, {0: 0, 1: 0}, {0: 1_000, 1: 100})
    catch_up.note(2.0, {0: 200, 1: 100}, {0: 800, 1: 0})
    assert (catch_up.of(0).per_s, catch_up.of(0).ready_in_s) == (100.0, 8)
    assert (catch_up.of(1).share, catch_up.of(1).ready_in_s) == (1.0, 0)
    assert catch_up.all().text() == "800 records left of 1100, 27% read, 150 a second, ready in about 6 s"
    assert catch_up.retry_after_s() == 6


def test_the_rate_is_that_of_the_last_while() -> None:
    catch_up = CatchUp()
    for second in range(100):
        catch_up.note(float(second), {0: 1_000 if second >= 50 else 20 * second}, {0: 500})
    assert (catch_up.of(0).per_s, catch_up.of(0).ready_in_s) == (0.0, None)


@pytest.mark.parametrize(("left", "seconds"), [(1, 1), (20, 2), (1_000_000, RETRY_AFTER_S_MAX)])
def test_asking_again_is_bounded(left: int, seconds: int) -> None:
    catch_up = CatchUp()
    catch_up.note(0.0, {0: 0}, {0: left + 10})
    catch_up.note(1.0, {0: 10}, {0: left})
    assert catch_up.retry_after_s() == seconds
