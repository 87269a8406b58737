"""Every instant of a schedule is accounted for, once: against walks one by one, and over random lives of jobs."""

from __future__ import annotations

import random
from itertools import islice
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minutebook.domain import book as state
from minutebook.domain import events as facts
from minutebook.domain import keys
from minutebook.domain.book import Book
from minutebook.domain.commands import CancelExecution, PauseJob, RedriveExecution, ResumeJob
from minutebook.domain.missed import GRACE_MS, Stretch, instants_up
from minutebook.domain.overlap import HELD_MAX, Turns, turns
from minutebook.domain.plans import dated
from minutebook.domain.policy import Policy
from minutebook.domain.state import NONE_AT, Job, Spec
from minutebook.domain.timing import CHOICES, Timing
from minutebook.domain.view import PartitionView
from minutebook.store.memory import MemoryRows
from tests.simulation.folds import folded, viewed
from tests.simulation.log_maker import LogMaker, cancel, failure, run_now, submit, success

HOUR_MS = 3_600_000
FROM = 1_774_000_000_000
"""Nine days before Berlin's clock goes forward."""
RULES = st.sampled_from(
    [
        {"cron": "* * * * *"},
        {"cron": "*/7 * * * * *"},
        {"cron": "30 2 * * *"},
        {"cron": "*/15 1-3 * * *"},
        {"cron": "0 9 * * MON-FRI"},
        {"cron": "", "every_ms": 90_000, "anchor_at": FROM},
    ]
)
TIMINGS = st.builds(
    Timing,
    misfire=st.sampled_from(CHOICES["misfire"]),
    misfire_window_ms=st.sampled_from([1, 59_999, 600_000, 24 * HOUR_MS, 30 * 24 * HOUR_MS]),
    misfire_max=st.sampled_from([1, 2, 7, 100]),
    jitter_ms=st.sampled_from([0, 0, 1, 45_000, HOUR_MS]),
    end_at=st.sampled_from([None, FROM + 40 * HOUR_MS]),
)


@settings(max_examples=300, deadline=None)
@given(
    rule=RULES,
    timing=TIMINGS,
    zone=st.sampled_from(["UTC", "Europe/Berlin", "Australia/Lord_Howe"]),
    started_ms=st.integers(0, 20 * 24 * HOUR_MS),
    away_ms=st.one_of(
        st.integers(0, 3 * 60_000),
        st.integers(0, 50 * HOUR_MS),
        st.integers(0, 3_000).map(lambda minutes: minutes * 60_000),
    ),
)
def test_what_is_up_is_what_a_walk_finds(
    rule: dict[str, object], timing: Timing, zone: str, started_ms: int, away_ms: int
) -> None:
    spec = Spec("t", "q", 5, b"", zone=zone, timeout_ms=1, traceparent="", explicit_timing=timing, **rule)  # type: ignore[arg-type]
    plan = dated("acme", "a", spec, None)
    first = plan.next(FROM + started_ms)
    if first is None:
        return
    job = Job(1, "active", first, first, 0, "", b"", "", 0, jitter_ms=timing.jitter_ms)
    now = first + timing.jitter_ms + away_ms
    until = now - timing.jitter_ms
    all_of_it = [first, *plan.each(first, until)]
    last = all_of_it[-1]
    following = plan.next(last)
    if len(all_of_it) == 1 and (until - first <= GRACE_MS):
        kept = all_of_it
    else:
        kept = [at for at in all_of_it if until - at <= _window_ms(timing)]
        if timing.misfire != "none":
            kept = kept[-1 if timing.misfire == "latest" else -timing.misfire_max :]
    dropped = all_of_it[: len(all_of_it) - len(kept)]
    found = instants_up(Book(MemoryRows(state.FAMILIES)), "acme", "a", job, spec, now)
    assert found.kept == kept
    assert found.next_at == (NONE_AT if following is None else following)
    assert found.dropped == (Stretch(dropped[0], dropped[-1], len(dropped)) if dropped else None)


def _window_ms(timing: Timing) -> int:
    return GRACE_MS if timing.misfire == "none" else timing.misfire_window_ms


