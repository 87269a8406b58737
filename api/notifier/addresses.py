"""Which addresses may be called: public ones, on ports of the web; others only where a setting names their network.

`is_global` of the standard library lets some pass that lead inside, so what is public is said here.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from typing import Final

from minutebook.domain.notify import Target

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

_PORTS: Final = frozenset({80, 443, *range(8_000, 9_000)})
_NOT_PUBLIC: Final = tuple(
    map(
        ipaddress.ip_network,
        (
            "192.0.0.0/24",  # IETF protocol assignments, some of them global by the registry
            "192.88.99.0/24",  # 6to4 relays
            "168.63.129.16/32",  # metadata of a cloud, at a public address
            "64:ff9b::/96",  # NAT64: an IPv4 address inside
            "64:ff9b:1::/48",
            "2001::/32",  # Teredo: an IPv4 address inside
            "2002::/16",  # 6to4: an IPv4 address inside
            "3fff::/20",  # documentation
        ),
    )
)
_UNICAST: Final = ipaddress.ip_network("2000::/3")
"""All that is global in IPv6."""


class Rules:
    """What may be called. `networks`: those that may be although they are not public, on any port."""

    def __init__(self, *, allows_http: bool = False, networks: Sequence[Network] = ()) -> None:
        self._allows_http = allows_http
        self._networks = networks

    def refusal_of_url(self, target: Target) -> str:
        """Why the URL cannot be called, with the remedy, as far as it can be told before its name is resolved; or empty."""
        if target.scheme != "https" and not self._allows_http:
            return "must begin with https://"
        try:
            literal = [ipaddress.ip_address(target.host)]
        except ValueError:
            # With networks of one's own in play, only the address tells which ports are right.
            return "" if self._networks else self._refusal_of_port(target.port)
        return self.refusal(literal, target.port)

    def refusal(self, addresses: Sequence[Address], port: int) -> str:
        """Why a host with these addresses cannot be called on that port; empty if it can. One bad address is enough."""
        if not addresses:
            return "has no address"
        ours = [address for address in addresses if self._is_named(address)]
        for address in addresses:
            if address not in ours and not is_public(address):
                return "must lead to a public address"
        return "" if len(ours) == len(addresses) else self._refusal_of_port(port)

    def _refusal_of_port(self, port: int) -> str:
        return "" if port in _PORTS else "must have port 80, 443 or one from 8000 to 8999"

    def _is_named(self, address: Address) -> bool:
        plain = _unwrapped(address)
        return any(plain in network for network in self._networks)


def is_public(address: Address) -> bool:
    """Whether the address is somebody's on the open internet, and no way around into a network that is not."""
    plain = _unwrapped(address)
    if not plain.is_global or plain.is_multicast or plain.is_reserved:
        return False
    if isinstance(plain, IPv6Address) and plain not in _UNICAST:
        return False
    return not any(plain in network for network in _NOT_PUBLIC)


def _unwrapped(address: Address) -> Address:
    """The IPv4 address that an IPv6 one stands for."""
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return address if mapped is None else mapped
