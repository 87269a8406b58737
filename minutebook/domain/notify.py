"""Where a job's alerts may go: what its `notify` must look like. Whether that address may be called is the notifier's to say."""

from __future__ import annotations

import ipaddress
import re
from typing import Final, NamedTuple
from urllib.parse import urlsplit

URL_CHARS_MAX: Final = 2_048
HOST_CHARS_MAX: Final = 253

_VISIBLE = re.compile(r"[\x21-\x7e]+\Z")
_LABEL = r"[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9])?"
_NAME = re.compile(rf"(?:{_LABEL}\.)*[A-Za-z](?:[A-Za-z0-9-]{{0,61}}[A-Za-z0-9])?\.?\Z")
"""A name's last label begins with a letter: what ends in a number is an address, however it is spelled."""
_PORTS: Final = {"https": 443, "http": 80}


class Target(NamedTuple):
    """A URL that was read: where to connect to, and what to ask for there."""

    url: str
    scheme: str
    host: str
    port: int
    path: str

    @property
    def authority(self) -> str:
        """Host and port as they stand in a URL."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"


class TargetFault(ValueError):
    """The URL cannot be a target; the text is the remedy."""


def read_target(url: str) -> Target:
    """The target in `url`: http or https, a name or an address as it is usually written, no user name. Raises TargetFault."""
    # Before it is parsed: urlsplit drops newlines and tabs in silence.
    if not _VISIBLE.match(url) or len(url) > URL_CHARS_MAX:
        raise TargetFault(f"must be a URL of 1-{URL_CHARS_MAX} visible ASCII characters")
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError as error:
        raise TargetFault("must have a host and a port from 1 to 65535") from error
    if parts.scheme not in _PORTS:
        raise TargetFault("must begin with https://")
    if "@" in parts.netloc or "\\" in url:
        raise TargetFault("must have no user name, password or backslash")
    if port == 0 or not _is_host(host):
        raise TargetFault("must name a host: a DNS name, or an IP address as it is usually written")
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return Target(url, parts.scheme, host, port or _PORTS[parts.scheme], path)


def _is_host(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return len(host) <= HOST_CHARS_MAX and _NAME.match(host) is not None
    return "%" not in host


def fault(url: str) -> str:
    """Why `url` cannot be a job's `notify`, with the remedy; empty if it can."""
    try:
        read_target(url)
    except TargetFault as refused:
        return str(refused)
    return ""
