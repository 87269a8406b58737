"""Bodies that must be refused by name and must write nothing, and the few odd ones that must be taken as they are."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from tests.api.memory import Installation

RUN_AT = "2030-01-01T00:00:00Z"
AT = b'"run_at":"2030-01-01T00:00:00Z"'
JSON = {"content-type": "application/json"}


def with_payload(payload: bytes) -> bytes:
    return b'{"task":"t",' + AT + b',"payload":' + payload + b"}"


MALFORMED: dict[str, tuple[bytes, int]] = {
    "R1 no body": (b"", 400),
    "J1 100,000 open brackets": (b"[" * 100_000, 400),
    "J1 open brackets in a payload": (with_payload(b"[" * 100_000), 400),
    "J2 payload of 300 nested arrays": (with_payload(b"[" * 300 + b"]" * 300), 422),
    "J2 payload of 65 nested arrays": (with_payload(b"[" * 65 + b"]" * 65), 422),
    "J3 duplicate key": (b'{"task":"a","task":"b",' + AT + b',"payload":{}}', 400),
    "J3 duplicate key, escaped": (b'{"task":"a","t\\u0061sk":"b",' + AT + b"}", 400),
    "J3 duplicate key in the payload": (with_payload(b'[{"x":1,"y":"a\\":","x":2}]'), 400),
    "J4 NaN": (with_payload(b'{"x":NaN}'), 400),
    "J5 minus infinity": (with_payload(b'{"x":-Infinity}'), 400),
    "J6 number beyond a double": (with_payload(b'{"x":1e400}'), 422),
    "J7 integer of 5,000 digits": (with_payload(b'{"x":' + b"1" * 5000 + b"}"), 422),
    "J8 integer above 64 bits": (with_payload(b'{"x":9223372036854775808}'), 422),
    "J8 integer below 64 bits": (with_payload(b'{"x":-9223372036854775809}'), 422),
    "J10 lone surrogate": (with_payload(b'"\\ud800"'), 400),
    "J10 lone low surrogate": (with_payload(b'"\\udc00"'), 400),
    "J12 UTF-16 body": ('{"task":"t"}'.encode("utf-16"), 400),
    "J13 byte order mark": (b"\xef\xbb\xbf" + with_payload(b"1"), 400),
    "J14 invalid UTF-8": (with_payload(b'"\xff"'), 422),
    "J14 invalid UTF-8 in a name": (b'{"ta\xffsk":"t"}', 400),
    "J15 trailing comma": (b'{"task":"t",' + AT + b",}", 400),
    "J16 two documents": (b'{"task":"t"} {"task":"u"}', 400),
    "J17 array": (b"[]", 400),
    "J17 text": (b'"job"', 400),
    "J17 null": (b"null", 400),
    "J18 key of 1 MB": (b'{"' + b"a" * 1_000_000 + b'":1}', 422),
    "J19 100,000 keys": (with_payload(json.dumps({f"k{n}": 0 for n in range(100_000)}).encode()), 413),
    "J21 payload one byte too long": (with_payload(b'"' + b"a" * 262_143 + b'"'), 413),
    "D25 depends on a million": (
        b'{"task":"t","depends_on":[' + b'"a",' * 999_999 + b'"a"]}',
        413,
    ),
    "body above 1 MiB": (b" " * (1 << 20) + b"{}", 413),
}


@pytest.mark.parametrize("name", MALFORMED)
async def test_malformed_body_is_refused(name: str, api: httpx.AsyncClient, world: Installation) -> None:
    body, status = MALFORMED[name]
    answer = await api.post("/v1/jobs", content=body, headers=JSON)
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert len(answer.content) < 4_000
    assert world.log.sent == []


TAKEN: dict[str, bytes] = {
    "J9 negative zero": b'{"x":-0.0}',
    "J11 escaped NUL": b'"a\\u0000b"',
    "J20 magic keys": b'{"__proto__":1,"__class__":2,"constructor":3}',
    "J21 payload at the limit": b'"' + b"a" * 262_142 + b'"',
    "D16 formula": b'"=HYPERLINK(\\"http://x\\")"',
    "64 nested arrays": b"[" * 64 + b"]" * 64,
    "largest integers": b"[9223372036854775807,-9223372036854775808]",
    "colons and quotes": b'{"a:b":"\\":\\\\","":{"":[":"]}}',
    "odd spacing": b'{ "b" : 1,\t"a":2 }',
    "surrogate pair": b'"\\ud83d\\ude00"',
    "null": b"null",
}


@pytest.mark.parametrize("name", TAKEN)
async def test_payload_comes_back_byte_for_byte(name: str, api: httpx.AsyncClient) -> None:
    answer = await api.post("/v1/jobs", content=with_payload(TAKEN[name]), headers=JSON)
    assert answer.status_code == 201, answer.text
    shown = await api.get(answer.headers["location"])
    assert b'"payload":' + TAKEN[name] + b',"queue"' in shown.content


FIELDS: dict[str, tuple[dict[str, Any], str]] = {
    "D1 unknown field": ({"is_admin": True}, "is_admin"),
    "D2 tenant in the body": ({"tenant_id": "other"}, "tenant_id"),
    "D3 status": ({"status": "succeeded"}, "status"),
    "D4 attempt": ({"attempt": -1}, "attempt"),
    "D5 retry": ({"retry": {"max_attempts": 10**9}}, "retry/max_attempts"),
    "D6 zero timeout": ({"timeout": 0}, "timeout"),
    "D6 zero timeout as text": ({"timeout": "PT0S"}, "timeout"),
    "D7 negative timeout": ({"timeout": -5}, "timeout"),
    "D7 negative timeout as text": ({"timeout": "-PT5S"}, "timeout"),
    "D8 endless timeout": ({"timeout": "P999999999D"}, "timeout"),
    "timeout above 7 days": ({"timeout": "P7DT1S"}, "timeout"),
    "timeout of a month": ({"timeout": "P1M"}, "timeout"),
    "J22 full-width digits": ({"timeout": "PT\uff11\uff12S"}, "timeout"),
    "J22 Arabic digits": ({"delay": "PT\u0663S"}, "delay"),
    "D9 priority, not there yet": ({"priority": True}, "priority"),
    "D10 empty name": ({"task": ""}, "task"),
    "D11 10,000 characters": ({"task": "a" * 10_000}, "task"),
    "D11 129 characters": ({"task": "a" * 129}, "task"),
    "D12 blank name": ({"task": "   "}, "task"),
    "D13 right-to-left override": ({"task": "send\u202etxt.exe"}, "task"),
    "D14 newline": ({"task": "a\nlevel=INFO msg=ok"}, "task"),
    "D15 terminal escape": ({"task": "\u001b[2J"}, "task"),
    "D16 formula": ({"task": '=HYPERLINK("http://x")'}, "task"),
    "D17 format string": ({"task": "{0.__class__}"}, "task"),
    "D18 printf string": ({"task": "%s%n"}, "task"),
    "D19 JNDI string": ({"task": "${jndi:ldap://x}"}, "task"),
    "D20 script": ({"task": "<script>alert(1)</script>"}, "task"),
    "J11 NUL in a name": ({"task": "a\u0000b"}, "task"),
    "task as null": ({"task": None}, "task"),
    "task as number": ({"task": 1}, "task"),
    "D21 id composed": ({"id": "caf\u00e9"}, "id"),
    "D21 id decomposed": ({"id": "cafe\u0301"}, "id"),
    "D23 trailing newline": ({"id": "abc\n"}, "id"),
    "id with a slash": ({"id": "a/b"}, "id"),
    "id that a path drops": ({"id": ".."}, "id"),
    "id with a colon": ({"id": "a:1"}, "id"),
    "D24 depends on itself": ({"id": "a", "depends_on": ["a"]}, "depends_on"),
    "D25 cycle": ({"id": "a", "depends_on": ["b"]}, "depends_on"),
    "J20 magic key": ({"__class__": 2}, "__class__"),
    "J20 another magic key": ({"__proto__": {"task": "u"}}, "__proto__"),
    "D26 unknown queue": ({"queue": "nowhere"}, "queue"),
    "queue with a blank": ({"queue": "a b"}, "queue"),
    "late unknown": ({"late": "never"}, "late"),
    "Z1 zone traversal": ({"zone": "../../etc/passwd"}, "zone"),
    "Z2 zone path": ({"zone": "/etc/localtime"}, "zone"),
    "Z3 zone NUL": ({"zone": "Europe/London\u0000"}, "zone"),
    "Z4 zone in wrong case": ({"zone": "europe/london"}, "zone"),
    "Z5 zone unknown": ({"zone": "Mars/Phobos"}, "zone"),
    "Z6 zone long": ({"zone": "a" * 5_000}, "zone"),
    "Z7 posixrules": ({"zone": "posixrules"}, "zone"),
    "Z8 right/UTC": ({"zone": "right/UTC"}, "zone"),
    "Z9 Factory": ({"zone": "Factory"}, "zone"),
    "Z9 localtime": ({"zone": "localtime"}, "zone"),
    "Z10 tzdata.zi": ({"zone": "tzdata.zi"}, "zone"),
    "Z12 offset": ({"zone": "+25:00"}, "zone"),
    "Z13 naive": ({"run_at": "2024-03-31T12:30:00"}, "run_at"),
    "Z14 naive in the gap": ({"run_at": "2024-03-31T01:30:00", "zone": "Europe/London"}, "run_at"),
    "Z15 naive in the fold": ({"run_at": "2024-10-27T01:30:00", "zone": "Europe/London"}, "run_at"),
    "Z16 year zero": ({"run_at": "0000-01-01T00:00:00Z"}, "run_at"),
    "Z17 end of the calendar": ({"run_at": "9999-12-31T23:59:59Z"}, "run_at"),
    "Z17 beyond the calendar": ({"run_at": "9999-12-31T23:59:59-23:59"}, "run_at"),
    "before the calendar": ({"run_at": "0001-01-01T00:00:00+23:59"}, "run_at"),
    "Z18 leap second": ({"run_at": "2016-12-31T23:59:60Z"}, "run_at"),
    "Z19 hour 24": ({"run_at": "2030-01-01T24:00:00Z"}, "run_at"),
    "Z20 30 February": ({"run_at": "2024-02-30T00:00:00Z"}, "run_at"),
    "Z21 epoch in ms": ({"run_at": 1735689600000}, "run_at"),
    "Z22 epoch in ns": ({"run_at": 1735689600000000000}, "run_at"),
    "Z23 negative epoch": ({"run_at": -100000000000}, "run_at"),
    "Z24 huge epoch": ({"run_at": 1e18}, "run_at"),
    "Z25 200 years ahead": ({"run_at": "2230-01-01T00:00:00Z"}, "run_at"),
    "Z26 long past": ({"run_at": "1970-01-01T00:00:00Z"}, "run_at"),
    "before 1970": ({"run_at": "1969-12-31T00:00:00Z", "late": "run"}, "run_at"),
    "offset of 99 hours": ({"run_at": "2030-01-01T00:00:00+99:00"}, "run_at"),
    "delay of 200 years": ({"delay": "P73000D"}, "delay"),
    "delay negative": ({"delay": "-PT1S"}, "delay"),
    "delay empty": ({"delay": "PT"}, "delay"),
    "integer beyond 64 bits": ({"retry": {"max_attempts": 10**30}}, "retry/max_attempts"),
    "retry that is no object": ({"retry": []}, "retry"),
    "retry as null": ({"retry": None}, "retry"),
    "two of run_at, delay, cron": ({"delay": "PT1S", "cron": "* * * * *"}, "cron"),
}


@pytest.mark.parametrize("name", FIELDS)
async def test_refused_field_is_named(name: str, api: httpx.AsyncClient, world: Installation) -> None:
    fields, field = FIELDS[name]
    answer = await api.post("/v1/jobs", json={"task": "t"} | fields)
    assert answer.status_code == 422, answer.text
    errors = answer.json()["errors"]
    assert [error["pointer"] for error in errors] == [f"/{field}"]
    assert errors[0]["detail"]
    assert world.log.sent == []


CRON: dict[str, str] = {
    "C1 empty": "",
    "C2 four fields": "* * * *",
    "C3 31 February": "0 0 31 2 *",
    "C4 30 February": "0 0 30 2 *",
    "C5 31st of short months": "0 0 31 4,6,9,11 *",
    "C7 minute 60": "60 * * * *",
    "C8 negative minute": "-1 * * * *",
    "C9 step zero": "*/0 * * * *",
    "C10 huge step": "*/99999999999 * * * *",
    "C11 out of bounds": "1-234/5678 * * * *",
    "C12 reversed range": "59-0 * * * *",
    "C13 10,000 items": "0-59," * 10_000 + "0 * * * *",
    "C14 500 KB": "1," * 250_000 + "1 * * * *",
    "C15 random value": "R R * * *",
    "C18 seven fields": "0 0 0 1 1 * 1969",
    "C20 sixth Friday": "0 0 * * 5#6",
    "C21 L before the weekday": "0 0 * * L5",
    "C24 at reboot": "@reboot",
    "hashed day that no month has": "0 0 H(30-31) 2 *",
    "C27 zone prefix": "TZ=UTC 0 0 * * *",
    "C28 cron zone prefix": "CRON_TZ=Europe/Berlin 0 0 * * *",
    "C29 no-break spaces": "*\u00a0*\u00a0*\u00a0*\u00a0*",
    "C29 full-width star": "\uff0a * * * *",
    "C30 sat-sun": "0 0 * * sat-sun",
    "C32 shell text": "* * * * *; rm -rf x",
}


@pytest.mark.parametrize("name", CRON)
async def test_refused_cron_is_named(name: str, api: httpx.AsyncClient, world: Installation) -> None:
    answer = await api.post("/v1/jobs", json={"task": "t", "cron": CRON[name]})
    assert answer.status_code == 422, answer.text
    assert [error["pointer"] for error in answer.json()["errors"]] == ["/cron"]
    assert world.log.sent == []


ACCEPTED_CRON: dict[str, str] = {
    "C6 leap day": "0 0 29 2 *",
    "C16 hashed value": "H H * * *",
    "C17 six fields": "* * * * * *",
    "C25 every second": "@every 1s",
    "C19 Sunday as 7": "0 0 * * 7",
    "C22 nearest weekday": "0 9 31W * *",
    "C23 day of month and day of week": "0 0 1 * mon",
    "C26 yearly macro": "@yearly",
    "C29 tabs": "0\t0\t*\t*\t*",
    "C30 week from Sunday": "0 0 * * sun-sat",
    "steps and names": "*/15 9-17 * * MON-FRI",
    "a year to come": "0 0 12 L 12 ? 2030",
}


@pytest.mark.parametrize("name", ACCEPTED_CRON)
async def test_accepted_cron_comes_back_as_sent(name: str, api: httpx.AsyncClient) -> None:
    cron = ACCEPTED_CRON[name]
    answer = await api.post("/v1/jobs", json={"task": "t", "cron": cron})
    assert (answer.status_code, answer.json()["cron"]) == (201, cron)


AT_BOUND: dict[str, dict[str, str]] = {
    "D11 128 characters": {"task": "a" * 128},
    "Z26 long past, asked for": {"run_at": "1970-01-01T00:00:00Z", "late": "run"},
    "half a day past": {"run_at": "2025-12-31T12:00:00Z"},
    "nanoseconds": {"run_at": "2030-01-01t00:00:00.123456789z"},
    "no delay": {"delay": "PT0S"},
    "a week": {"delay": "P1W"},
    "shortest timeout": {"timeout": "PT1S"},
    "longest timeout": {"timeout": "P7D"},
    "Z11 zone without DST": {"zone": "EST", "cron": "0 0 * * *"},
}


@pytest.mark.parametrize("name", AT_BOUND)
async def test_value_at_its_bound_is_taken(name: str, api: httpx.AsyncClient) -> None:
    answer = await api.post("/v1/jobs", json={"task": "t"} | AT_BOUND[name])
    assert answer.status_code == 201, answer.text


async def test_every_field_at_fault_is_named_at_once(api: httpx.AsyncClient) -> None:
    answer = await api.post(
        "/v1/jobs", json={"task": "", "id": "", "zone": "x", "timeout": "x", "nothing": 1}
    )
    pointers = {error["pointer"] for error in answer.json()["errors"]}
    assert pointers == {"/task", "/id", "/zone", "/timeout", "/nothing"}


@pytest.mark.row("Z15")
async def test_two_offsets_of_one_local_time_are_two_instants(api: httpx.AsyncClient) -> None:
    jobs = [
        (await api.post("/v1/jobs", json={"task": "t", "run_at": f"2026-10-25T01:30:00{offset}"})).json()
        for offset in ("+01:00", "+00:00")
    ]
    assert [job["run_at"] for job in jobs] == ["2026-10-25T00:30:00.000Z", "2026-10-25T01:30:00.000Z"]


@pytest.mark.parametrize("key", ["", "a b", "\u00e4", "a" * 256, "a" * 20_000])
async def test_senseless_idempotency_key_is_refused(
    key: str, api: httpx.AsyncClient, world: Installation
) -> None:
    headers = [("idempotency-key", key.encode())]
    answer = await api.post("/v1/jobs", json={"task": "t"}, headers=headers)  # type: ignore[arg-type]  # raw bytes
    assert answer.status_code == 400
    assert answer.json()["errors"][0]["pointer"] == "Idempotency-Key"
    assert world.log.sent == []
