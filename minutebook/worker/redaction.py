"""Secrets that a worker's process knows, kept out of the texts that go on record."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterable, Mapping
from typing import Final

SECRET_CHARS_MIN: Final = 8
"""Shorter values are found by chance in harmless texts."""
MASK: Final = "***"
_ENDINGS: Final = ("PASSWORD", "PASSWD", "SECRET", "TOKEN", "_KEY", "APIKEY", "CREDENTIALS")


def secrets_in(environment: Mapping[str, str]) -> tuple[str, ...]:
    """Values whose names end as those of secrets do; longer ones first, as a shorter one may be a part of them."""
    found = {
        value
        for name, value in environment.items()
        if name.upper().endswith(_ENDINGS) and len(value) >= SECRET_CHARS_MIN
    }
    return tuple(sorted(found, key=len, reverse=True))


@functools.cache
def known_secrets() -> tuple[str, ...]:
    """Secrets in the environment with which this process was started; read once."""
    return secrets_in(os.environ)


def redacted(text: str, secrets: Iterable[str]) -> str:
    """`text` with a mask in the place of each secret."""
    for secret in secrets:
        text = text.replace(secret, MASK)
    return text