@given(
    policy=st.sampled_from(CHOICES["overlap"]),
    count=st.integers(0, 250),
    is_busy=st.booleans(),
    held=st.integers(0, HELD_MAX),
)
def test_turns_are_those_of_one_after_the_other(policy: str, count: int, is_busy: bool, held: int) -> None:
    most = {"queue_one": 1, "queue_all": HELD_MAX}.get(policy, 0)
    fates = []
    runs = is_busy
    for _ in range(count):
        if policy == "allow" or not runs:
            fates.append("run")
            runs = True
        elif policy == "cancel_running":
            fates = ["skip"] * len(fates) + ["hold" if is_busy else "run"]
        elif held < most:
            fates.append("hold")
            held += 1
        else:
            fates.append("skip")
    before = held - fates.count("hold") if policy in ("queue_one", "queue_all") else held
    found = turns(policy, count, is_busy=is_busy, held=before)
    assert found[:3] == (fates.count("run"), fates.count("hold"), fates.count("skip"))
    assert found == Turns(*found[:3], policy == "cancel_running" and count > 0)


# -- lives of jobs

SEEDS = range(16)
STEPS = 160


class Life:
    """Jobs of random policies under random fates: workers come and go, so does the owner."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.maker = LogMaker(now=FROM + self.random.randint(0, 10 * 24 * HOUR_MS))
        self.maker.open()
        self.firsts: dict[str, int] = {}
        for number in range(6):
            self._submit(f"j{number}")

    def _submit(self, job_id: str) -> None:
        pick, now = self.random.choice, self.maker.clock.now()
        timing = Timing(
            misfire=pick(CHOICES["misfire"]),
            misfire_window_ms=pick([60_000, 20 * 60_000, 24 * HOUR_MS]),
            misfire_max=pick([1, 3, 100]),
            overlap=pick(CHOICES["overlap"]),
            jitter_ms=pick([0, 0, 5_000, 200_000]),
            max_runs=pick([None, None, 4, 30]),
            end_at=pick([None, None, now + 30 * HOUR_MS]),
        )
        when = pick([{"cron": "* * * * *"}, {"cron": "*/20 * * * * *"}, {"every_ms": 45_000}])
        policy = pick([None, None, Policy(start_deadline_ms=90_000), Policy(max_attempts=2, first_ms=20_000)])
        (event,) = self.maker.command(
            submit(job_id, zone="Europe/Berlin", timing=timing, policy=policy, issued_at=now, **when)
        )
        assert isinstance(event, facts.JobSubmitted), event
        self.firsts[job_id] = event.next_at

    def step(self) -> None:
        """One thing that happens, some time later."""
        pick = self.random.choice
        self.maker.clock.advance(pick([1, 900, 5_000, 20_000, 61_000]))
        if self.random.random() < 0.03:
            self.maker.clock.advance(pick([10 * 60_000, 3 * HOUR_MS, 40 * HOUR_MS]))
        now, running = self.maker.clock.now(), self.maker.running()
        some = self.random.sample(running, min(len(running), 2))
        match self.random.randint(0, 12):
            case 0 | 1 | 2:
                self.maker.due(pick(["", "w1.1"]))
            case 3:
                self.maker.grant("w1.1", 3)
            case 4 | 5:
                self.maker.report(success(some, "w1.1"))
            case 6:
                for held in some:
                    self.maker.report(failure(held, is_permanent=self.random.random() < 0.3))
            case 7:
                self.maker.lose(some)
            case 8:
                self.maker.command(run_now(pick(list(self.firsts)), issued_at=now))
            case 9:
                self.maker.due("w1.1")
                self.maker.report(success(self.maker.running(), "w1.1"))
            case 10:
                self._command(pick([PauseJob, ResumeJob, ResumeJob]), pick(list(self.firsts)))
            case 11:
                open_ones = [key for key, _ in self.maker.book.executions.scan(b"")]
                self._act(CancelExecution, [*open_ones, *(held.key for held in running)])
            case 12:
                self._act(
                    RedriveExecution, [key[keys.DAY_BYTES :] for key, _ in self.maker.book.dead.scan(b"")]
                )

    def _act(self, kind: type[CancelExecution | RedriveExecution], rows: list[bytes]) -> None:
        """Something is done to one of these executions."""
        if rows:
            name = keys.names(self.random.choice(rows))[1]
            self._command(kind, name.rpartition(":")[0], execution=name)

    def _command(self, kind: Any, job_id: str, **more: object) -> None:
        if kind is ResumeJob:
            more["is_caught_up"] = self.random.random() < 0.5
        self.maker.command(
            kind(
                tenant="acme",
                job_id=job_id,
                command_id=f"x{len(self.maker.records)}",
                issued_at=self.maker.clock.now(),
                **more,
            )
        )

    def settle(self) -> None:
        """A cycle in which everything that is due is decided."""
        self.maker.due("w1.1")


@pytest.mark.parametrize("seed", SEEDS)
def test_no_instant_is_lost_or_twice_and_no_two_overlap(seed: int) -> None:
    life = Life(seed)
    for _ in range(STEPS):
        life.step()
        for job_id in life.firsts:
            no_two_overlap(life.maker, job_id)
    life.settle()
    view, _ = viewed(life.maker.records)
    assert sum(accounted_for(view, life, job_id) for job_id in life.firsts) > 100
    assert state.digest(folded(life.maker.records)) == state.digest(life.maker.rows)


def no_two_overlap(maker: LogMaker, job_id: str) -> None:
    """As the job's policy says, at any moment."""
    row = keys.job_row("acme", job_id)
    job = maker.book.jobs.get(row)
    spec = None if job is None else maker.book.specs.get(keys.spec_row(row, job.version))
    if job is None or spec is None:
        return
    open_ones = maker.book.executions_of(row)
    held = [keys.names(key)[1] for key, execution in open_ones if execution.is_held]
    others = [execution for _, execution in open_ones if not execution.is_held]
    assert sorted(job.held) == sorted(held)
    assert job.open == len(open_ones)
    assert not held or others, "what is held waits for something"
    if spec.timing.overlap == "allow":
        assert not held
        return
    of_schedule = [
        execution
        for key, execution in open_ones
        if not execution.is_held
        and not execution.generation
        and not keys.names(key)[1].rpartition(":")[2].startswith("r")
    ]
    assert len(of_schedule) <= 1
    most = {"skip": 0, "queue_one": 1, "queue_all": HELD_MAX, "cancel_running": 1}[spec.timing.overlap]
    assert len(held) <= most
    assert job.held == sorted(job.held, key=lambda name: int(name.rpartition(":")[2])), "the earliest first"


