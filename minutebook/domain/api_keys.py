"""Commands on API keys, decided at the key's home. Of a key itself nothing is kept but its SHA-256."""

from __future__ import annotations

from typing import Final

import msgspec

from minutebook.domain import events as facts
from minutebook.domain import keys
from minutebook.domain.book import Book
from minutebook.domain.commands import REASON_CHARS_MAX, DeclareKey, KeyCommand
from minutebook.domain.events import Event
from minutebook.domain.refusal import Refusal, answered
from minutebook.domain.state import NONE_AT, ApiKey

ROLES: Final = ("viewer", "submitter", "operator", "admin", "worker")
"""What a key may do; docs/explanation/access.md says which covers what."""
LABEL_CHARS_MAX: Final = 128
_SHA256_BYTES: Final = 32

replace = msgspec.structs.replace


def decide_key(book: Book, command: KeyCommand, stamp: int) -> Event:
    """Event of a command on an API key; `stamp`: ms, UTC. Raises Refusal."""
    known = book.api_keys.get(keys.api_key_row(command.tenant, command.key))
    if isinstance(command, DeclareKey):
        return _declare(known, command, stamp)
    if known is None:
        raise Refusal("not_found", "key", "no such key; minutebook key list shows which there are")
    if known.is_revoked:
        return answered(command, "revoked")
    reason = command.reason[:REASON_CHARS_MAX]
    return facts.KeyRevoked(command.tenant, command.key, command.command_id, command.actor, reason, stamp)


def label_fault(label: str) -> str:
    """What is wrong with a label, with the remedy; empty if nothing is."""
    is_fit = len(label) <= LABEL_CHARS_MAX and label.isprintable()
    return "" if is_fit else f"at most {LABEL_CHARS_MAX} printable characters"


def _declare(known: ApiKey | None, command: DeclareKey, stamp: int) -> Event:
    wanted = _checked(command)
    if wanted == known:
        return answered(command, "exists")
    if known is not None and not _may_become(known, wanted, stamp):
        raise Refusal("key_exists", "key", "a key with this id exists; take another id")
    if wanted.expires_at != NONE_AT and wanted.expires_at <= stamp:
        raise Refusal("invalid", "expires_at", "must be later than now; to end a key at once, revoke it")
    return facts.KeyDeclared(
        command.tenant,
        command.key,
        wanted.role,
        wanted.sha256,
        wanted.label,
        wanted.expires_at,
        command.command_id,
        command.actor,
        command.reason[:REASON_CHARS_MAX],
        stamp,
    )


def _may_become(known: ApiKey, wanted: ApiKey, stamp: int) -> bool:
    """Whether they differ in their end alone, which of a key that is good may be moved."""
    is_good = not known.is_revoked and (known.expires_at == NONE_AT or known.expires_at > stamp)
    return is_good and replace(known, expires_at=wanted.expires_at) == wanted


def _checked(command: DeclareKey) -> ApiKey:
    """The key as the command says. Raises Refusal for a field that no key can have."""
    if command.role not in ROLES:
        raise Refusal("invalid", "role", f"must be one of {', '.join(ROLES)}")
    if fault := label_fault(command.label):
        raise Refusal("invalid", "label", fault)
    if len(command.sha256) != _SHA256_BYTES:
        raise Refusal("invalid", "sha256", f"must be {_SHA256_BYTES} bytes: the SHA-256 of the key")
    expires_at = NONE_AT if command.expires_at is None else command.expires_at
    return ApiKey(command.role, command.sha256, command.label, expires_at)
