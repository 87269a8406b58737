"""Open queues under test: a queue with its due topic, consumers as processes, and what the judge adds for them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Final

from minutebook.domain import events as facts
from minutebook.domain.commands import DeclareQueue
from minutebook.domain.records import DueRecord, Inbox, Report
from minutebook.errors import DecodeError
from minutebook.log import admin
from minutebook.log.admin import TopicSettings
from minutebook.mint import mint_id
from minutebook.wire import codec, topics
from tests.crash.checker import verdict
from tests.crash.joblog import JobLog, read_whole, whole_log
from tests.crash.ledger import Ledger
from tests.crash.process import Process
from tests.crash.stack import Stack, now_ms
from tests.crash.tasks import FOLDER

QUEUE: Final = "mail"
TOPIC_SETTINGS: Final = TopicSettings(replication=1)


def declare(stack: Stack, queue: str = QUEUE, *, has_topic: bool = True) -> None:
    """An open queue that every partition knows."""
    if has_topic:
        admin.create_due(stack.kafka, TOPIC_SETTINGS, queue)
    stack.send(DeclareQueue(name=queue, command_id=mint_id(), issued_at=now_ms(), is_open=True))
    stack.until(
        f"{queue} known everywhere",
        lambda log: (
            {fact.partition for fact in log.of(facts.QueueCopied) if fact.event.name == queue}
            == set(range(stack.partitions))
        ),
    )


def consumer(
    stack: Stack, name: str, kind: str, step: str = "never", nth: int = 1, *, slots: int = 5
) -> Process:
    """A reference consumer that runs what it claims, and dies at the `nth` time of `step`."""
    arguments = ("-m", "tests.crash.open_consumer", kind, step, str(nth), QUEUE)
    own = (
        "--bootstrap-servers",
        stack.kafka.bootstrap_servers,
        "--prefix",
        stack.prefix,
        "--slots",
        str(slots),
    )
    return stack.script(name, (*arguments, *own), {FOLDER: str(stack.folder / "witness")})


def due_records(stack: Stack, queue: str = QUEUE) -> list[DueRecord]:
    """Every due record of a queue, in order of the topic."""
    (records,) = read_whole(stack.kafka, topics.due_topic(queue).name, 1)
    found = [codec.decode(record.value) for record in records]
    assert all(isinstance(one, DueRecord) for one in found)
    return found  # type: ignore[return-value]  # as asserted


def open_verdict(stack: Stack, queue: str = QUEUE) -> list[str]:
    """Every complaint: those of the judge, and what open queues promise beyond."""
    log = whole_log(stack.kafka, stack.partitions)
    ledger = Ledger(log)
    return [
        *verdict(stack),
        *unasked_grants(log, stack, queue),
        *strange_answers(ledger, stack),
        *strange_due_records(log, ledger, due_records(stack, queue)),
    ]


def unasked_grants(log: JobLog, stack: Stack, queue: str) -> Iterator[str]:
    """Grants on the queue that no session asked for by name."""
    asked = claims(stack)
    jobs = {(event.tenant, event.job_id) for event in log.events(facts.JobSubmitted) if event.queue == queue}
    for name, attempt, session in granted(log):
        if (name[0], name[1].rpartition(":")[0]) in jobs and (session, *name, attempt) not in asked:
            yield f"{name[1]}: attempt {attempt} granted to {session}, which never claimed it"


def claims(stack: Stack) -> Counter[tuple[str, str, str, int]]:
    """(session, tenant, execution, attempt) of every claim, and how often it was sent."""
    found: Counter[tuple[str, str, str, int]] = Counter()
    for records in stack.whole(topics.REPORTS):
        for record in records:
            try:
                report = codec.decode(record.value)
            except DecodeError:
                continue
            if isinstance(report, Report):
                found.update(
                    (report.session, one.tenant, one.execution, one.attempt) for one in report.claims
                )
    return found


def granted(log: JobLog) -> Iterator[tuple[tuple[str, str], int, str]]:
    """((tenant, execution), attempt, session) of every grant."""
    for kind in (facts.ExecutionsDueGranted, facts.ExecutionsGranted):
        for event in log.events(kind):
            rows = zip(event.tenant, event.executions, event.attempts, event.session, strict=True)
            for tenant, execution, attempt, session in rows:
                yield (event.tenants[tenant], execution), attempt, event.sessions[session]


def strange_answers(ledger: Ledger, stack: Stack) -> Iterator[str]:
    """Tokens in answers that the log never gave to that session for that attempt."""
    for records in stack.whole(topics.INBOX):
        for record in records:
            inbox = codec.decode(record.value)
            assert isinstance(inbox, Inbox)
            for answer in inbox.answers:
                if answer.token is None:
                    continue
                grant = ledger.grants.get(((answer.tenant, answer.execution), answer.token))
                if grant is None or (grant.session, grant.attempt) != (inbox.session, answer.attempt):
                    yield f"{answer.execution}: answered with token {answer.token}, which is not its own"


def strange_due_records(log: JobLog, ledger: Ledger, records: list[DueRecord]) -> Iterator[str]:
    """Due records of attempts that the log does not know, and more repeats than are allowed.

    A record is due each time that its execution begins to wait; one in a hundred may come again, one a second, and
    those that an owner that dies may have sent or not.
    """
    waits: Counter[tuple[str, str]] = Counter()
    attempts: dict[tuple[str, str], int] = defaultdict(int)
    for event in log.events(facts.ExecutionsQueued):
        for tenant, execution, attempt in zip(event.tenant, event.executions, event.attempts, strict=True):
            name = (event.tenants[tenant], execution)
            waits[name] += 1
            attempts[name] = max(attempts[name], attempt)
    for kind in (facts.GrantsReturned, facts.AttemptsLost):
        for event in log.events(kind):
            for tenant, execution in zip(event.tenant, event.executions, strict=True):
                name = (event.tenants[tenant], execution)
                waits[name] += 1
                attempts[name] += kind is facts.AttemptsLost
    found = Counter((record.tenant, record.execution) for record in records)
    for record in records:
        if record.attempt > attempts[record.tenant, record.execution]:
            yield f"{record.execution}: a due record of attempt {record.attempt}, which is not on record"
    if not records:
        return
    times = [fact.now for fact in log.facts]
    again = sum(count - waits[name] for name, count in found.items() if count > waits[name])
    takeovers = len(log.events(facts.OwnershipTaken)) - len(log.frames)
    allowed = 1 + len(records) / 100 + (max(times) - min(times)) / 1_000
    if not takeovers and again > allowed:
        yield f"{again} of {len(records)} due records came again, allowed are {allowed:.0f}"
