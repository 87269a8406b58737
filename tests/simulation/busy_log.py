"""A log in which a bit of everything happens, the same for the same seed."""

from __future__ import annotations

import random

from minutebook.domain import events as facts
from minutebook.domain import keys
from minutebook.domain.commands import (
    AskWorker,
    CancelExecution,
    CancelOperation,
    DeclareLimit,
    DeclareQueue,
    DeclareTask,
    DeleteLimit,
    DiscardExecution,
    DrainQueue,
    PauseLimit,
    PauseQueue,
    RedriveExecution,
    ResumeQueue,
    StartOperation,
)
from minutebook.domain.operation import OperationFilter
from minutebook.domain.operation_steps import advance
from minutebook.domain.policy import Policy
from minutebook.domain.records import CancelledByTask, Progress, Report, Snoozed
from minutebook.domain.results import died, overrun
from minutebook.domain.state import NONE_AT, PAUSED, UNCHANGED
from minutebook.domain.timing import Timing
from minutebook.domain.workers import WISHES
from minutebook.wire.frames import encode_frame
from tests.simulation.busy_calendars import BusyCalendars
from tests.simulation.busy_keys import BusyKeys
from tests.simulation.busy_permits import BusyPermits
from tests.simulation.log_maker import (
    LogMaker,
    cancel,
    edit,
    failure,
    hand_back,
    pause,
    purge,
    resume,
    run_now,
    submit,
    success,
)

SESSIONS = ("w1.1", "w2.1", "w3.1")
POLICIES = (
    None,
    None,
    Policy(max_attempts=1),
    Policy(max_attempts=2, max_losses=1, first_ms=10, jitter=0.0),
    Policy(deadline_ms=20_000),
    Policy(start_deadline_ms=5_000, deadline_ms=90_000, non_retryable=["ValueError"]),
)
CRONS = ("* * * * *", "*/5 * * * *", "30 2 * * *")
TIMINGS = (
    None,
    None,
    Timing(misfire="none", jitter_ms=20_000),
    Timing(misfire="latest", overlap="skip"),
    Timing(overlap="queue_one", jitter_ms=90_000, max_runs=9),
    Timing(overlap="queue_all", misfire_max=5),
    Timing(overlap="cancel_running"),
)
"""The first three are for a job that fires once, too."""


