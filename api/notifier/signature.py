"""Signatures of webhooks, by the specification Standard Webhooks: HMAC-SHA256 over id, timestamp and body."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from typing import Final

PREFIX: Final = "whsec_"
_BYTES_MIN, _BYTES_MAX = 24, 64


def read_secret(text: str) -> bytes:
    """The key in a secret `whsec_<base64>`. Raises ValueError with the remedy."""
    try:
        key = base64.b64decode(text.removeprefix(PREFIX), validate=True)
    except (ValueError, binascii.Error):
        key = b""
    if not text.startswith(PREFIX) or not _BYTES_MIN <= len(key) <= _BYTES_MAX:
        raise ValueError(
            f"a secret is {PREFIX} and {_BYTES_MIN} to {_BYTES_MAX} random bytes in base64: "
            f'echo "{PREFIX}$(head -c 32 /dev/urandom | base64)"'
        )
    return key


def signed_headers(key: bytes, name: str, timestamp_s: int, body: bytes) -> dict[str, str]:
    """Headers of a webhook with the id `name`, sent at `timestamp_s` (seconds since the epoch)."""
    total = hmac.new(key, f"{name}.{timestamp_s}.".encode() + body, hashlib.sha256).digest()
    return {
        "webhook-id": name,
        "webhook-timestamp": str(timestamp_s),
        "webhook-signature": f"v1,{base64.b64encode(total).decode()}",
    }
