"""A real Apache Kafka broker, one node, for `minutebook dev`, the demo and the tests. Never for production.

`jars` owns the pinned files, `broker` the running process.
"""

from __future__ import annotations

from minutebook.embedded.broker import Broker
from minutebook.embedded.errors import (
    BrokerRunningError,
    BrokerStartError,
    EmbeddedError,
    JarDamagedError,
    JarFetchError,
    PortTakenError,
)

__all__ = [
    "Broker",
    "BrokerRunningError",
    "BrokerStartError",
    "EmbeddedError",
    "JarDamagedError",
    "JarFetchError",
    "PortTakenError",
]