class BusyLog:
    """Takes random steps on a log; every step appends at least one record."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self.maker = LogMaker()
        self.maker.open()
        self._jobs: list[str] = []
        permits = BusyPermits(self.maker, self._random)
        self._calendars = BusyCalendars(self.maker, self._random)
        self._steps = [
            self._submit,
            self._submit,
            self._submit,
            self._cancel,
            self._run_now,
            self._edit,
            self._edit,
            self._pause_job,
            self._resume_job,
            self._due,
            self._due,
            self._due_granted,
            self._grant,
            self._grant,
            self._succeed,
            self._succeed,
            self._succeed,
            self._fail,
            self._hand_back,
            self._lose,
            self._withdraw,
            self._die,
            self._stale,
            self._declare,
            self._mail,
            self._take_over,
            self._lost_race,
            self._declare_task,
            self._ask_worker,
            self._junk,
            self._wrong_clock,
            self._forget,
            self._empty,
            self._note,
            self._snooze,
            self._progress,
            self._cancel_by_task,
            self._cancel_execution,
            self._redrive,
            self._redrive,
            self._discard,
            self._overrun,
            self._pause,
            self._limit,
            self._submit,
            self._grant,
            self._succeed,
            self._place,
            self._place,
            self._succeed,
            permits.step,
            permits.step,
            permits.step,
            permits.step,
            permits.step,
            permits.step,
            permits.step,
            self._start_operation,
            self._start_backfill,
            self._advance_operations,
            self._advance_operations,
            self._cancel_operation,
            self._calendars.step,
            self._calendars.step,
            self._calendars.step,
            self._calendars.step,
            self._calendars.zone_data,
            self._purge,
            self._submit_again,
            BusyKeys(self.maker, self._random).step,
        ]

    def run(self, steps: int) -> LogMaker:
        """So many steps further. Now and then nobody is there for more than a day."""
        for _ in range(steps):
            wait_ms = self._random.choice((1, 40, 900, 1_000, 7_000, 60_000))
            self.maker.clock.advance(wait_ms if self._random.random() < 0.96 else 30 * 3_600_000)
            self._random.choice(self._steps)()
        return self.maker

    def _job(self) -> str:
        return self._random.choice(self._jobs or ["none"])

    def _some(self, session: str) -> list:  # type: ignore[type-arg]  # of Held
        running = self.maker.running(session)
        return running[: self._random.randint(1, 5)]

    def _submit(self) -> None:
        queue = self.maker.book.queue("default")
        if queue is not None and queue.is_draining and self._random.random() < 0.3:
            self._tell_queue(ResumeQueue, "default")
        commands = []
        for _ in range(self._random.randint(1, 6)):
            job_id = f"job-{len(self._jobs)}"
            self._jobs.append(job_id)
            tenant = self._random.choice(("acme", "blue"))
            commands.append(submit(job_id, tenant=tenant, **self._body(tenant)))
        self.maker.command(*commands)

    def _body(self, tenant: str) -> dict[str, object]:
        """What a job of the tenant may say."""
        now = self.maker.clock.now()
        at = self._random.choice(
            (
                {},
                {"delay_ms": self._random.randint(0, 90_000)},
                {"run_at": now - 5_000},
                {"cron": self._random.choice(CRONS)},
                {"every_ms": self._random.choice((7_000, 3_600_000))},
            )
        )
        at["timing"] = self._random.choice(TIMINGS if "cron" in at else TIMINGS[:3])
        if "cron" in at and self._random.random() < 0.5:
            at |= self._calendars.timing(tenant)
        elif self._random.random() < 0.2:
            at["timing"] = Timing(is_paused_on_failure=True)
        return {
            "payload": b'"' + b"x" * self._random.randint(0, 300) + b'"',
            "task": self._random.choice("tuv"),
            "priority": self._random.choice((0, 5, 5, 9)),
            "policy": self._random.choice(POLICIES),
            "limit": self._random.choice(("", "", "k1", "k2")),
            **at,
        }

    def _cancel(self) -> None:
        self.maker.command(
            cancel(
                self._job(), issued_at=self.maker.clock.now(), tenant=self._random.choice(("acme", "blue"))
            )
        )

    def _run_now(self) -> None:
        self.maker.command(
            run_now(
                self._job(), issued_at=self.maker.clock.now(), tenant=self._random.choice(("acme", "blue"))
            )
        )

    def _place(self) -> None:
        """A job's next instants, made up for, filled in, or held where something else is open."""
        now, recurring = self.maker.clock.now(), []
        for row, job in self.maker.book.jobs.scan(b""):
            if not job.is_once and job.status == "active" and job.next_at >= 0:
                recurring.append((row, job))
        if not recurring:
            return
        row, job = self._random.choice(recurring)
        tenant, job_id = keys.names(row)
        cause = self._random.choice(("misfire", "overlap", "backfill"))
        if cause == "overlap" and job.open == len(job.held):
            return
        at = [job.next_at + n for n in range(self._random.randint(1, 3))]
        if cause == "backfill":
            at = [now - keys.DAY_MS - len(self.maker.records) * 10 + n for n in range(len(at))]
        place_at = [
            NONE_AT if cause == "overlap" else max(now, one) + self._random.randint(0, 9_000) for one in at
        ]
        next_at = UNCHANGED if cause == "backfill" else at[-1] + 60_000
        self.maker.add(facts.ExecutionsPlaced(tenant, job_id, cause, job.version, at, at, place_at, next_at))

    def _pause_job(self) -> None:
        for tenant in ("acme", "blue"):
            self.maker.command(pause(self._job(), issued_at=self.maker.clock.now(), tenant=tenant))

    def _resume_job(self) -> None:
        paused = [row for row, job in self.maker.book.jobs.scan(b"") if job.status == PAUSED]
        for row in paused[: self._random.randint(1, 3)]:
            tenant, job_id = keys.names(row)
            now, is_caught_up = self.maker.clock.now(), self._random.random() < 0.3
            self.maker.command(resume(job_id, tenant=tenant, issued_at=now, is_caught_up=is_caught_up))

    def _edit(self) -> None:
        """Of jobs that are open, to anything; now and then nothing changes, or another version is expected."""
        rows = [row for row, _ in self.maker.book.jobs.scan(b"")]
        for row in self._random.sample(rows, min(2, len(rows))):
            tenant, job_id = keys.names(row)
            about = {"tenant": tenant, "issued_at": self.maker.clock.now()}
            self.maker.command(
                edit(job_id, self._random.choice((None, None, 1)), **about, **self._body(tenant))
            )

    def _purge(self) -> None:
        """Of a closed job, or of any."""
        closed = [key[4:] for key, _ in self.maker.book.closed.scan(b"")]
        tenant, job_id = keys.names(self._random.choice(closed)) if closed else ("acme", self._job())
        now = self.maker.clock.now()
        self.maker.command(*(purge(one, tenant=tenant, issued_at=now) for one in (job_id, self._job())))

    def _submit_again(self) -> None:
        """Under ids of jobs that are forgotten, among others."""
        now = self.maker.clock.now()
        tenant = self._random.choice(("acme", "blue"))
        ids = self._random.sample(self._jobs, min(3, len(self._jobs)))
        self.maker.command(*(submit(one, tenant=tenant, issued_at=now, **self._body(tenant)) for one in ids))

    def _due(self) -> None:
        self.maker.due()

    def _due_granted(self) -> None:
        self.maker.due(self._random.choice(SESSIONS))

    def _grant(self) -> None:
        self.maker.grant(self._random.choice(SESSIONS), self._random.randint(1, 8))

    def _succeed(self) -> None:
        session = self._random.choice(SESSIONS)
        self.maker.report(success(self._some(session), session))

    def _fail(self) -> None:
        session = self._random.choice(SESSIONS)
        for held in self._some(session):
            self.maker.report(failure(held, session, is_permanent=self._random.random() < 0.2))

    def _snooze(self) -> None:
        for held in self._some(""):
            row = Snoozed(*keys.names(held.key), held.token, self._random.choice((0, 5_000)), reason="later")
            self.maker.report(Report(held.execution.session, 1, snoozed=[row]))

    def _progress(self) -> None:
        for held in self._some(""):
            row = Progress(
                *keys.names(held.key), held.token, 0.5, "half", self._random.choice((b"", b"1", b"[2]"))
            )
            self.maker.report(Report(held.execution.session, 1, progress=[row]))

    def _cancel_by_task(self) -> None:
        for held in self._some("")[:1]:
            row = CancelledByTask(*keys.names(held.key), held.token, "no longer wanted")
            self.maker.report(Report(held.execution.session, 1, cancelled=[row]))

    def _ask(
        self, kind: type[CancelExecution | RedriveExecution | DiscardExecution], row: bytes, **more: bytes
    ) -> None:
        tenant, name = keys.names(row)
        self.maker.command(
            kind(
                tenant=tenant,
                job_id=name.rpartition(":")[0],
                command_id=f"x{len(self.maker.records)}",
                issued_at=self.maker.clock.now(),
                execution=name,
                **more,  # type: ignore[arg-type]  # of a redrive
            )
        )

    def _cancel_execution(self) -> None:
        open_rows = [key for key, _ in self.maker.book.executions.scan(b"")]
        open_rows += [held.key for held in self.maker.running()]
        if open_rows:
            self._ask(CancelExecution, self._random.choice(open_rows))

    def _redrive(self) -> None:
        dead = [key[4:] for key, _ in self.maker.book.dead.scan(b"")]
        if dead:
            more = {"payload": b'"other"'} if self._random.random() < 0.5 else {}
            self._ask(RedriveExecution, self._random.choice(dead), **more)

    def _discard(self) -> None:
        dead = [key[4:] for key, _ in self.maker.book.dead.scan(b"")]
        if dead:
            self._ask(DiscardExecution, self._random.choice(dead))

    def _overrun(self) -> None:
        now = self.maker.clock.now()
        for held in self._some("")[:1]:
            tenant, name = keys.names(held.key)
            execution = held.execution
            self.maker.add(
                facts.AttemptStuck(
                    tenant, name, execution.attempt, held.token, execution.session, now - 1_000
                ),
                *overrun(self.maker.book, held, "Stuck", "no progress", now),
            )

    def _pause(self) -> None:
        kind = self._random.choice((PauseQueue, DrainQueue, ResumeQueue, ResumeQueue))
        self._tell_queue(kind, self._random.choice(("default", "q1")))

    def _tell_queue(self, kind: type[PauseQueue | DrainQueue | ResumeQueue], name: str) -> None:
        command_id = f"p{len(self.maker.records)}"
        self.maker.command(kind(name=name, command_id=command_id, issued_at=self.maker.clock.now()))

    def _limit(self) -> None:
        now = self.maker.clock.now()
        kind, more = self._random.choice(
            (
                (DeclareLimit, {"concurrency": self._random.randint(1, 3)}),
                (DeclareLimit, {"rate_count": 5, "rate_period_ms": 1_000}),
                (PauseLimit, {"for_ms": 60_000}),
                (PauseLimit, {}),
                (DeleteLimit, {}),
            )
        )
        about = {
            "tenant": self._random.choice(("acme", "blue")),
            "name": self._random.choice(("", "k1", "k2")),
        }
        self.maker.command(kind(command_id=f"l{len(self.maker.records)}", issued_at=now, **about, **more))

    def _hand_back(self) -> None:
        session = self._random.choice(SESSIONS)
        self.maker.report(hand_back(self._some(session), session))

    def _lose(self) -> None:
        self.maker.lose(self._some(self._random.choice(SESSIONS)))

    def _withdraw(self) -> None:
        self.maker.withdraw(self._some(self._random.choice(SESSIONS)))

    def _die(self) -> None:
        """A session ends; what waits elsewhere and was withdrawn from it counts as a loss."""
        session = self._random.choice(SESSIONS)
        self.maker.lose(self.maker.running(session))
        held = self._some("") or []
        self.maker.withdraw(held)
        now = self.maker.clock.now()
        for item in held:
            waiting = self.maker.book.execution(item.key)
            if waiting is not None and waiting.status in ("queued", "scheduled"):
                self.maker.add(*died(self.maker.book, item._replace(token=-1, execution=waiting), now))
        if self.maker.book.sessions.get(session.encode()) is not None:
            self.maker.add(facts.SessionEnded(session, "lease_over"))

    def _stale(self) -> None:
        for held in self._some(""):
            self.maker.report(success([held._replace(token=held.token - 1)], held.execution.session))

    def _declare(self) -> None:
        number = self._random.randint(0, 9)
        self.maker.command(
            DeclareQueue(
                name=f"q{number}", command_id=f"d{len(self.maker.records)}", issued_at=self.maker.clock.now()
            )
        )

    def _declare_task(self) -> None:
        schema, command_id = self._random.choice(("", "{}")), f"t{len(self.maker.records)}"
        self.maker.command(
            DeclareTask(
                name="t", command_id=command_id, issued_at=self.maker.clock.now(), payload_schema=schema
            )
        )

    def _ask_worker(self) -> None:
        worker, command_id = self._random.choice(("w1", "w2")), f"w{len(self.maker.records)}"
        what = self._random.choice(WISHES)
        self.maker.command(
            AskWorker(name=worker, command_id=command_id, issued_at=self.maker.clock.now(), what=what)
        )

    def _mail(self) -> None:
        offset = self.maker.reader.position
        self.maker.add(facts.MailTaken(3, offset, 0), facts.QueueCopied("mailed", offset, False, ["acme"]))
        version = self._random.randint(1, 9)
        self.maker.add(facts.LimitCopied("acme", "mailed", version, version, -1, -1, -1, version == 9))

    def _take_over(self) -> None:
        self.maker.take_over(f"owner-{self._random.randint(1, 3)}/{len(self.maker.records)}")

    def _lost_race(self) -> None:
        """Another process' frame for the place that this owner's frame then gets."""
        late = self.maker.made([facts.MailTaken(1, 1, 1)], self.maker.clock.now(), owner="owner-9/z")
        self._submit()
        for _ in range(self._random.randint(0, 2)):
            self._due()
        self.maker.void(encode_frame(late))

    def _junk(self) -> None:
        self.maker.void(self._random.choice((None, b"", b"junk")), self._random.choice((None, b"key")))

    def _wrong_clock(self) -> None:
        self.maker.void(encode_frame(self.maker.made([], self.maker.clock.now() + 5_000)))

    def _forget(self) -> None:
        today = self.maker.clock.now() // keys.DAY_MS
        self.maker.add(
            *(
                facts.DayForgotten(day)
                for day in self.maker.book.cursor.days
                if today - day > keys.REMEMBERED_DAYS
            )
        )

    def _note(self) -> None:
        """What is on record without any state that follows from it."""
        self.maker.add(
            facts.RecordRejected("job-commands", 0, 1, "null value"),
            facts.InputRefused("worker-reports", 1, 0, "internal_error"),
            facts.OutputRefused(1, "ToSession", "too large"),
            facts.CommandForwarded(1, "acme", "far", "c", 1, 1, b"command"),
        )

    def _empty(self) -> None:
        self.maker.add()

    def _about_operation(self) -> dict[str, object]:
        number = len(self.maker.records)
        return {
            "tenant": self._random.choice(("acme", "blue")),
            "operation": f"op-{self._random.randint(1, 9)}",
            "command_id": f"o{number}",
            "issued_at": self.maker.clock.now(),
            "actor": "somebody",
        }

    def _start_operation(self) -> None:
        wanted = OperationFilter(
            cause=self._random.choice(("", "", "attempts")), job_prefix=self._random.choice(("", "job-1"))
        )
        self.maker.command(
            StartOperation(
                **self._about_operation(),  # type: ignore[arg-type]  # fields of the command
                filter=wanted,
                rate_per_s=self._random.choice((0, 0, 1)),
            )
        )

    def _start_backfill(self) -> None:
        recurring = [row for row, job in self.maker.book.jobs.scan(b"") if not job.is_once]
        tenant, job_id = keys.names(self._random.choice(recurring)) if recurring else ("acme", self._job())
        until_at = self.maker.clock.now() - self._random.randint(0, 3_600_000)
        from_at = until_at - self._random.choice((60_000, 3_600_000, 30 * 3_600_000))
        about = self._about_operation() | {"tenant": tenant, "operation": f"fill-{len(self.maker.records)}"}
        self.maker.command(
            StartOperation(
                **about,  # type: ignore[arg-type]  # fields of the command
                kind="backfill",
                filter=OperationFilter(job_id=job_id, from_at=from_at, until_at=until_at),
            )
        )

    def _cancel_operation(self) -> None:
        self.maker.command(CancelOperation(**self._about_operation()))  # type: ignore[arg-type]  # as above

    def _advance_operations(self) -> None:
        with self.maker.frame() as draft:
            for _, share in list(self.maker.book.shares.scan(b"")):
                for event in advance(self.maker.book, share, draft.now):
                    draft.add(event)
