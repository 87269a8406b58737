"""The only maker of random ids and secrets. Everything else derives its ids from facts, in `minutebook/ids.py`."""

from __future__ import annotations

import secrets
from typing import Final

import uuid_utils

_SECRET_BYTES: Final = 32
_KEY_ID_BYTES: Final = 8
_LOGIN_BYTES: Final = 24


def mint_id() -> str:
    """A new UUIDv7 as text: unique, and later ones sort after earlier ones."""
    return str(uuid_utils.uuid7())


def mint_key_id() -> str:
    """The id of a new API key: 16 hexadecimal digits."""
    return secrets.token_hex(_KEY_ID_BYTES)


def mint_api_key(key_id: str) -> str:
    """A new API key `mb_<key id>_<secret>`. Its secret has 256 bits, as 64 hexadecimal digits."""
    return f"mb_{key_id}_{secrets.token_hex(_SECRET_BYTES)}"


def mint_login_token() -> str:
    """A new token for a link that logs in to the pages once."""
    return secrets.token_urlsafe(_LOGIN_BYTES)
