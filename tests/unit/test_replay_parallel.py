"""Partitions read by several processes: the same report in the same order, and no process that outlives its work."""

from __future__ import annotations

import os
import select
from collections import Counter
from multiprocessing import active_children
from typing import NoReturn

import pytest

from minutebook.errors import SettingsError
from replay.parallel import ProcessDiedError, Stopped, spread
from replay.reading import Advance, unheard
from replay.verify import verify
from tests.simulation.copies import CopiedLog
from tests.simulation.log_maker import LogMaker, submit

RECORDS = 100


def work(partition: int, advance: Advance, is_stopped: Stopped) -> int:
    if partition == 13:
        os._exit(9)
    if partition == 14:
        raise SettingsError("no such partition")
    while partition == 15 and not is_stopped():
        advance(partition, RECORDS)
    advance(partition, RECORDS)
    return partition * 2


class DeadWhenHandedOver:
    """Ends the process that it is handed to, once there is something in its pipe, which it leaves unread."""

    def __getstate__(self) -> int:
        return 9

    def __setstate__(self, code: int) -> NoReturn:
        opened = [
            int(name) for name in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{name}")
        ]
        pipes = [fd for fd in opened if fd > 2 and os.readlink(f"/proc/self/fd/{fd}").startswith("socket:")]
        select.select(pipes, [], [])
        os._exit(code)

    def __call__(self, partition: int, advance: Advance, is_stopped: Stopped) -> int:
        return partition


def test_what_is_found_and_done_comes_back_by_partition() -> None:
    told: Counter[int] = Counter()
    found = spread([5, 3, 4], work, 2, lambda partition, records: told.update({partition: records}))
    assert found == {3: 6, 4: 8, 5: 10}
    assert told == {3: RECORDS, 4: RECORDS, 5: RECORDS}
    assert active_children() == []


def test_a_process_that_dies_and_one_that_fails_are_told() -> None:
    with pytest.raises(ProcessDiedError, match="partition 13 ended with 9"):
        spread([13, 1], work, 2, unheard)
    with pytest.raises(SettingsError, match="no such partition"):
        spread([14, 15], work, 2, unheard)
    assert active_children() == []


def test_a_process_that_dies_with_words_unread_is_told() -> None:
    with pytest.raises(ProcessDiedError, match=r"partition [01] ended with 9"):
        spread([0, 1], DeadWhenHandedOver(), 2, unheard)
    assert active_children() == []


def test_a_stop_is_heard_by_all_and_nothing_more_is_begun() -> None:
    told: list[int] = []
    found = spread([15, 1, 2], work, 1, lambda partition, _: told.append(partition), lambda: bool(told))
    assert found == {15: 30}
    told.clear()
    found = spread([15, 15, 1], work, 2, lambda partition, _: told.append(partition), lambda: bool(told))
    assert found == {15: 30}


def test_several_processes_report_as_one_does() -> None:
    makers = [LogMaker(partition, 3) for partition in range(3)]
    for maker in makers:
        maker.open()
        maker.command(submit("same-id"))
        maker.due("w1.1")
        maker.add()
    logs = [maker.records for maker in makers]
    logs[1] = [record._replace(key=b"k") if record.offset == 1 else record for record in logs[1]]
    logs[2] = logs[2][:1] + logs[2][2:]
    one = verify(CopiedLog(*logs), [0, 1, 2])
    assert verify(CopiedLog(*logs), [0, 1, 2], processes=2) == one
    assert [(found.partition, found.offset) for found in one.findings] == [(1, 1), (2, 1)]
