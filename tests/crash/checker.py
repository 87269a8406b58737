"""The judge of the crash tests: history of what was asked, witness of what ran, and the raw log. Never a view, never a
store, never the product's fold.

`complaints` is empty only if nothing was lost, nothing ran early, no two grants of an execution ran at once, no session
was given more than it offered, every further run has its cause on record, every frame was written by the owner of its time,
nothing left the owners that is not in the log, and what is under a limit ran under a permit, of which never too many were out.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Final

from minutebook import ids
from minutebook.domain import events as facts
from minutebook.domain.commands import CancelJob, Command, EditJob, RunJobNow, SubmitJob
from minutebook.domain.records import DeadLetter, Inbox, Report
from minutebook.domain.subjects import subject_of
from minutebook.errors import DecodeError
from minutebook.log.port import RawRecord
from minutebook.wire import codec, topics
from minutebook.wire.frames import Frame
from tests.crash.joblog import JobLog, whole_log
from tests.crash.ledger import Ledger, Name
from tests.crash.permit_ledger import PermitLedger
from tests.crash.stack import Sent, Sighting, Stack

EARLY_MS: Final = 50
"""Clocks of one machine differ by rounding alone."""


def verdict(stack: Stack) -> list[str]:
    """Every complaint about what a stack has done, read anew from the broker and the witness files."""
    return judged(stack, unanswered_too=True)


def judged(stack: Stack, *, unanswered_too: bool) -> list[str]:
    """The same, at any moment: without what is not done yet, unless that is wanted too.

    Effects are read before the log, and the log before its inputs and what handlers ended, so that nothing is held against
    what goes on meanwhile.
    """
    witness, inbox, letters = stack.witness(), stack.whole(topics.INBOX), stack.whole(topics.DEAD_LETTERS)
    log = whole_log(stack.kafka, stack.partitions)
    reports = [decoded_reports(records) for records in stack.whole(topics.REPORTS)]
    ledger = Ledger(log)
    undone = [*unanswered(ledger, log, stack.sent), *unfinished(ledger, stack.sent)] if unanswered_too else []
    return [
        *ledger.complaints,
        *undone,
        *strange_runs(ledger, witness),
        *unseen_successes(ledger, stack.witness()),
        *wrong_owners(log),
        *overgrants(log, reports),
        *stray_outputs(ledger, inbox, letters),
        *PermitLedger(log).complaints,
    ]


# -- what was asked for


def expected(command: Command, stamp: int) -> Name | None:
    """The one execution that a command asks for, by arithmetic of its own; None if it asks for none."""
    match command:
        case SubmitJob(cron=None):
            at = stamp + command.delay_ms if command.delay_ms is not None else command.run_at or stamp
            return command.tenant, f"{command.job_id}:{at}"
        case EditJob():
            return expected(command.job, stamp)
        case RunJobNow():
            return command.tenant, f"{command.job_id}:r{command.command_id}"
        case _:
            return None


def refused(log: JobLog) -> set[tuple[str, str]]:
    """(job or queue, command id) of commands that were refused."""
    return {(event.job_id, event.command_id) for event in log.events(facts.CommandRejected)}


def open_jobs(log: JobLog, sent: Sequence[Sent]) -> list[str]:
    """Commands that the log does not answer yet, or whose execution has no outcome yet."""
    ledger = Ledger(log)
    return [*unanswered(ledger, log, sent), *unfinished(ledger, sent, refused(log))]


def unanswered(ledger: Ledger, log: JobLog, sent: Sequence[Sent]) -> list[str]:
    """LOST: commands that the broker has and the log does not speak of."""
    known = {(event.job_id, event.command_id) for event in ledger.submitted.values()}
    for kind in (
        facts.CommandRejected,
        facts.CommandAnswered,
        facts.JobCancelled,
        facts.JobPaused,
        facts.JobResumed,
        facts.JobPurged,
        facts.ExecutionRequested,
    ):
        known |= {(event.job_id, event.command_id) for event in log.events(kind)}
    known |= {(event.job.job_id, event.job.command_id) for event in log.events(facts.JobEdited)}
    known |= {
        (ids.operation_subject(event.fact.operation), event.command_id)
        for event in log.events(facts.OperationStarted)
    }
    for named in (facts.QueueDeclared, facts.TaskDeclared):
        known |= {(event.name, event.command_id) for event in log.events(named)}
    known |= {(event.worker, event.command_id) for event in log.events(facts.WorkerAsked)}
    known |= {(ids.limit_subject(event.name), event.command_id) for event in log.events(facts.LimitDeclared)}
    return [
        f"{_subject(one.command)}: {type(one.command).__name__} is not answered"
        for one in sent
        if (_subject(one.command), one.command.command_id) not in known
    ]


def _subject(command: Command) -> str:
    return subject_of(command)[1]


def unfinished(
    ledger: Ledger, sent: Sequence[Sent], refusals: set[tuple[str, str]] | None = None
) -> list[str]:
    """MISS: executions that were asked for and have neither success nor another outcome on record."""
    found: list[str] = []
    cancelled = {
        (one.command.tenant, one.command.job_id) for one in sent if isinstance(one.command, CancelJob)
    }
    for one in sent:
        name = expected(one.command, one.stamp)
        if isinstance(one.command, SubmitJob) and (one.command.tenant, one.command.job_id) in ledger.edited:
            continue  # what it asks for now, the edit says
        if name is None or (_subject(one.command), one.command.command_id) in (refusals or ()):
            continue
        is_cancelled = (name[0], ids.job_of(name[1])) in (cancelled & ledger.cancelled_jobs)
        if not ledger.outcome(name) and not is_cancelled:
            found.append(f"{name[0]}/{name[1]}: no outcome")
    return found


# -- what ran


def strange_runs(ledger: Ledger, witness: Sequence[Sighting]) -> list[str]:
    """EARLY, runs that nothing granted, tokens started twice, runs without a cause."""
    found: list[str] = []
    starts = [one for one in witness if one.moment == "start"]
    for one in starts:
        name = (one.tenant, one.execution)
        grant = ledger.grants.get((name, one.token))
        if grant is None or grant.attempt != one.attempt:
            found.append(f"{name[1]}: ran under token {one.token}, which the log never gave")
        if one.at < one.due_at - EARLY_MS:
            found.append(f"{name[1]}: started {one.due_at - one.at:.0f} ms early")
        nominal = name[1].rpartition(":")[2]
        if nominal.isdigit() and one.attempt == 1 and one.at < int(nominal) - EARLY_MS:
            found.append(f"{name[1]}: started before the instant that it is named after")
    twice = Counter((one.execution, one.token) for one in starts)
    found += [
        f"{execution}: token {token} was started {n} times"
        for (execution, token), n in twice.items()
        if n > 1
    ]
    return found + list(_without_cause(ledger, starts))


def unseen_successes(ledger: Ledger, witness: Sequence[Sighting]) -> list[str]:
    """Successes that no handler saw."""
    ends = {((one.tenant, one.execution), one.token) for one in witness if one.moment == "end"}
    return [
        f"{name[1]}: succeeded, but no handler ended it"
        for name, token in ledger.succeeded.items()
        if (name, token) not in ends
    ]


def _without_cause(ledger: Ledger, starts: Sequence[Sighting]) -> Iterator[str]:
    """A run after the first needs a failure, a loss or a return of the grant before it on record."""
    runs = Counter((one.tenant, one.execution) for one in starts)
    for name, count in runs.items():
        if count > 1 + len(ledger.causes[name]):
            yield f"{name[1]}: {count} runs, causes on record: {ledger.causes[name]}"


# -- who wrote


def wrong_owners(log: JobLog) -> list[str]:
    """Frames of anybody but the owner whose time it was, and positions that went back."""
    found: list[str] = []
    for partition, frames in enumerate(log.frames):
        owner, epoch, inputs = "", 0, dict.fromkeys(topics.INPUTS, -1)
        sent_through, now = -1, 0
        for frame in frames:
            if frame is None:
                continue
            for event in frame.events:
                if isinstance(event, facts.OwnershipTaken):
                    if event.epoch != epoch + 1:
                        found.append(f"{partition}:{frame.offset}: epoch {event.epoch} after {epoch}")
                    owner, epoch = event.owner, event.epoch
            if (frame.owner, frame.epoch) != (owner, epoch):
                found.append(f"{partition}:{frame.offset}: written by {frame.owner}, owned by {owner}")
            found += _went_back(partition, frame, inputs)
            if frame.now < now:
                found.append(f"{partition}:{frame.offset}: {now - frame.now} ms back in time")
            if frame.outputs_sent_through < sent_through:
                found.append(f"{partition}:{frame.offset}: outputs back to {frame.outputs_sent_through}")
            inputs = {item.topic: item.offset for item in frame.inputs}
            sent_through, now = frame.outputs_sent_through, frame.now
    return found


def _went_back(partition: int, frame: Frame, inputs: dict[str, int]) -> Iterator[str]:
    for item in frame.inputs:
        if item.offset < inputs[item.topic]:
            yield f"{partition}:{frame.offset}: {item.topic} from {inputs[item.topic]} back to {item.offset}"


# -- what was offered


class Heard:
    """The offer in a report: how many more above which token; and what it asks for by name, on open queues."""

    def __init__(self, offset: int, report: Report) -> None:
        assert report.pulse is not None
        self.offset = offset
        self.claims = {(claim.tenant, claim.execution, claim.attempt) for claim in report.claims}
        self.offer = max(report.pulse.offer, 0)
        self.last_token = report.pulse.last_token


def decoded_reports(records: Sequence[RawRecord]) -> dict[str, list[Heard]]:
    """Offers by session, in the order of the topic."""
    found: dict[str, list[Heard]] = defaultdict(list)
    for record in records:
        try:
            report = codec.decode(record.value)
        except DecodeError:
            continue
        if isinstance(report, Report) and report.pulse is not None:
            found[report.session].append(Heard(record.offset, report))
    return found


def overgrants(log: JobLog, reports: Sequence[dict[str, list[Heard]]]) -> list[str]:
    """More out to a session above the last token that it had seen than it offered.

    A frame says through which report its owner had heard; which of the reports since the frame before counted is not
    said, so any of them may have. What a session has claimed by name needs no offer.
    """
    found: list[str] = []
    for partition, frames in enumerate(log.frames):
        tokens: dict[str, list[int]] = defaultdict(list)
        before = -1
        given = _given(log, partition)
        asked = {session: _asked(heard) for session, heard in reports[partition].items()}
        for frame in frames:
            if frame is None:
                continue
            through = _heard_through(frame)
            for session, granted in given.get(frame.offset, {}).items():
                heard, names = reports[partition].get(session, []), asked.get(session, {})
                unasked = [token for token, name in granted if names.get(name, through + 1) > through]
                tokens[session] += unasked
                if unasked and not _is_covered(tokens[session], heard, before, through):
                    found.append(f"{partition}:{frame.offset}: {session} was given more than it offered")
            before = max(before, through)
    return found


def _asked(heard: list[Heard]) -> dict[tuple[str, str, int], int]:
    """What was claimed, and the offset at which it was first."""
    return {name: one.offset for one in reversed(heard) for name in one.claims}


def _heard_through(frame: Frame) -> int:
    """The last report whose offer its owner knew: decided ones, or beyond them in a slice."""
    decided = next(item.offset for item in frame.inputs if item.topic == topics.REPORTS)
    return max(decided, *(part.offset for part in frame.slices if part.topic == topics.REPORTS), decided)


def _given(log: JobLog, partition: int) -> dict[int, dict[str, list[tuple[int, tuple[str, str, int]]]]]:
    """Tokens by frame and session, each with (tenant, execution, attempt)."""
    found: dict[int, dict[str, list[tuple[int, tuple[str, str, int]]]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for kind in (facts.ExecutionsDueGranted, facts.ExecutionsGranted):
        for fact in log.of(kind):
            if fact.partition == partition:
                event = fact.event
                rows = zip(event.session, event.tenant, event.executions, event.attempts, strict=True)
                for row, (session, tenant, execution, attempt) in enumerate(rows):
                    name = (event.tenants[tenant], execution, attempt)
                    found[fact.frame][event.sessions[session]].append((fact.token + row, name))
    return found


def _is_covered(tokens: list[int], heard: list[Heard], before: int, through: int) -> bool:
    earlier = [one for one in heard if one.offset <= before]
    candidates = earlier[-1:] + [one for one in heard if before < one.offset <= through]
    return any(sum(token > one.last_token for token in tokens) <= one.offer for one in candidates)


# -- what left the owners


def stray_outputs(
    ledger: Ledger, inbox: Iterable[Iterable[RawRecord]], letters: Iterable[Iterable[RawRecord]]
) -> list[str]:
    """Grants on `worker-inbox` and dead letters, by partition, that the log does not know: sent for a void frame."""
    found: list[str] = []
    for record in chain.from_iterable(inbox):
        sent = codec.decode(record.value)
        assert isinstance(sent, Inbox)
        found += list(_strangers(ledger, sent))
    for record in chain.from_iterable(letters):
        letter = codec.decode(record.value)
        assert isinstance(letter, DeadLetter)
        if (letter.tenant, letter.execution) not in ledger.died:
            found.append(f"{letter.execution}: a dead letter, but it was never dead")
    return found


def _strangers(ledger: Ledger, inbox: Inbox) -> Iterator[str]:
    if inbox.granted is None:
        return
    it = inbox.granted
    for row, tenant, execution in zip(it.rows, it.tenant, it.executions, strict=True):
        token = (inbox.frame << 16) + row
        grant = ledger.grants.get(((it.tenants[tenant], execution), token))
        if grant is None or grant.session != inbox.session:
            yield f"{execution}: sent out under token {token}, which the log never gave to {inbox.session}"
