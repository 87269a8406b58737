"""Bytes that no polite client sends, against a real server on a socket."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import NamedTuple

import pytest
import uvicorn

from api.server import QuietServer, server_config
from tests.api.memory import Installation

KEY = b"Authorization: Bearer key-submitter\r\n"
HOST = b"Host: api\r\n"


class Port(NamedTuple):
    """A server that listens."""

    number: int
    server: uvicorn.Server


@pytest.fixture
async def port(world: Installation) -> AsyncIterator[Port]:
    server = QuietServer(server_config(world.app, "127.0.0.1", 0))
    serving = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.01)
    yield Port(server.servers[0].sockets[0].getsockname()[1], server)
    server.should_exit = True
    await serving


async def talk(port: Port, *sent: bytes) -> bytes:
    """What the server answers until it closes, or says no more for a while after the last bytes."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port.number)
    try:
        for part in sent:
            writer.write(part)
            await writer.drain()
        answer = b""
        while part := await asyncio.wait_for(reader.read(65_536), 5):
            answer += part
            if answer.count(b"\r\n\r\n") and is_whole(answer):
                break
        return answer
    except ConnectionResetError:
        return b""
    finally:
        writer.close()


def is_whole(answer: bytes) -> bool:
    head, _, body = answer.partition(b"\r\n\r\n")
    for line in head.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            return len(body) >= int(value)
    return False


def post(headers: bytes, body: bytes = b"", path: bytes = b"/v1/jobs") -> bytes:
    return b"POST " + path + b" HTTP/1.1\r\n" + HOST + KEY + headers + b"\r\n" + body


def status(answer: bytes) -> int:
    """Status of the answer; 0 where the connection was closed without one."""
    return int(answer.split(b" ", 2)[1]) if answer else 0


async def alive(port: Port) -> bool:
    answer = await talk(port, b"GET /livez HTTP/1.1\r\n" + HOST + b"\r\n")
    return status(answer) == 200


JSON = b"Content-Type: application/json\r\n"


@pytest.mark.parametrize(
    ("path", "length"),
    [(b"/v1/jobs", b"10000000000"), (b"/v1/jobs/batch", b"8388609"), (b"/v1/jobs", b"1048577")],
)
@pytest.mark.row("R3")
async def test_huge_length_is_refused_from_the_header_alone(port: Port, path: bytes, length: bytes) -> None:
    answer = await talk(port, post(JSON + b"Content-Length: " + length + b"\r\n", b"x", path))
    assert status(answer) == 413
    assert b"application/problem+json" in answer
    assert await alive(port)


@pytest.mark.parametrize("length", [b"-1", b"1e3", b"+5", b"0x10", b"", b"5, 5"])
@pytest.mark.row("R2")
async def test_senseless_length_is_refused(port: Port, length: bytes, world: Installation) -> None:
    answer = await talk(port, post(JSON + b"Content-Length: " + length + b"\r\n", b'{"task":"t"}'))
    assert status(answer) in (0, 400)
    assert world.log.sent == []
    assert await alive(port)


@pytest.mark.row("R4")
async def test_chunked_body_that_never_ends_is_given_up(port: Port, world: Installation) -> None:
    silent = asyncio.create_task(
        talk(port, post(JSON + b"Transfer-Encoding: chunked\r\n", b'5\r\n{"tas\r\n'))
    )
    assert await alive(port)
    assert status(await silent) == 408
    assert world.log.sent == []


async def test_chunked_body_above_the_limit_is_refused(port: Port, world: Installation) -> None:
    chunk = b"40000\r\n" + b" " * 0x40000 + b"\r\n"
    answer = await talk(port, post(JSON + b"Transfer-Encoding: chunked\r\n"), *[chunk] * 5)
    assert status(answer) in (0, 413)
    assert world.log.sent == []
    assert await alive(port)


async def test_chunked_body_is_taken(port: Port) -> None:
    body = b'c\r\n{"task":"t"}\r\n0\r\n\r\n'
    assert status(await talk(port, post(JSON + b"Transfer-Encoding: chunked\r\n", body))) == 201


