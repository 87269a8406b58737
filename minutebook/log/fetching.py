"""How long a broker may hold a fetch, decided fetch by fetch: aiokafka 0.14 has one wait for all.

It has one fetch under way a node. A partition whose last records were not yet taken is not in it, and would wait out the
silence of the others: such a fetch must not wait long. One that asks for every partition may: whatever comes ends it.
"""

from __future__ import annotations

from typing import Any, Final

from aiokafka import AIOKafkaConsumer

WHOLE_WAIT_MS: Final = 500
"""How long a fetch waits that asks for every partition."""


def wait_longer_for_all(consumer: AIOKafkaConsumer) -> None:
    """From now on a fetch of `consumer`, which was started, waits `WHOLE_WAIT_MS` where nothing fetched before is left to take,
    else as long as the consumer was set to.
    """
    fetcher: Any = consumer._fetcher
    actions, part_wait_ms = fetcher._get_actions_per_node, fetcher._fetch_max_wait_ms

    def actions_per_node(assignment: Any) -> Any:
        fetcher._fetch_max_wait_ms = part_wait_ms if fetcher._records else WHOLE_WAIT_MS
        return actions(assignment)

    fetcher._get_actions_per_node = actions_per_node
