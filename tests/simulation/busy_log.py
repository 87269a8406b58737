"""A log in which a bit of everything happens, the same for the same seed."""

from __future__ import annotations

import random

from minutebook.domain import events as facts
from minutebook.domain import keys
from minutebook.domain.commands import DeclareQueue
from minutebook.domain.results import died
from minutebook.wire.frames import encode_frame
from streams.cycle import REMEMBERED_DAYS
from tests.simulation.log_maker import (
    LogMaker,
    cancel,
    failure,
    hand_back,
    run_now,
    submit,
    success,
)

SESSIONS = ("w1.1", "w2.1", "w3.1")
CRONS = ("* * * * *", "*/5 * * * *", "30 2 * * *")


class BusyLog:
    """Takes random steps on a log; every step appends at least one record."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self.maker = LogMaker()
        self.maker.open()
        self._jobs: list[str] = []
        self._steps = [
            self._submit,
            self._submit,
            self._submit,
            self._cancel,
            self._run_now,
            self._due,
            self._due,
            self._due_granted,
            self._grant,
            self._grant,
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
            self._junk,
            self._wrong_clock,
            self._forget,
            self._empty,
            self._note,
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
        now = self.maker.clock.now()
        commands = []
        for _ in range(self._random.randint(1, 6)):
            job_id = f"job-{len(self._jobs)}"
            self._jobs.append(job_id)
            at = self._random.choice(
                (
                    {},
                    {"delay_ms": self._random.randint(0, 90_000)},
                    {"run_at": now - 5_000},
                    {"cron": self._random.choice(CRONS)},
                )
            )
            payload = b'"' + b"x" * self._random.randint(0, 300) + b'"'
            tenant = self._random.choice(("acme", "blue"))
            commands.append(
                submit(job_id, tenant=tenant, payload=payload, task=self._random.choice("tuv"), **at)
            )
        self.maker.command(*commands)

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
                self.maker.add(*died(item._replace(token=-1, execution=waiting), now))
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

    def _mail(self) -> None:
        offset = self.maker.reader.position
        self.maker.add(facts.MailTaken(3, offset, 0), facts.QueueCopied("mailed", offset, False, ["acme"]))

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
            *(facts.DayForgotten(day) for day in self.maker.book.cursor.days if today - day > REMEMBERED_DAYS)
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