@pytest.mark.row("R5")
async def test_length_and_chunked_together_are_refused(port: Port, world: Installation) -> None:
    smuggled = b"GET /livez HTTP/1.1\r\n" + HOST + b"\r\n"
    answer = await talk(
        port, post(JSON + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", b"0\r\n\r\n" + smuggled)
    )
    assert status(answer) in (0, 400)
    assert answer.count(b"HTTP/1.1") <= 1
    assert world.log.sent == []


@pytest.mark.row("R10")
async def test_header_of_200_kilobytes_is_refused(port: Port) -> None:
    answer = await talk(
        port, b"GET /v1/jobs/a HTTP/1.1\r\n" + HOST + KEY + b"X-A: " + b"a" * 200_000 + b"\r\n\r\n"
    )
    assert status(answer) in (0, 400, 431)
    assert await alive(port)


@pytest.mark.row("R11")
async def test_target_of_64_kilobytes_is_refused(port: Port) -> None:
    answer = await talk(
        port, b"GET /v1/jobs/a?tag=" + b"a" * 65_536 + b" HTTP/1.1\r\n" + HOST + KEY + b"\r\n"
    )
    assert status(answer) in (0, 400, 414)
    assert await alive(port)


@pytest.mark.row("R12")
async def test_body_of_a_get_is_ignored(port: Port) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port.number)
    for _ in range(2):
        writer.write(
            b"GET /v1/jobs/a HTTP/1.1\r\n" + HOST + KEY + b"Content-Length: 11\r\n\r\n" + b'{"limit":1}'
        )
        head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 5)
        assert status(head) == 404
        length = next(
            int(line.split(b":")[1])
            for line in head.split(b"\r\n")
            if line.lower().startswith(b"content-length")
        )
        await reader.readexactly(length)
    writer.close()


async def test_caller_who_leaves_in_the_middle_does_no_harm(
    port: Port, world: Installation, capfd: pytest.CaptureFixture[str]
) -> None:
    _, writer = await asyncio.open_connection("127.0.0.1", port.number)
    writer.write(post(JSON + b"Content-Length: 100\r\n", b"{"))
    await writer.drain()
    writer.close()
    await writer.wait_closed()
    assert await alive(port)
    assert world.log.sent == []
    assert "request failed" not in "".join(capfd.readouterr())


@pytest.mark.row("R6")
async def test_compressed_bomb_is_not_expanded(port: Port, world: Installation) -> None:
    headers = JSON + b"Content-Encoding: gzip\r\nContent-Length: 97000\r\n"
    assert status(await talk(port, post(headers, b"\x1f\x8b" + b"\0" * 96_998))) == 415
    assert world.log.sent == []


@pytest.mark.row("R9")
async def test_form_with_a_million_fields_is_not_parsed(port: Port, world: Installation) -> None:
    headers = b"Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 1000000\r\n"
    assert status(await talk(port, post(headers, b"a=1&" * 250_000))) in (0, 415)
    assert world.log.sent == []
    assert await alive(port)


@pytest.mark.row("A17")
async def test_token_of_ten_megabytes_is_refused(port: Port, world: Installation) -> None:
    token = b"Authorization: Bearer " + b"a" * 10_000_000 + b"\r\n"
    answer = await talk(port, b"POST /v1/jobs HTTP/1.1\r\n" + HOST + token + JSON + b"\r\n")
    assert status(answer) in (0, 400, 401, 431)
    assert world.log.sent == []
    assert await alive(port)


@pytest.mark.row("D28")
async def test_idempotency_key_of_a_megabyte_is_refused(port: Port, world: Installation) -> None:
    key = b"Idempotency-Key: " + b"a" * 1_000_000 + b"\r\nContent-Length: 12\r\n"
    assert status(await talk(port, post(JSON + key, b'{"task":"t"}'))) in (0, 400, 431)
    assert world.log.sent == []
    assert await alive(port)


async def test_bytes_that_are_no_http_are_a_problem_too(port: Port) -> None:
    answer = await talk(port, b"\x16\x03\x01\x02\x00 hello\r\n\r\n")
    head, _, body = answer.partition(b"\r\n\r\n")
    assert status(answer) == 400
    assert b"application/problem+json" in head
    assert b'"code":"malformed"' in body
    assert await alive(port)
