"""Why a job ran at an instant, ran late, ran more than once, or did not run: answered from the log, never guessed.

Which instants there are follows from the definitions (`ledger`); what became of one, from the steps of its execution;
why it waited, from what was around it (`surroundings`). Where the log cannot tell, the answer says so.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

import msgspec

from minutebook.domain.state import NONE_AT
from minutebook.history.completeness import Completeness
from minutebook.history.ledger import CANCELLED, MISSING, MOVED, PAUSED, PENDING, Ledger, Range
from minutebook.history.steps import Step, Wanted, steps_of
from minutebook.history.story import schedule_words, sentence
from minutebook.history.surroundings import Fact, LimitState, Ownership, Receipt, Surroundings
from minutebook.ids import execution_id
from minutebook.times import format_duration, format_instant
from minutebook.wire.frames import Frame

LATE_MS: Final = 1_000
"""A wait shorter than that is no lateness that asks for a reason."""
NAMED_MAX: Final = 10
"""Of many things of one kind so many are named."""

_COME: Final = ("queued", "due_granted")
_GRANTED: Final = ("granted", "due_granted")
_TOLD: Final = (
    "failed",
    "lost",
    "snoozed",
    "returned",
    "redriven",
    "discarded",
    "stuck",
    "succeeded",
    "dead",
    "expired",
    "attempt_cancelled",
    "execution_cancelled",
)
"""Steps of an execution that are facts of the answer as they are."""
_ENDS: Final = {
    "succeeded": "ran",
    "dead": "dead",
    "expired": "skipped",
    "attempt_cancelled": "cancelled",
}


class Reason(msgspec.Struct, frozen=True, kw_only=True):
    """One fact that the answer rests on. `event_id`: its place in the log; None where it follows from a definition."""

    code: str
    text: str
    at: int | None = None
    event_id: str | None = None


class Answer(msgspec.Struct, kw_only=True):
    """`verdict`: `ran`, `running`, `waiting`, `skipped`, `dead`, `cancelled`, `paused`, `pending`, `moved`, `missing`,
    `not_an_instant`, `before_the_job`, `after_its_end` or `unknown_job`. `late_ms`: from due to the first start, None
    where none began. `attempts`: how many attempts began.
    """

    tenant: str
    job_id: str
    at: int
    execution_id: str
    verdict: str
    late_ms: int | None
    attempts: int
    reasons: list[Reason]
    previous_at: int | None = None
    next_at: int | None = None

    def put_behind(self, codes: tuple[str, ...], reasons: list[Reason]) -> None:
        """Further reasons, behind the last one that has one of these codes."""
        place = max((number for number, one in enumerate(self.reasons, 1) if one.code in codes), default=0)
        self.reasons[place:place] = reasons


class Wait(NamedTuple):
    """It waited for a permit of a limit, or, where `limit` is None, for a worker: from `from_at` to `until_at`."""

    queue: str
    task: str
    from_at: int
    until_at: int
    limit: str | None

    @property
    def settled_at(self) -> int:
        """By then what came due with it and went before it has its permits."""
        return self.from_at + LATE_MS


class _Seen(NamedTuple):
    """A step, and the time of the decision before it."""

    step: Step
    before_at: int


class Why:
    """Takes the valid frames of the job's partition in order, then answers for one instant (ms), or for an `execution`
    that somebody asked for at `at`. `is_part`: of the frames only what is the tenant's own is there.
    """

    def __init__(
        self, tenant: str, job_id: str, at: int, execution: str = "", *, is_part: bool = False
    ) -> None:
        self.surroundings = Surroundings(tenant)
        self._wanted = Wanted(tenant, job_id)
        self._at = at
        self._execution = execution or execution_id(job_id, at)
        self._completeness = Completeness(Range(at, at), (tenant, job_id))
        self._seen: list[_Seen] = []
        self._is_part = is_part
        self._partition = 0
        self.waits: list[Wait] = []
        """What the answer says of waiting: what other records than the partition's log may tell more of."""

    def take(self, frame: Frame) -> None:
        """The next valid frame."""
        self.surroundings.take(frame)
        self._completeness.take(frame)
        for step in steps_of(0, frame, self._wanted):
            self._seen.append(_Seen(step, self.surroundings.before_at))

    def answer(self, partition: int) -> Answer:
        """The answer, once the log is read as far as is wanted."""
        self._partition = partition
        self._seen = [seen._replace(step=_placed_in(seen.step, partition)) for seen in self._seen]
        own = [seen for seen in self._seen if seen.step.execution == self._execution]
        ledger = self._completeness.ledgers.get((self._wanted.tenant, self._wanted.job_id))
        answer = Answer(
            tenant=self._wanted.tenant,
            job_id=self._wanted.job_id,
            at=self._at,
            execution_id=self._execution,
            verdict="",
            late_ms=None,
            attempts=0,
            reasons=[],
        )
        if ledger is None:
            answer.verdict = "unknown_job"
            answer.reasons.append(Reason(code="unknown_job", text="The log knows no such job"))
            return answer
        answer.previous_at, answer.next_at = ledger.around(self._at)
        answer.reasons += self._definition()
        if any(seen.step.kind in (*_COME, "placed", "requested") for seen in own):
            self._ran(answer, own)
        else:
            self._did_not(answer, ledger)
        return answer

    # -- what the definition says

    def _definition(self) -> Iterator[Reason]:
        """The definition in force: the last one decided before the instant."""
        found = None
        for seen in self._seen:
            if seen.step.kind in ("submitted", "edited"):
                if found is not None and seen.step.said["accepted_at"] > self._at:
                    break
                found = seen.step
        if found is not None:
            version = found.said.get("version", 1)
            text = f"Version {version} was in force: task {found.said['task']}, {schedule_words(found.said)}"
            yield _reason("definition", text, found)

    # -- it became an execution

    def _ran(self, answer: Answer, own: list[_Seen]) -> None:
        answer.reasons += self._placed(own)
        come = next((seen for seen in own if seen.step.kind in _COME), None)
        granted = [seen for seen in own if seen.step.kind in _GRANTED]
        answer.attempts = len(granted)
        if come is not None:
            answer.reasons += self._late_by_the_owner(come)
            first = granted[0] if granted else None
            answer.reasons += self._waited(come.step, None if first is None else first.step)
            if first is not None:
                answer.late_ms = max(0, first.step.at - come.step.said["due_at"])
        answer.reasons += self._again(own)
        answer.verdict = self._verdict(own)

    def _placed(self, own: list[_Seen]) -> Iterator[Reason]:
        for seen in own:
            if seen.step.kind == "requested":
                yield _reason("requested", sentence(seen.step), seen.step)
            elif seen.step.kind == "placed":
                yield _reason(seen.step.said["cause"], sentence(seen.step), seen.step)
                if seen.step.said["cause"] == "overlap":
                    yield from self._open_beside(seen.step.at)

    def _open_beside(self, at: int) -> Iterator[Reason]:
        """Which other executions of the job were open."""
        opened = self._open_at(at)
        for name in sorted(opened.keys() - {self._execution})[:NAMED_MAX]:
            step = opened[name]
            yield Reason(code="open_beside", text=f"Open then: {name}", at=at, event_id=step.event_id)

    def _open_at(self, at: int) -> dict[str, Step]:
        """Open executions, each with the step by which it is."""
        found: dict[str, Step] = {}
        for seen in self._seen:
            step = seen.step
            if step.at > at or (step.at == at and step.kind == "placed"):
                continue
            if step.kind in (*_COME, "placed", "requested", "redriven"):
                found[step.execution] = step
            elif step.kind in _ENDS or (step.kind == "execution_cancelled" and step.said["token"] == NONE_AT):
                found.pop(step.execution, None)
        return found

    def _late_by_the_owner(self, come: _Seen) -> Iterator[Reason]:
        """From due to decided."""
        step = come.step
        late_ms = step.at - max(step.said["due_at"], self._ready_at(step))
        if late_ms <= LATE_MS:
            return
        late = f"It was put on record {format_duration(late_ms)} after it was due"
        handed = self.surroundings.ownership_between(step.said["due_at"] - LATE_MS, step.at)
        if handed is not None:
            text = f"{late}: the partition was handed over, {_silence(handed)} (epoch {handed.epoch})"
            yield self._fact("hand_over", text, handed.at, handed.fact)
        elif come.before_at <= step.said["due_at"]:
            text = f"{late}: its owner {step.owner} decided nothing from {format_instant(come.before_at)} on"
            yield Reason(code="owner_silent", text=text, at=come.before_at, event_id=step.event_id)
        else:
            text = f"{late}: its owner {step.owner} was deciding other things, it was behind"
            yield _reason("owner_behind", text, step)

    def _ready_at(self, step: Step) -> int:
        """When it could be queued where it was placed apart from its instant, or held."""
        ready = NONE_AT
        for seen in self._seen:
            other = seen.step
            if other.at > step.at or other.execution != step.execution:
                continue
            if other.kind == "placed":
                ready = max(ready, other.said["place_at"])
                if other.said["place_at"] == NONE_AT:
                    ready = max(ready, self._let_go_at(step))
        return ready

    def _let_go_at(self, step: Step) -> int:
        """When the last other execution ended before a held one came."""
        ends = [
            seen.step.at
            for seen in self._seen
            if seen.step.kind in _ENDS and seen.step.at <= step.at and seen.step.execution != step.execution
        ]
        return max(ends, default=NONE_AT)

    def _waited(self, come: Step, granted: Step | None) -> Iterator[Reason]:
        """From queued to granted."""
        until = self.surroundings.now if granted is None else granted.at
        waited_ms = until - come.at
        if come.kind == "due_granted" or waited_ms <= LATE_MS:
            return
        queue, task, limit = come.said["queue"], come.said["task"], come.said.get("limit") or ""
        text = f"It waited {format_duration(waited_ms)} on queue {queue}"
        yield _reason("queued", text, come)
        around = self.surroundings
        is_told = False
        for from_at, to_at, fact in around.pauses_of(queue, come.at, until):
            is_told = True
            text = f"The queue {queue} was paused from {format_instant(from_at)} to {format_instant(to_at)}"
            yield self._fact("queue_paused", text, from_at, fact)
        for name in dict.fromkeys((limit, "")):
            for reason in self._limited(name, come, until, granted):
                is_told = True
                yield reason
        if not is_told or self._asked_late(limit, come.at):
            self.waits.append(Wait(queue, task, come.at, until, None))
            yield from self._workers(task, come.at)

    def _asked_late(self, limit: str, at: int) -> bool:
        """Whether no permit was asked for at first: a partition asks once a worker offers for what waits, and not while it
        has as many as the limit lets.
        """
        first = self.surroundings.first_ask(limit, at)
        has_some = bool(self.surroundings.holders_at(limit, at + LATE_MS))
        return first is not None and first - at > LATE_MS and not has_some

    def _limited(self, name: str, come: Step, until: int, granted: Step | None) -> Iterator[Reason]:
        around, state = self.surroundings, self.surroundings.limit_at(name, come.at)
        if state is None:
            return
        shown = f"the limit {name}" if name else "the tenant's limit"
        came = [one for one in around.receipts[name] if come.at < one.at <= until]
        if state.paused_until > come.at:
            text = f"{shown.capitalize()} was paused until {format_instant(state.paused_until)}"
            yield self._fact("limit_paused", text, state.at, state.fact)
        elif granted is None:
            if came or around.first_ask(name, come.at) is not None:
                yield from self._permit_awaited(shown, name, state, come, until, came)
        elif came and any(permit["limit"] == name for permit in granted.said.get("permits", ())):
            yield from self._permit_awaited(shown, name, state, come, until, came)

    def _permit_awaited(
        self, shown: str, name: str, state: LimitState, come: Step, until: int, came: list[Receipt]
    ) -> Iterator[Reason]:
        """Who held the permits, and when the next ones came."""
        wait = Wait(come.said["queue"], come.said["task"], come.at, until, name)
        self.waits.append(wait)
        text = f"It needed a permit of {shown} ({_bounds(state)})"
        yield self._fact("limit", text, come.at, state.fact)
        for held in self.surroundings.holders_at(name, wait.settled_at)[:NAMED_MAX]:
            text = f"{held.execution} held a permit of {shown} meanwhile"
            yield self._fact("permit_held", text, held.from_at, held.fact)
        if came:
            text = f"The next permits of {shown} came here at {format_instant(came[-1].at)}"
            yield self._fact("permits_came", text, came[-1].at, came[-1].fact)

    def _workers(self, task: str, at: int) -> Iterator[Reason]:
        if self._is_part:
            text = "Which workers were there then, what is one tenant's own does not say"
            yield Reason(code="workers_untold", text=text, at=at)
            return
        lives = sorted(self.surroundings.sessions_at(task, at))[:NAMED_MAX]
        if not lives:
            text = (
                f"No worker that knows the task {task} had been granted anything and was still there; "
                "when one came, the log does not say"
            )
            yield Reason(code="no_worker", text=text, at=at)
        for life in lives:
            text = (
                f"{life.session}, a worker that knows the task {task}, was there; "
                "which slots it had free, the log does not say"
            )
            yield self._fact("workers_busy", text, at, life.fact)

    def _again(self, own: list[_Seen]) -> Iterator[Reason]:
        """Why there was more than one attempt, and how it ended."""
        for seen in own:
            if seen.step.kind in _TOLD:
                yield _reason(seen.step.kind, sentence(seen.step), seen.step)

    def _verdict(self, own: list[_Seen]) -> str:
        verdict = "waiting"
        for seen in own:
            kind, said = seen.step.kind, seen.step.said
            if kind in _GRANTED:
                verdict = "running"
            elif kind in ("returned", "failed", "lost", "snoozed", "redriven", "placed", "queued"):
                verdict = "waiting"
            elif kind == "execution_cancelled" and said["token"] == NONE_AT:
                verdict = "cancelled"
            elif kind in _ENDS:
                verdict = _ENDS[kind]
        for seen in self._seen:
            if seen.step.kind == "cancelled" and self._execution in seen.step.said["executions"]:
                verdict = "cancelled"
        return verdict

    # -- it did not

    def _did_not(self, answer: Answer, ledger: Ledger) -> None:
        skip = next((seen.step for seen in self._seen if _covers(seen.step, self._at)), None)
        if skip is not None and ledger.counts[skip.said["reason"]]:
            answer.verdict = "skipped"
            answer.reasons.append(_reason(skip.said["reason"], sentence(skip), skip))
            answer.reasons += self._behind_skip(skip)
            return
        created, closed = self._life()
        if ledger.counts[CANCELLED] or (closed is not None and closed.at <= self._at):
            answer.verdict = "cancelled" if ledger.counts[CANCELLED] else "after_its_end"
            answer.reasons.append(_reason("cancelled", sentence(closed), closed) if closed else _UNTOLD)
        elif ledger.counts[MOVED]:
            answer.verdict = "moved"
            answer.reasons += [
                _reason("edited", sentence(seen.step), seen.step)
                for seen in self._seen
                if seen.step.kind == "edited"
            ][-1:]
        elif ledger.counts[PAUSED]:
            answer.verdict = "paused"
            answer.reasons += self._last_pause(self.surroundings.now)
        elif ledger.counts[PENDING]:
            answer.verdict = "pending"
            text = (
                f"It is due, and not decided by {format_instant(self.surroundings.now)}, where the log ends"
            )
            answer.reasons.append(Reason(code="pending", text=text))
        elif ledger.counts[MISSING]:
            answer.verdict = "missing"
            text = "The definitions imply this instant, and the log does not say what became of it: a fault"
            answer.reasons.append(Reason(code="missing", text=text))
        elif created is not None and self._at <= created.said["accepted_at"]:
            answer.verdict = "before_the_job"
            answer.reasons.append(_reason("submitted", sentence(created), created))
        else:
            self._no_instant(answer)

    def _no_instant(self, answer: Answer) -> None:
        is_ahead = self._at > self.surroundings.now
        answer.verdict = "pending" if is_ahead and answer.next_at == self._at else "not_an_instant"
        if answer.verdict == "pending":
            answer.reasons.append(Reason(code="ahead", text="It is yet to come"))
            return
        near = [
            f"{word} {format_instant(at)}"
            for word, at in (("the one before is", answer.previous_at), ("the one after is", answer.next_at))
            if at is not None
        ]
        text = "The definition in force has no instant there" + (f"; {', '.join(near)}" if near else "")
        answer.reasons.append(Reason(code="not_an_instant", text=text))

    def _behind_skip(self, skip: Step) -> Iterator[Reason]:
        match skip.said["reason"]:
            case "paused":
                yield from self._last_pause(skip.at)
            case "overlap":
                yield from self._open_beside(skip.at)
            case "misfire":
                late_ms = skip.at - self._at
                text = f"It was looked at {format_duration(max(0, late_ms))} after its time"
                yield _reason("late", text, skip)
                handed = self.surroundings.ownership_between(self._at, skip.at)
                if handed is not None:
                    text = f"The partition was handed over: {_silence(handed)}"
                    yield self._fact("hand_over", text, handed.at, handed.fact)
            case _:
                pass

    def _fact(self, code: str, text: str, at: int, fact: Fact) -> Reason:
        return Reason(code=code, text=text, at=at, event_id=fact.event_id(self._partition))

    def _last_pause(self, before_at: int) -> Iterator[Reason]:
        pauses = [
            seen.step for seen in self._seen if seen.step.kind == "paused" and seen.step.at <= before_at
        ]
        if pauses:
            yield _reason("paused_by", sentence(pauses[-1]), pauses[-1])

    def _life(self) -> tuple[Step | None, Step | None]:
        created = next((seen.step for seen in self._seen if seen.step.kind == "submitted"), None)
        closed = next((seen.step for seen in self._seen if seen.step.kind == "cancelled"), None)
        return created, closed


_UNTOLD: Final = Reason(code="untold", text="The log does not say why")


def _reason(code: str, text: str, step: Step) -> Reason:
    return Reason(code=code, text=text, at=step.at, event_id=step.event_id)


def _bounds(limit: LimitState) -> str:
    """What a limit lets through."""
    at_once = f"{limit.concurrency} at once" if limit.concurrency >= 0 else ""
    rate = (
        f"{limit.rate_count} within {format_duration(limit.rate_period_ms)}" if limit.rate_count >= 0 else ""
    )
    return " and ".join(filter(None, (at_once, rate)))


def _silence(handed: Ownership) -> str:
    """For how long nothing was decided at a hand-over."""
    since, until = format_instant(handed.before_at), format_instant(handed.at)
    return f"nothing was decided from {since} until {handed.owner} took over at {until}"


def _covers(step: Step, at: int) -> bool:
    return step.kind == "skipped" and step.said["first_at"] <= at <= step.said["last_at"]


def _placed_in(step: Step, partition: int) -> Step:
    place = msgspec.structs.replace(step.place, partition=partition)
    return msgspec.structs.replace(step, place=place)