def accounted_for(view: PartitionView, life: Life, job_id: str) -> int:
    """How many instants of a job were decided: all up to its next one, each once."""
    found = view.job("acme", job_id)
    assert found is not None
    row, progress = found
    timing = row.timing or Timing()
    spec = Spec(
        row.task,
        row.queue,
        row.priority,
        row.payload,
        row.cron,
        row.zone,
        row.timeout_ms,
        "",
        every_ms=row.every_ms,
        anchor_at=row.anchor_at,
        explicit_timing=row.timing,
    )
    plan = dated("acme", job_id, spec, None)
    decided: list[int] = []
    runs = 0
    for _, name, execution in view.executions("acme", job_id):
        if name.rpartition(":")[2].startswith("r"):
            continue
        if execution.skip is None:
            runs += 1
            decided.append(execution.scheduled_at)
            continue
        instants = list(plan.each(execution.scheduled_at - 1, execution.skip.last_at))
        assert len(instants) == execution.skip.count
        assert instants[-1] == execution.skip.last_at
        decided += instants
    decided.sort()
    first = life.firsts[job_id]
    if progress.next_at != NONE_AT:
        expected = list(plan.each(first - 1, progress.next_at - 1))
        now = life.maker.clock.now()
        is_decided = progress.next_at + timing.jitter_ms >= now
        assert is_decided or progress.status == "paused", "everything that is up was decided"
    elif timing.max_runs is not None and runs == timing.max_runs:
        expected = list(islice(plan.each(first - 1, FROM * 2), len(decided)))
    else:
        assert timing.end_at is not None
        expected = list(plan.each(first - 1, timing.end_at))
    assert decided == expected
    assert timing.max_runs is None or runs <= timing.max_runs
    return len(decided)


def test_a_cancelled_job_of_any_policy_leaves_nothing_open() -> None:
    for seed in range(6):
        life = Life(seed)
        for _ in range(60):
            life.step()
        for job_id in life.firsts:
            life.maker.command(cancel(job_id, issued_at=life.maker.clock.now()))
        for held in life.maker.running():
            life.maker.report(failure(held))
        book = life.maker.book
        assert (
            list(book.jobs.scan(b"")) == list(book.executions.scan(b"")) == list(book.index.scan(b"")) == []
        )
        assert list(book.specs.scan(b"")) == []
