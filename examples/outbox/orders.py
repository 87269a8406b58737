"""The shop: an order and the jobs that follow from it are one transaction, which knows no network."""

from __future__ import annotations

import json
import sqlite3

SCHEMA = """
CREATE TABLE IF NOT EXISTS orders (id INTEGER PRIMARY KEY, email TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS outbox (id INTEGER PRIMARY KEY AUTOINCREMENT, job TEXT NOT NULL);
"""


def place_order(database: sqlite3.Connection, order: int, email: str) -> None:
    """Keep the order, and say what is to be done about it. Raises sqlite3.IntegrityError for an order that is there."""
    job = {
        "id": f"order-{order}-reminder",
        "task": "order.remind",
        "payload": {"order": order},
        "delay": "P1D",
    }
    with database:  # both rows, or none
        database.execute("INSERT INTO outbox (job) VALUES (?)", (json.dumps(job),))
        database.execute("INSERT INTO orders (id, email) VALUES (?, ?)", (order, email))
