"""Signatures of webhooks, against what the reference library of Standard Webhooks 1.1.0 made of the same."""

from __future__ import annotations

import base64

import pytest

from api.notifier.signature import read_secret, signed_headers

VECTORS = [
    (
        "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        "msg_p5jXN8AQM9LWM0D4loKWxJek",
        1_614_265_330,
        '{"test": 2432232314}',
        "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    ),
    (
        "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8gISIjJCUmJygpKissLS4vMDEyMzQ1Njc4OTo7PD0+Pw==",
        "7f0c9c0e-1111-5222-8333-444455556666",
        1_767_225_600,
        '{"text":"\u00fc\u20ac \\n"}',
        "v1,rDHIr6ayFmJJsDIBKSWyi9bMHQqPC2yGOecPaqDExMs=",
    ),
    (
        "whsec_a2tra2tra2tra2tra2tra2tra2tra2traw==",
        "a",
        0,
        "",
        "v1,r/M4UDG9bzpKqNeIIpc/nu45BPPnOzzs3woK7dUSiww=",
    ),
]


@pytest.mark.parametrize(("secret", "name", "timestamp_s", "body", "signature"), VECTORS)
def test_signature_is_that_of_the_reference(
    secret: str, name: str, timestamp_s: int, body: str, signature: str
) -> None:
    assert signed_headers(read_secret(secret), name, timestamp_s, body.encode()) == {
        "webhook-id": name,
        "webhook-timestamp": str(timestamp_s),
        "webhook-signature": signature,
    }


@pytest.mark.parametrize("part", ["id", "timestamp", "body", "key"])
def test_signature_covers_every_part(part: str) -> None:
    plain = {"id": "a", "timestamp": 1, "body": b"b", "key": bytes(32)}
    other = plain | {part: {"id": "b", "timestamp": 2, "body": b"c", "key": bytes(31) + b"\1"}[part]}
    first, second = (
        signed_headers(said["key"], said["id"], said["timestamp"], said["body"])  # type: ignore[arg-type]
        for said in (plain, other)
    )
    assert first["webhook-signature"] != second["webhook-signature"]


@pytest.mark.parametrize(
    "secret",
    [
        "",
        "whsec_",
        "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaS",
        "whsec_not base64 not base64 not base64",
        "whsec_" + base64.b64encode(bytes(23)).decode(),
        "whsec_" + base64.b64encode(bytes(65)).decode(),
    ],
)
def test_secret_that_is_none_is_refused_with_the_way_to_make_one(secret: str) -> None:
    with pytest.raises(ValueError, match="head -c 32 /dev/urandom"):
        read_secret(secret)
