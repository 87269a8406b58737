"""What is wrong with a cluster: judged from facts, each finding with its remedy."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from kafka.errors import KafkaError

from minutebook.cli.checks import Check
from minutebook.clock import SystemClock
from minutebook.log import admin
from minutebook.log.admin import Finding, TopicSettings
from minutebook.log.settings import KafkaSettings
from minutebook.log.survey import Broker, ClockReading, Group, Partition, Survey, surveying
from minutebook.mint import mint_id
from minutebook.wire.schemas import by_header

_OLDEST: Final = (4, 0)
"""With nothing older it was ever tried."""
_CLOCK_BOUND_MS: Final = 1_000
"""Off the broker by more, owners stop deciding (`MINUTEBOOK_STREAMS_CLOCK_BOUND_MS`)."""
_LAG_WARN: Final = 1_000
_LAG_FAIL: Final = 100_000


def kafka_checks(kafka: KafkaSettings, topics: TopicSettings, group: str) -> Iterator[Check]:
    """Every check of the cluster; one alone where no broker answers."""
    try:
        with surveying(kafka) as survey:
            yield from _checks(survey, kafka, topics, group)
    except KafkaError as error:
        remedy = "start Kafka, and see to MINUTEBOOK_KAFKA_BOOTSTRAP_SERVERS and the credentials"
        found = f"no answer at {kafka.bootstrap_servers} ({type(error).__name__})"
        yield Check("broker", "fail", found, remedy)


def _checks(survey: Survey, kafka: KafkaSettings, topics: TopicSettings, group: str) -> Iterator[Check]:
    share_starts = survey.share_starts()
    yield from judge_broker(survey.broker(), has_open_queues=bool(share_starts))
    yield from judge_topics(admin.check(kafka, topics.partitions, topics.inbox_partitions))
    yield from judge_replicas(survey.partitions())
    yield from judge_share_starts(share_starts)
    yield from _guarded("owners", lambda: judge_group(group, survey.group(group)))
    yield from _guarded("schemas", lambda: judge_schemas(survey.last_headers(), set(by_header())))
    yield from _guarded("clock", lambda: judge_clock(survey.clock(SystemClock(), f"doctor-{mint_id()}")))


def _guarded(name: str, checks: Callable[[], Iterable[Check]]) -> Iterable[Check]:
    """The checks; a warning where the cluster does not let them be made."""
    try:
        return list(checks())
    except KafkaError as error:
        found = f"could not be checked: {type(error).__name__}: {error}"
        return [Check(name, "warn", found, "give this user the rights to describe, read, create and delete")]


def judge_broker(broker: Broker, *, has_open_queues: bool) -> Iterator[Check]:
    """The version, and the features that open queues need."""
    version = ".".join(map(str, broker.version))
    found = f"Kafka {version}, {broker.brokers} broker{'s' if broker.brokers > 1 else ''}"
    if broker.version < _OLDEST:
        oldest = ".".join(map(str, _OLDEST))
        yield Check("broker", "fail", found, f"upgrade to Kafka {oldest} or newer")
    else:
        yield Check("broker", "ok", found)
    if has_open_queues and not broker.features.get("share.version"):
        remedy = "run `kafka-features.sh upgrade --feature share.version=1`, or use classic groups alone"
        yield Check("features", "warn", "open queues, but share groups are off", remedy)
    else:
        told = ", ".join(f"{name} {level}" for name, level in sorted(broker.features.items()))
        yield Check("features", "ok", told or "none told")


def judge_topics(findings: list[Finding]) -> Iterator[Check]:
    """Topics as they must be made."""
    if not findings:
        yield Check("topics", "ok", "all as declared")
    for one in findings:
        found = f"{one.topic}: {one.setting} is {one.found}, wanted {one.wanted}"
        yield Check("topics", "fail", found, one.remedy)


def judge_replicas(partitions: list[Partition]) -> Iterator[Check]:
    """Whether every partition has a leader, and all replicas in sync."""
    leaderless = [f"{one.topic}-{one.partition}" for one in partitions if not one.has_leader]
    behind = [f"{one.topic}-{one.partition}" for one in partitions if one.in_sync < one.replicas]
    if leaderless:
        yield Check("replicas", "fail", f"no leader: {_some(leaderless)}", "start the brokers that hold them")
    elif behind:
        remedy = "see to the brokers that are away: another loss may stop all writes"
        yield Check("replicas", "warn", f"replicas are behind: {_some(behind)}", remedy)
    else:
        yield Check("replicas", "ok", f"{len(partitions)} partitions, all in sync")


def judge_share_starts(starts: Mapping[str, str]) -> Iterator[Check]:
    """Whether the share group of each open queue starts at the oldest record, or it would pass over the first ones."""
    for name, start in sorted(starts.items()):
        if start != "earliest":
            remedy = (
                f"run `kafka-configs.sh --alter --entity-type groups --entity-name {name} "
                "--add-config share.auto.offset.reset=earliest`"
            )
            yield Check(
                "groups", "warn", f"share group {name} starts at {start or 'the latest record'}", remedy
            )
    if starts and all(start == "earliest" for start in starts.values()):
        yield Check("groups", "ok", f"{len(starts)} share groups start at the oldest record")


def judge_group(name: str, group: Group) -> Iterator[Check]:
    """Whether owners run, and how far they are behind."""
    if not group.members:
        remedy = "start `python -m streams`, and see to MINUTEBOOK_STREAMS_GROUP"
        yield Check("owners", "fail", f"group {name} has no member", remedy)
    else:
        yield Check("owners", "ok", f"group {name}, {group.members} members")
    worst = max(group.lag.values(), default=0)
    told = ", ".join(f"{topic} {count}" for topic, count in group.lag.items())
    if worst < _LAG_WARN:
        yield Check("lag", "ok", f"records not committed: {told}")
    else:
        remedy = "see to the owners' logs, and to their `/readyz`; add owners where they are merely busy"
        yield Check("lag", "fail" if worst >= _LAG_FAIL else "warn", f"records not committed: {told}", remedy)


def judge_schemas(heads: Mapping[str, bytes], known: set[bytes]) -> Iterator[Check]:
    """Whether this version can read what was written last in each partition."""
    strange = [f"{place} ({head.hex()})" for place, head in sorted(heads.items()) if head not in known]
    if strange:
        remedy = (
            "a newer version, or a foreign producer, writes there: upgrade this installation, readers first"
        )
        yield Check("schemas", "fail", f"unknown schemas: {_some(strange)}", remedy)
    else:
        yield Check(
            "schemas", "ok", f"{len(known)} known; the last records of {len(heads)} partitions have them"
        )


def judge_clock(reading: ClockReading) -> Iterator[Check]:
    """How far this machine's clock is from the broker's."""
    off_ms = abs(reading.ahead_ms)
    side = "ahead of" if reading.ahead_ms >= 0 else "behind"
    found = f"{off_ms} ms {side} the broker's, give or take {reading.uncertain_ms}"
    remedy = "set both machines' clocks by NTP: owners stop deciding at 1 s"
    if off_ms - reading.uncertain_ms > _CLOCK_BOUND_MS:
        yield Check("clock", "fail", found, remedy)
    elif off_ms + reading.uncertain_ms > _CLOCK_BOUND_MS // 2:
        yield Check("clock", "warn", found, remedy)
    else:
        yield Check("clock", "ok", found)


def _some(names: list[str]) -> str:
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return ", ".join(names[:5]) + more
