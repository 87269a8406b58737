"""What can go wrong with the embedded broker; each message names its remedy.

MinutebookError
└── EmbeddedError
    ├── JarFetchError        a pinned file could not be downloaded
    ├── JarDamagedError      a file differs from its pinned checksum: it is not run
    ├── BrokerRunningError   another process runs a broker on this data folder
    ├── PortTakenError       the port asked for is in use
    ├── BrokerStartError     the broker ended, or did not answer in time
    └── ServiceStartError    an owner, the API or a worker ended, or was not ready in time
"""

from __future__ import annotations

from minutebook.errors import MinutebookError


class EmbeddedError(MinutebookError):
    """The embedded broker cannot be had."""


class JarFetchError(EmbeddedError):
    """A pinned file could not be downloaded."""


class JarDamagedError(EmbeddedError):
    """A file differs from its pinned checksum."""


class BrokerRunningError(EmbeddedError):
    """Another process runs a broker on this data folder."""


class PortTakenError(EmbeddedError):
    """The port asked for is in use."""


class BrokerStartError(EmbeddedError):
    """The broker ended, or did not answer in time."""


class ServiceStartError(EmbeddedError):
    """An owner, the API or a worker ended, or was not ready in time."""
