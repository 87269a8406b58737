"""The only maker of random ids. Everything else derives its ids from facts, in `minutebook/ids.py`."""

from __future__ import annotations

import uuid_utils


def mint_id() -> str:
    """A new UUIDv7 as text: unique, and later ones sort after earlier ones."""
    return str(uuid_utils.uuid7())
