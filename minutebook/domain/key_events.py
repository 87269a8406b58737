"""Events of API keys; `events` names them with all others."""

from __future__ import annotations

import msgspec


class KeyDeclared(msgspec.Struct, frozen=True, gc=False):
    """At the key's home: an API key is good from now on."""

    tenant: str
    key: str  # its id
    role: str
    sha256: bytes
    label: str
    expires_at: int  # -1 = never
    command_id: str
    actor: str
    reason: str
    accepted_at: int  # the broker's stamp of the command


class KeyRevoked(msgspec.Struct, frozen=True, gc=False):
    """At the key's home: an API key is good no more."""

    tenant: str
    key: str  # its id
    command_id: str
    actor: str
    reason: str
    accepted_at: int  # the broker's stamp of the command
