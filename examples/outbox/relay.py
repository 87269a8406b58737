"""The relay: brings the rows of the outbox to the API, and forgets each once it is durable there."""

from __future__ import annotations

import sqlite3

import msgspec

from minutebook.client import JobRequest, SyncClient


def relay(database: sqlite3.Connection, client: SyncClient, name: str = "shop") -> int:
    """Send what is there, the oldest first, and answer how many rows went out.

    A row that went out and was not deleted, as the process died in between, goes out again under the same key, and makes no
    second job. Raises UnavailableError where the API cannot be reached, and RefusedError where it refuses a row; that row
    and those behind it stay.
    """
    rows = database.execute("SELECT id, job FROM outbox ORDER BY id").fetchall()
    for number, job in rows:
        client.submit(msgspec.json.decode(job, type=JobRequest), key=f"{name}-{number}")
        with database:
            database.execute("DELETE FROM outbox WHERE id = ?", (number,))
    return len(rows)
