"""Consistency tokens: what a view must have reached to show a write. Opaque to callers.

Inside: per partition the position in `job-events` that answered, or for what was not decided in time the offset of the
command, which frames name once they have consumed it.
"""

from __future__ import annotations

import base64
import binascii

import msgspec

from api.problems import refused_field

_HEADER = "Minutebook-After"
_TEXT_MAX = 4096


class Token(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    """Positions by partition."""

    events: dict[int, int] = {}
    commands: dict[int, int] = {}


def encode_token(token: Token) -> str:
    """`token` as header text."""
    return base64.urlsafe_b64encode(msgspec.msgpack.encode(token)).decode().rstrip("=")


def decode_token(text: str, partitions: int) -> Token:
    """The token in a header. Raises Refused (bad-parameter) for what this installation did not give."""
    try:
        if len(text) > _TEXT_MAX:
            raise ValueError("too long")
        data = base64.b64decode(text.encode("ascii") + b"=" * (-len(text) % 4), altchars=b"-_", validate=True)
        token = msgspec.msgpack.decode(data, type=Token)
        if any(not 0 <= partition < partitions for partition in (*token.events, *token.commands)):
            raise ValueError("no such partition")
    except (ValueError, binascii.Error, msgspec.DecodeError, RecursionError):
        raise refused_field(
            _HEADER, "send a token as given in Minutebook-Position", "bad-parameter"
        ) from None
    return token
