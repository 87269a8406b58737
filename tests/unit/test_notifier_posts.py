"""Posts to a server in this process: the address that was checked is the one that is called, and only its status counts."""

from __future__ import annotations

import asyncio
import ipaddress
import ssl
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import httpcore
import pytest

from api.notifier.addresses import Address, Rules
from api.notifier.post import Outcome, Poster, resolve
from minutebook.domain.notify import read_target

LOOPBACK = [ipaddress.ip_network("127.0.0.0/8"), ipaddress.ip_network("::1/128")]
OPEN = Rules(allows_http=True, networks=LOOPBACK)
CLOSED = Rules(allows_http=True)
OK = b"HTTP/1.1 204 No Content\r\n\r\n"


class Server:
    """Answers every request with the same bytes, and keeps what it was sent."""

    def __init__(self, answer: bytes, *, is_silent: bool = False) -> None:
        self.requests: list[bytes] = []
        self.port = 0
        self.tasks: list[asyncio.Task[None]] = []
        self.is_first_to_speak = False
        self._answer = answer
        self._is_silent = is_silent

    def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.tasks.append(asyncio.ensure_future(self._converse(reader, writer)))

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await self._serve(reader, writer)
        except (OSError, EOFError):
            pass  # the other side has gone
        finally:
            writer.close()
            await asyncio.gather(writer.wait_closed(), return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.is_first_to_speak:
            writer.write(self._answer)
        head = await reader.readuntil(b"\r\n\r\n")
        length = next(
            int(line.split(b":")[1])
            for line in head.lower().split(b"\r\n")
            if line.startswith(b"content-length")
        )
        self.requests.append(head + await reader.readexactly(length))
        if self._is_silent:
            await reader.read()
            return
        writer.write(self._answer)
        if self._answer:
            await reader.read()


@asynccontextmanager
async def served(answer: bytes = OK, host: str = "127.0.0.1", **how: Any) -> AsyncIterator[Server]:
    server = Server(answer, **how)
    listening = await asyncio.start_server(server.accept, host, 0)
    server.port = listening.sockets[0].getsockname()[1]
    try:
        yield server
    finally:
        listening.close()
        await listening.wait_closed()
        await asyncio.gather(*server.tasks)


class Names:
    """A resolver that answers each question with the next of its answers, the last one for ever."""

    def __init__(self, *answers: Sequence[str]) -> None:
        self._answers = list(answers)
        self.asked: list[tuple[str, int]] = []

    async def __call__(self, host: str, port: int) -> list[Address]:
        self.asked.append((host, port))
        found = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        return [ipaddress.ip_address(text) for text in found]


class Network(httpcore.AnyIOBackend):
    """Notes what is connected to; nothing is."""

    def __init__(self) -> None:
        self.called: list[str] = []

    async def connect_tcp(self, host: str, *arguments: Any, **more: Any) -> Any:
        self.called.append(host)
        raise httpcore.ConnectError("nobody there")


async def post(url: str, rules: Rules = OPEN, names: Names | None = None, **more: Any) -> Outcome:
    poster = Poster(rules, more.pop("timeout_s", 5.0), names or Names(["127.0.0.1"]), **more)
    return await poster.post(read_target(url), {"webhook-id": "x"}, b'{"a":1}')


async def test_post_reaches_the_server_by_the_name_that_was_given() -> None:
    async with served() as server:
        names = Names(["127.0.0.1"])
        outcome = await post(f"http://hooks.example:{server.port}/in?k=v#part", names=names)
    assert outcome == Outcome()
    assert names.asked == [("hooks.example", server.port)], "once"
    head, _, body = server.requests[0].partition(b"\r\n\r\n")
    first, *lines = head.split(b"\r\n")
    assert (first, body) == (b"POST /in?k=v HTTP/1.1", b'{"a":1}')
    assert {line.lower() for line in lines} >= {
        b"host: hooks.example:%d" % server.port,
        b"content-type: application/json",
        b"webhook-id: x",
        b"content-length: 7",
    }


async def test_address_of_either_kind_can_be_named() -> None:
    for host, url in (("127.0.0.1", "http://127.0.0.1"), ("::1", "http://[::1]")):
        async with served(host=host) as server:
            poster = Poster(OPEN, 5.0)  # with the system's own names
            outcome = await poster.post(read_target(f"{url}:{server.port}/"), {}, b"{}")
        assert outcome == Outcome()
        assert b"host: " + url[7:].encode() in server.requests[0].lower()


@pytest.mark.row("U18")
async def test_name_that_changes_is_asked_once_and_only_the_checked_address_is_called() -> None:
    names, network = Names(["8.8.8.8"], ["127.0.0.1"]), Network()
    poster = Poster(CLOSED, 5.0, names, network)
    outcome = await poster.post(read_target("http://changes.example/"), {}, b"{}")
    assert (outcome.is_final, network.called) == (False, ["8.8.8.8"])
    assert len(names.asked) == 1
    outcome = await poster.post(read_target("http://changes.example/"), {}, b"{}")
    assert (outcome.is_final, network.called) == (True, ["8.8.8.8"]), "the next time it leads inside"


@pytest.mark.parametrize(
    "addresses",
    [
        ["127.0.0.1"],
        ["8.8.8.8", "127.0.0.1"],
        ["::ffff:127.0.0.1"],
        ["169.254.169.254"],
        ["64:ff9b::7f00:1"],
        [],
    ],
)
async def test_name_that_leads_inside_is_refused_for_good_and_nothing_is_opened(addresses: list[str]) -> None:
    async with served() as server:
        outcome = await post(f"http://hooks.example:{server.port}/", CLOSED_ANY_PORT, Names(addresses))
    assert outcome.is_final
    assert "the target " in outcome.reason
    assert server.requests == []


CLOSED_ANY_PORT = Rules(allows_http=True, networks=[ipaddress.ip_network("10.9.9.9/32")])
"""Opens a network that nobody here is in, so that the address alone decides."""


async def test_port_is_refused_before_the_name_is_asked() -> None:
    names = Names(["8.8.8.8"])
    outcome = await post("http://hooks.example:22/", CLOSED, names)
    assert (outcome.is_final, names.asked) == (True, [])


async def test_other_addresses_are_tried_when_the_first_takes_nothing() -> None:
    async with served() as server:
        outcome = await post(f"http://hooks.example:{server.port}/", names=Names(["127.9.9.9", "127.0.0.1"]))
    assert (outcome, len(server.requests)) == (Outcome(), 1)


@pytest.mark.row("U19")
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_redirect_is_not_followed(status: int) -> None:
    async with served() as elsewhere:
        answer = f"HTTP/1.1 {status} Go\r\nLocation: http://127.0.0.1:{elsewhere.port}/\r\n\r\n".encode()
        async with served(answer) as server:
            outcome = await post(f"http://hooks.example:{server.port}/")
    assert outcome == Outcome(f"status {status}: redirects are not followed", is_final=True)
    assert (len(server.requests), elsewhere.requests) == (1, [])


@pytest.mark.parametrize(
    ("status", "outcome"),
    [
        (200, Outcome()),
        (299, Outcome()),
        (400, Outcome("status 400")),
        (410, Outcome("status 410", is_final=True)),
        (429, Outcome("status 429")),
        (500, Outcome("status 500")),
    ],
)
async def test_status_alone_decides(status: int, outcome: Outcome) -> None:
    async with served(b"HTTP/1.1 %d x\r\nContent-Length: 2\r\n\r\nno" % status) as server:
        assert await post(f"http://hooks.example:{server.port}/") == outcome


async def test_answer_without_end_is_not_read() -> None:
    endless = b"HTTP/1.1 200 OK\r\nContent-Length: 100000000000\r\n\r\n" + b"x" * (1 << 20)
    async with served(endless) as server:
        assert await post(f"http://hooks.example:{server.port}/") == Outcome()


async def test_server_that_says_nothing_is_left_after_the_time_limit() -> None:
    async with served(is_silent=True) as server:
        outcome = await post(f"http://hooks.example:{server.port}/", timeout_s=0.2)
        assert outcome == Outcome("no answer within 0.2 s")


async def test_resolver_that_hangs_is_left_after_the_time_limit() -> None:
    async def hang(host: str, port: int) -> list[Address]:
        await asyncio.Event().wait()
        return []

    outcome = await Poster(OPEN, 0.05, hang).post(read_target("http://hooks.example/"), {}, b"{}")
    assert outcome == Outcome("no answer within 0.05 s")


@pytest.mark.parametrize("answer", [b"nonsense\r\n\r\n", b"", b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * 100_000])
async def test_nonsense_is_a_failure_that_may_pass(answer: bytes) -> None:
    async with served(answer) as server:
        outcome = await post(f"http://hooks.example:{server.port}/", timeout_s=2.0)
    assert outcome.reason
    assert not outcome.is_final


@pytest.mark.parametrize("error", [OSError("not known"), UnicodeError("label too long")])
async def test_name_that_cannot_be_resolved_is_a_failure_that_may_pass(error: Exception) -> None:
    async def unknown(host: str, port: int) -> list[Address]:
        raise error

    outcome = await Poster(OPEN, 5.0, unknown).post(read_target("http://hooks.example/"), {}, b"{}")
    assert outcome == Outcome(f"{type(error).__name__}: {error}")


async def test_server_that_speaks_no_tls_gets_nothing() -> None:
    async with served() as server:
        server.is_first_to_speak = True
        outcome = await post(f"https://hooks.example:{server.port}/")
    assert (outcome.reason[:12], outcome.is_final, server.requests) == ("ConnectError", False, [])


async def test_handshake_that_never_ends_leaves_no_connection() -> None:
    async with served(is_silent=True) as server:
        outcome = await post(f"https://hooks.example:{server.port}/", timeout_s=0.2)
        assert outcome == Outcome("no answer within 0.2 s")
        await asyncio.gather(*server.tasks)  # it sees that the other side has gone


def test_certificates_are_checked() -> None:
    tls = Poster(CLOSED, 1.0).tls
    assert tls.check_hostname
    assert tls.verify_mode is ssl.CERT_REQUIRED


async def test_system_resolves_names_to_addresses() -> None:
    assert ipaddress.ip_address("127.0.0.1") in await resolve("127.0.0.1", 80)
    assert await resolve("2130706433", 80) == [ipaddress.ip_address("127.0.0.1")], "as any client would"
