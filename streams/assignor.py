"""Who owns what: a fair share of the partitions for everybody in the group, and as few moves as that takes.

Faust's own assignor lets whoever came first keep what is not over-full: of 64 partitions a ninth owner would get one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from itertools import chain
from typing import Any

from faust.assignor.client_assignment import ClientAssignment
from faust.assignor.partition_assignor import PartitionAssignor


def fair_shares(held: Mapping[str, set[int]], partitions: int) -> dict[str, set[int]]:
    """Partitions `0..partitions-1`, each to one member; shares differ by one at most.

    `held` is what each member says that it had before. Nobody gives up more than is beyond its new share, but for what
    two say that they had: one of them has been away, and it goes to whoever has least.
    """
    claims = Counter(chain.from_iterable(held.values()))
    own = {name: {one for one in had if claims[one] == 1 and one < partitions} for name, had in held.items()}
    least, more = divmod(partitions, len(held))
    fullest_first = sorted(own, key=lambda name: (-len(own[name]), name))
    shares = {
        name: set(sorted(own[name])[: least + (place < more)]) for place, name in enumerate(fullest_first)
    }
    for partition in sorted(set(range(partitions)).difference(*shares.values())):
        emptiest = min(shares, key=lambda name: (len(shares[name]), name))
        shares[emptiest].add(partition)
    return shares


class FairAssignor(PartitionAssignor):
    """Faust's assignor with `fair_shares` of the input topics, which have equally many partitions."""

    def _perform_assignment(self, cluster: Any, member_metadata: Any) -> Any:
        clients = {member: self._get_client_metadata(told) for member, told in member_metadata.items()}
        self._update_member_urls(clients)
        topics = sorted({topic for told in member_metadata.values() for topic in told.subscription})
        partitions = min(len(cluster.partitions_for_topic(topic) or ()) for topic in topics)
        held = {
            member: set().union(*client.assignment.actives.values()) for member, client in clients.items()
        }
        assignments = {
            member: ClientAssignment(actives={topic: sorted(share) for topic in topics}, standbys={})
            for member, share in fair_shares(held, partitions).items()
        }
        everywhere = self._get_external_topic_distribution(assignments)
        return self._protocol_assignments(assignments, {}, everywhere, dict.fromkeys(topics, 0))
