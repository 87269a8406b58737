"""`python -m tests.property.every_change`: the walk around every clock change of every zone, which takes an hour or two.

Ends with 1 and the differences if there are any. `tests/property/test_cron_against_walk.py` walks a sample of it.
"""

import sys

from minutebook.schedule import TZDATA_VERSION
from tests.property.cron_walk import CASES, POLICIES, changes, differences

SHOWN_EVERY = 100


def main() -> int:
    """Walk, and say how far it is."""
    wrong, every = 0, changes()
    crons = sum(len(case.crons) for case in CASES)
    print(
        f"tzdata {TZDATA_VERSION}: {len(every)} changes, {crons} expressions, {len(POLICIES)} policies",
        flush=True,
    )
    for number, change in enumerate(every, 1):
        for difference in differences(change):
            print(difference, flush=True)
            wrong += 1
        if number % SHOWN_EVERY == 0:
            print(f"{number} changes, {wrong} differences", flush=True)
    print(f"done: {len(every)} changes, {wrong} differences")
    return min(wrong, 1)


if __name__ == "__main__":
    sys.exit(main())
