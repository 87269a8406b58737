"""Consistency tokens as callers send them back: checked against this installation."""

from __future__ import annotations

from api.problems import refused_field
from minutebook.client import positions
from minutebook.client.positions import Token, encode_token

_HEADER = "Minutebook-After"


def decode_token(text: str, partitions: int) -> Token:
    """The token in a header. Raises Refused (bad-parameter) for what this installation did not give."""
    try:
        token = positions.decode_token(text)
        if any(not 0 <= partition < partitions for partition in (*token.events, *token.commands)):
            raise ValueError("no such partition")
    except ValueError:
        raise refused_field(
            _HEADER, "send a token as given in Minutebook-Position", "bad-parameter"
        ) from None
    return token


__all__ = ["Token", "decode_token", "encode_token"]
