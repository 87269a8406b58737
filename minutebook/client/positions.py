"""Consistency tokens: what a view must have reached to show what was written. Opaque to other callers.

Inside: per partition the position in `job-events` that answered, or for what was not decided in time the offset of the
command, which frames name once they have consumed it.
"""

from __future__ import annotations

import base64
import binascii

import msgspec

_TEXT_MAX = 4096


class Token(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    """Positions by partition."""

    events: dict[int, int] = {}
    commands: dict[int, int] = {}

    def joined(self, other: Token) -> Token:
        """The token of both: of each partition the furthest position."""
        return Token(_furthest(self.events, other.events), _furthest(self.commands, other.commands))


def _furthest(some: dict[int, int], more: dict[int, int]) -> dict[int, int]:
    return {
        partition: max(some.get(partition, -1), more.get(partition, -1))
        for partition in sorted({*some, *more})
    }


def encode_token(token: Token) -> str:
    """`token` as header text."""
    return base64.urlsafe_b64encode(msgspec.msgpack.encode(token)).decode().rstrip("=")


def decode_token(text: str) -> Token:
    """The token in a header. Raises ValueError for a text that is none."""
    try:
        if len(text) > _TEXT_MAX:
            raise ValueError("too long")
        data = base64.b64decode(text.encode("ascii") + b"=" * (-len(text) % 4), altchars=b"-_", validate=True)
        return msgspec.msgpack.decode(data, type=Token)
    except (ValueError, binascii.Error, msgspec.DecodeError, RecursionError) as error:
        raise ValueError("no consistency token") from error


class Seen:
    """What a client has written so far, as one token; None until then."""

    def __init__(self) -> None:
        self.text: str | None = None
        self._token = Token()

    def add(self, text: str) -> None:
        """Take in the token of a further write."""
        try:
            self._token = self._token.joined(decode_token(text))
        except ValueError:
            # Of an API that writes tokens otherwise: the latest write is what can be waited for.
            self.text = text
        else:
            self.text = encode_token(self._token)
