"""The group's consumer stops delivering a partition, and looks well."""

from __future__ import annotations

import pytest

from streams.host import EXIT_LEAVE
from tests.crash.checker import verdict
from tests.crash.stack import Stack, jobs_over

pytestmark = [pytest.mark.kafka, pytest.mark.slow]


def test_inputs_that_are_not_delivered_are_read_and_the_consumer_is_replaced(stack: Stack) -> None:
    owner = stack.owner("o1", ("-m", "tests.crash.faulty_owner", "go-silent", "20"), is_kept=True)
    worker = stack.worker("w1")
    stack.await_ready(owner, worker)
    owner.arguments = ("-m", "streams")
    stack.submit(jobs_over(120, 6))
    stack.until("the process has left", lambda _: owner.exits)
    stack.submit(jobs_over(20, 1))

    stack.await_done()
    assert owner.exits == [EXIT_LEAVE]
    assert owner.said("does not deliver")
    assert verdict(stack) == []
