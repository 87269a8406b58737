"""Credentials that are none: refused alike, whatever they pretend to be; nothing is written, fetched or logged."""

from __future__ import annotations

import base64
import json
from typing import Any

import httpx
import pytest
import structlog

from tests.api.conftest import Callers
from tests.api.memory import Installation


def part(value: dict[str, Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


def jwt(header: dict[str, Any] | None = None, claims: dict[str, Any] | None = None) -> str:
    """A token that is well formed and signed by nobody that we know."""
    right = {"iss": "https://id.example", "aud": "minutebook", "sub": "acme", "exp": 4_102_444_800}
    return f"{part({'alg': 'RS256', 'typ': 'JWT'} | (header or {}))}.{part(right | (claims or {}))}.c2ln"


TOKENS: dict[str, str] = {
    "A6 alg none": jwt({"alg": "none"}).removesuffix("c2ln"),
    "A7 HS256 with the public key": jwt({"alg": "HS256"}),
    "A8 kid as a path": jwt({"kid": "../../dev/null"}),
    "A9 jku of a stranger": jwt({"jku": "https://attacker.example/keys"}),
    "A10 wrong audience": jwt(None, {"aud": "another"}),
    "A11 wrong issuer": jwt(None, {"iss": "https://another.example"}),
    "A12 expired": jwt(None, {"exp": 1}),
    "A13 not yet valid": jwt(None, {"nbf": 4_102_444_799}),
    "A14 no expiry": jwt(None, {"exp": None}),
    "a key with a blank inside": "key-submitter x",
    "a key twice": "key-submitter,key-submitter",
    "its hash": "sha256:key-submitter",
}


@pytest.mark.parametrize("name", TOKENS)
async def test_token_that_is_no_key_is_refused(name: str, callers: Callers, world: Installation) -> None:
    headers = {"authorization": f"Bearer {TOKENS[name]}"}
    answer = await callers["nobody"].post("/v1/jobs", json={"task": "t"}, headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (401, "no-credential")
    assert world.log.sent == []


@pytest.mark.row("A3")
@pytest.mark.parametrize(
    "values",
    [
        ("Bearer nothing", "Bearer key-submitter"),
        ("Bearer key-submitter", "Bearer nothing"),
        ("Bearer key-submitter", "Bearer key-other"),
        ("Bearer key-submitter", "Bearer key-submitter"),
        ("Bearer key-submitter", ""),
    ],
)
async def test_two_credentials_are_none(
    values: tuple[str, str], callers: Callers, world: Installation
) -> None:
    """Two readers could each take another one."""
    headers = [("authorization", value) for value in values]
    answer = await callers["nobody"].post("/v1/jobs", json={"task": "t"}, headers=headers)
    assert answer.status_code == 401
    assert world.log.sent == []


@pytest.mark.row("A18")
@pytest.mark.parametrize("path", ["/v1/jobs", "/v1/jobs/a", "/v1/jobs/a/executions", "/v1/commands/a"])
async def test_key_in_the_query_is_no_credential_and_in_no_log(
    path: str, callers: Callers, capfd: pytest.CaptureFixture[str]
) -> None:
    with structlog.testing.capture_logs() as logs:
        answer = await callers["nobody"].get(f"{path}?api_key=key-submitter")
    assert answer.status_code in (401, 405)
    assert "key-submitter" not in answer.text + str(logs) + "".join(capfd.readouterr())


@pytest.mark.row("A15")
async def test_role_that_reads_may_not_cancel(callers: Callers, world: Installation) -> None:
    await callers["submitter"].post("/v1/jobs", json={"id": "a", "task": "t", "delay": "PT1H"})
    written = len(world.log.sent)
    for role in ("viewer", "worker"):
        answer: httpx.Response = await callers[role].delete("/v1/jobs/a")
        assert (answer.status_code, answer.json()["code"]) == (403, "denied")
    assert len(world.log.sent) == written
