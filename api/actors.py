"""Who stands behind a command, as it is on record: `key:<key id> via <surface> from <address>`.

Everything in it is of a known alphabet and length: the id is a name, the surface one of five words, the address as
`ipaddress` writes it.
"""

from __future__ import annotations

import re
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Final, Literal, NamedTuple

from fastapi import Request

Surface = Literal["api", "cli", "page", "sdk", "worker"]
Network = IPv4Network | IPv6Network

_PRODUCTS: Final[dict[str, Surface]] = {
    "minutebook-python": "sdk",
    "minutebook-cli": "cli",
    "minutebook-worker": "worker",
}
"""First product of the `User-Agent` -> surface; whoever sends another one uses the API itself."""
_UNKNOWN: Final = "unknown"
_ACTOR: Final = re.compile(
    r"key:([A-Za-z0-9._-]{1,128})(?: via (api|cli|page|sdk|worker))?(?: from ([0-9a-f.:]{2,45}|unknown))?"
    r"(?: by operation ([A-Za-z0-9._-]{1,128}))?"
)


class ActorParts(NamedTuple):
    """What an actor says; None for a part that it does not have: producers may claim any actor."""

    key: str | None
    via: str | None
    address: str | None
    operation: str | None = None
    """The operation that did it, of which this one wanted the whole."""


def actor_of(
    request: Request, key: str, trusted: tuple[Network, ...] = (), via: Surface | None = None
) -> str:
    """The actor of a request that came with the key of that id. `via` None = as its `User-Agent` says.

    `trusted`: networks of proxies, whose `X-Forwarded-For` is believed.
    """
    return f"key:{key} via {via or _surface_of(request)} from {_address_of(request, trusted)}"


def parts_of(actor: str) -> ActorParts:
    """The parts of an actor on record."""
    found = _ACTOR.fullmatch(actor)
    return ActorParts(None, None, None) if found is None else ActorParts(*found.groups())


def _surface_of(request: Request) -> Surface:
    product = request.headers.get("user-agent", "").partition("/")[0]
    return _PRODUCTS.get(product, "api")


def _address_of(request: Request, trusted: tuple[Network, ...]) -> str:
    """Where the connection comes from, or the last hop before it where that is a proxy that is trusted."""
    peer = _parsed(request.client.host if request.client is not None else "")
    if peer is None:
        return _UNKNOWN
    if any(peer in network for network in trusted):
        hops = ",".join(request.headers.getlist("x-forwarded-for")).split(",")
        peer = _parsed(hops[-1].strip()) or peer
    return str(peer)


@lru_cache(maxsize=1024)
def _parsed(text: str) -> IPv4Address | IPv6Address | None:
    """The address in a text, without a scope and not as one of version 4 in one of version 6; None for none."""
    try:
        found = ip_address(text)
    except ValueError:
        return None
    if isinstance(found, IPv6Address):
        return found.ipv4_mapped or IPv6Address(found.packed)
    return found
