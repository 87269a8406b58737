"""One post to one target: its name is resolved once, every address is checked, and the checked address is connected to.

No redirect is followed, nothing of the answer but its status is read, and all of it has one time limit.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import ssl
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple

import httpcore

from api.notifier.addresses import Address, Rules
from minutebook.domain.notify import Target

Resolve = Callable[[str, int], Awaitable[list[Address]]]
_GONE: Final = 410


class Outcome(NamedTuple):
    """What became of a post. `reason` empty: the target has taken it; else why not, and whether a repeat is senseless."""

    reason: str = ""
    is_final: bool = False


class RefusedTargetError(Exception):
    """The target leads where nothing may be called."""


async def resolve(host: str, port: int) -> list[Address]:
    """Addresses of a host, by the system. Raises OSError."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [ipaddress.ip_address(place[0]) for *_, place in found]


class CheckedBackend(httpcore.AsyncNetworkBackend):
    """The connection of one post, to an address that `rules` let pass; its name is resolved once."""

    def __init__(self, rules: Rules, resolve: Resolve, network: httpcore.AsyncNetworkBackend) -> None:
        self._rules = rules
        self._resolve = resolve
        self._network = network
        self._opened: list[httpcore.AsyncNetworkStream] = []

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """A connection to the first address that takes it. Raises RefusedTargetError, httpcore.ConnectError, OSError."""
        addresses = await self._resolve(host, port)
        refusal = self._rules.refusal(addresses, port)
        if refusal:
            raise RefusedTargetError(f"the target {refusal}")
        failed: Exception = httpcore.ConnectError("no address")
        for address in addresses:
            try:
                stream = await self._network.connect_tcp(str(address), port, timeout, local_address)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failed = error
            else:
                self._opened.append(stream)
                return stream
        raise failed

    async def close(self) -> None:
        """Close what is open: a post that is cut short in the middle of its handshake leaves its connection behind."""
        for stream in self._opened:
            await stream.aclose()


class Poster:
    """Posts to targets by `rules`, each within `timeout_s`."""

    def __init__(
        self,
        rules: Rules,
        timeout_s: float,
        resolve: Resolve = resolve,
        network: httpcore.AsyncNetworkBackend | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._rules = rules
        self._timeout_s = timeout_s
        self._resolve = resolve
        self._network = network or httpcore.AnyIOBackend()
        self.tls = tls or ssl.create_default_context()

    async def post(self, target: Target, headers: Mapping[str, str], body: bytes) -> Outcome:
        """Post `body`. Raises nothing that a target could cause."""
        refusal = self._rules.refusal_of_url(target)
        if refusal:
            return Outcome(f"the target {refusal}", is_final=True)
        try:
            async with asyncio.timeout(self._timeout_s):
                status = await self._status(target, headers, body)
        except RefusedTargetError as error:
            return Outcome(str(error), is_final=True)
        except TimeoutError:
            return Outcome(f"no answer within {self._timeout_s:g} s")
        except (
            httpcore.NetworkError,
            httpcore.ProtocolError,
            httpcore.TimeoutException,
            OSError,
            ValueError,
        ) as error:
            return Outcome(f"{type(error).__name__}: {error}"[:200])
        return _outcome(status)

    async def _status(self, target: Target, headers: Mapping[str, str], body: bytes) -> int:
        url = httpcore.URL(
            scheme=target.scheme.encode(),
            host=target.host.encode(),
            port=target.port,
            target=target.path.encode(),
        )
        sent = {
            "host": target.authority,
            "connection": "close",
            "content-type": "application/json",
            **headers,
        }
        # A connection for each post: nothing of one target is left to the next.
        backend = CheckedBackend(self._rules, self._resolve, self._network)
        pool = httpcore.AsyncConnectionPool(self.tls, max_connections=1, network_backend=backend)
        try:
            async with pool, pool.stream("POST", url, headers=list(sent.items()), content=body) as answer:
                return int(answer.status)
        finally:
            await backend.close()


def _outcome(status: int) -> Outcome:
    if 200 <= status < 300:
        return Outcome()
    if 300 <= status < 400:
        return Outcome(f"status {status}: redirects are not followed", is_final=True)
    return Outcome(f"status {status}", is_final=status == _GONE)
