"""`python -m examples.outbox FILE`: the relay, over and over; where the API is comes from MINUTEBOOK_CLIENT_*."""

from __future__ import annotations

import sqlite3
import sys
import time

from examples.outbox.orders import SCHEMA
from examples.outbox.relay import relay
from minutebook.client import SyncClient, UnavailableError


def main(path: str) -> None:
    """Relay until stopped."""
    database = sqlite3.connect(path)
    database.executescript(SCHEMA)
    with SyncClient() as client:
        while True:
            try:
                sent = relay(database, client)
            except UnavailableError as error:
                print(f"the API cannot be reached, the rows wait: {error}", file=sys.stderr)
                sent = 0
            if sent == 0:
                time.sleep(1)


if __name__ == "__main__":
    main(sys.argv[1])
