"""API keys as facts: what is declared and revoked at home, what is refused, and what the view makes of it."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest

from minutebook.domain import events as facts
from minutebook.domain import keys
from minutebook.domain.commands import DeclareKey, RevokeKey
from minutebook.domain.events import Event
from minutebook.domain.state import ApiKey
from minutebook.domain.subjects import is_addressed, key_of, subject_of
from minutebook.domain.view import PartitionView
from minutebook.domain.view_keys import KeyRow, api_key, api_keys
from minutebook.domain.view_rows import FAMILIES
from minutebook.errors import BrokenFrameError
from minutebook.store.memory import MemoryRows
from minutebook.wire.codec import decode, encode
from tests.simulation.log_maker import T0, LogMaker

HASH = hashlib.sha256(b"mb_1_secret").digest()
OTHER = hashlib.sha256(b"another").digest()


@pytest.fixture
def maker() -> LogMaker:
    made = LogMaker()
    made.open()
    return made


def declare(**more: Any) -> DeclareKey:
    about = {"tenant": "acme", "key": "k1", "command_id": "c1", "issued_at": T0, "actor": "me"}
    said = {"role": "operator", "sha256": HASH, "label": "deploy", "reason": "first"}
    return DeclareKey(**(about | said | more))  # type: ignore[arg-type]  # as said


def revoke(**more: Any) -> RevokeKey:
    about = {
        "tenant": "acme",
        "key": "k1",
        "command_id": "r1",
        "issued_at": T0,
        "actor": "me",
        "reason": "lost",
    }
    return RevokeKey(**(about | more))  # type: ignore[arg-type]  # as said


def known(maker: LogMaker, key: str = "k1") -> ApiKey | None:
    return maker.book.api_keys.get(keys.api_key_row("acme", key))


def refused(events: list[Event]) -> tuple[str, str]:
    (event,) = events
    assert isinstance(event, facts.CommandRejected), event
    return event.reason, event.field


def test_a_key_is_declared(maker: LogMaker) -> None:
    (event,) = maker.command(declare(expires_at=T0 + 9), stamp=T0 + 5)
    assert event == facts.KeyDeclared(
        "acme", "k1", "operator", HASH, "deploy", T0 + 9, "c1", "me", "first", T0 + 5
    )
    assert known(maker) == ApiKey("operator", HASH, "deploy", T0 + 9)


@pytest.mark.parametrize(
    ("wrong", "reason", "field"),
    [
        ({"role": "root"}, "invalid", "role"),
        ({"role": ""}, "invalid", "role"),
        ({"label": "x" * 129}, "invalid", "label"),
        ({"label": "two\nlines"}, "invalid", "label"),
        ({"label": "a\u202eb"}, "invalid", "label"),
        ({"sha256": b""}, "invalid", "sha256"),
        ({"sha256": HASH + b"\0"}, "invalid", "sha256"),
        ({"expires_at": T0}, "invalid", "expires_at"),
        ({"expires_at": 0}, "invalid", "expires_at"),
        ({"expires_at": -1}, "exists", ""),
        ({"key": "a b"}, "invalid", "key"),
        ({"key": ""}, "invalid", "key"),
        ({"tenant": "a:b"}, "invalid", "tenant"),
        ({"command_id": "?"}, "invalid", "command_id"),
    ],
)
def test_a_key_that_cannot_be_is_refused(
    maker: LogMaker, wrong: dict[str, Any], reason: str, field: str
) -> None:
    if reason == "exists":
        maker.command(declare(command_id="c0"))
        assert isinstance(maker.command(declare(**wrong))[0], facts.CommandAnswered)
        return
    assert refused(maker.command(declare(**wrong))) == (reason, field)
    assert list(maker.book.api_keys.scan(b"")) == []


@pytest.mark.parametrize(
    "more", [{"role": "admin"}, {"sha256": OTHER}, {"label": "x"}, {"role": "admin", "expires_at": T0 + 9}]
)
def test_an_id_is_given_out_once(maker: LogMaker, more: dict[str, Any]) -> None:
    maker.command(declare())
    assert refused(maker.command(declare(command_id="c2", **more))) == ("key_exists", "key")
    assert known(maker) == ApiKey("operator", HASH, "deploy")


def test_the_same_key_again_is_answered_and_its_end_may_be_moved(maker: LogMaker) -> None:
    maker.command(declare())
    assert maker.command(declare()) == []
    assert maker.command(declare(command_id="c2")) == [
        facts.CommandAnswered("acme", "key:k1", "c2", "exists", "DeclareKey", "me", "first")
    ]
    (event,) = maker.command(declare(command_id="c3", expires_at=T0 + 50))
    assert isinstance(event, facts.KeyDeclared)
    assert known(maker) == ApiKey("operator", HASH, "deploy", T0 + 50)


def test_a_key_past_its_end_does_not_come_back(maker: LogMaker) -> None:
    maker.command(declare(expires_at=T0 + 50))
    assert refused(maker.command(declare(command_id="c2"), stamp=T0 + 50)) == ("key_exists", "key")


def test_a_key_is_revoked_once_and_for_good(maker: LogMaker) -> None:
    assert refused(maker.command(revoke())) == ("not_found", "key")
    maker.command(declare())
    (event,) = maker.command(revoke(command_id="r2"), stamp=T0 + 7)
    assert event == facts.KeyRevoked("acme", "k1", "r2", "me", "lost", T0 + 7)
    assert maker.command(revoke(command_id="r3")) == [
        facts.CommandAnswered("acme", "key:k1", "r3", "revoked", "RevokeKey", "me", "lost")
    ]
    assert refused(maker.command(declare(command_id="c2"))) == ("key_exists", "key")
    assert known(maker) == ApiKey("operator", HASH, "deploy", is_revoked=True)


def test_keys_of_tenants_are_apart(maker: LogMaker) -> None:
    maker.command(declare())
    assert refused(maker.command(revoke(tenant="blue"))) == ("not_found", "key")
    assert isinstance(maker.command(declare(tenant="blue", role="admin"))[0], facts.KeyDeclared)


@pytest.mark.parametrize("command", [declare(), revoke(), declare(expires_at=T0)])
def test_a_command_on_a_key_travels_and_has_its_address(command: DeclareKey | RevokeKey) -> None:
    assert decode(encode(command)) == command
    assert (key_of(command), subject_of(command)) == ("key:acme:k1", ("acme", "key:k1"))
    assert is_addressed(command)


@pytest.mark.parametrize("wrong", [{"tenant": ""}, {"key": ""}, {"key": "a/b"}, {"tenant": "a b"}])
def test_a_command_without_the_names_of_a_key_is_not_addressed(wrong: dict[str, str]) -> None:
    assert not is_addressed(declare(**wrong))


def test_a_revoked_key_that_never_was_halts(maker: LogMaker) -> None:
    event = facts.KeyRevoked("acme", "k1", "r2", "me", "lost", T0)
    with pytest.raises(BrokenFrameError, match="is not there"):
        maker.add(event)
    with pytest.raises(BrokenFrameError, match="is not there"):
        PartitionView(MemoryRows(FAMILIES), 0).fold([event], T0, 0)


def test_the_view_has_a_key_with_its_history(maker: LogMaker) -> None:
    rows = MemoryRows(FAMILIES)
    view = PartitionView(rows, 0)
    view.fold(maker.command(declare(), stamp=T0 + 1), T0 + 1, 0)
    moved = declare(command_id="c2", expires_at=T0 + 50, actor="you")
    view.fold(maker.command(moved, stamp=T0 + 2), T0 + 2, 1)
    view.fold(maker.command(revoke(), stamp=T0 + 3), T0 + 3, 2)
    row = KeyRow("operator", HASH, "deploy", T0 + 50, T0 + 1, "me", T0 + 3, "me")
    assert api_key(view, "acme", "k1") == row
    assert [(tenant, key) for tenant, key, _ in view.changed_keys] == [("acme", "k1")] * 3
    rows.write(*view.drain())
    assert list(api_keys(PartitionView(rows, 0))) == [("acme", "k1", row)]
    assert list(api_keys(PartitionView(rows, 1))) == []


@pytest.mark.parametrize(
    ("row", "is_live"),
    [
        (KeyRow("viewer", HASH, "", -1, T0, ""), True),
        (KeyRow("viewer", HASH, "", T0 + 1, T0, ""), True),
        (KeyRow("viewer", HASH, "", T0, T0, ""), False),
        (KeyRow("viewer", HASH, "", -1, T0, "", T0), False),
        (KeyRow("viewer", HASH, "", T0 + 1, T0, "", T0), False),
    ],
)
def test_a_key_is_live_until_its_end_or_its_revocation(row: KeyRow, is_live: bool) -> None:
    assert row.is_live(T0) == is_live
