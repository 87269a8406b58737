"""What a worker says about a failure: harmless to read, bounded, and without the secrets that its process knows."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from minutebook.worker import Fail, Retry, outcomes
from minutebook.worker.redaction import known_secrets, redacted, secrets_in

SECRET = "s3cret-of-the-broker"


@pytest.fixture
def secret(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A secret that this process was started with."""
    monkeypatch.setenv("MINUTEBOOK_KAFKA_SASL_PASSWORD", SECRET)
    known_secrets.cache_clear()
    yield SECRET
    known_secrets.cache_clear()


def hostile(secret: str) -> str:
    """A secret at the start, across the limit, and at the end of ten megabytes; terminal codes."""
    return f"{secret}\x1b[2J\x00" + "x" * 8_170 + secret * 300_000 + "x" * 4_000_000 + secret


@pytest.mark.row("W12")
def test_hostile_error_text_is_cut_escaped_and_redacted(secret: str) -> None:
    text = hostile(secret)
    assert len(text) > 10_000_000
    named = type(f"E{secret}", (Exception,), {})
    for failure in (
        outcomes.failure_of(ValueError(text)),
        outcomes.bad_payload(ValueError(text)),
        outcomes.outcome_of(Fail(text)),
        outcomes.outcome_of(Retry(reason=text)),
        outcomes.failure_of(named(text)),
    ):
        assert isinstance(failure, outcomes.Failure)
        assert failure.message.startswith("***\\x1b[2J\\x00xxx")
        assert len(failure.message.encode()) <= 8_192
        assert failure.message.isprintable()
        assert secret[:6] not in failure.message + failure.error_type


def test_secrets_are_known_by_the_ends_of_their_names() -> None:
    environment = {
        "DB_PASSWORD": "a" * 8,
        "api_token": "b" * 9,
        "STRIPE_API_KEY": "c" * 10,
        "HOME": "/home/someone",
        "KEYBOARD": "not a secret",
        "SHORT_TOKEN": "1234567",
    }
    assert secrets_in(environment) == ("c" * 10, "b" * 9, "a" * 8)


def test_secret_that_holds_another_is_masked_whole() -> None:
    secrets = secrets_in({"A_TOKEN": "12345678", "B_TOKEN": "12345678-more"})
    assert redacted("x 12345678-more y 12345678", secrets) == "x *** y ***"
