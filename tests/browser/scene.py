"""An installation in which much goes on: jobs, workers, queues, limits, operations, for pages to show."""

from __future__ import annotations

from typing import Any, Final

from minutebook.domain import events as facts
from minutebook.domain.commands import DeclareTask
from minutebook.domain.records import FullPulse, Pulse, QueueOffer, Report
from minutebook.ids import task_key
from minutebook.mint import mint_id
from minutebook.wire import codec
from minutebook.wire.topics import partition_of
from tests.api.memory import PARTITIONS, Installation
from tests.api.runs import come, fail, succeed
from tests.browser.served import Served

TASKS: Final = ("mail.send", "report.build", "invoice.close", "cache.warm")
_OWNERS: Final = ("owner-1", "owner-2")


def play(served: Served) -> None:
    """Let it be as on a working day."""
    served.do(_take_partitions)
    served.do(_declare_tasks)
    for name in ("mail", "reports", "archive"):
        served.api("POST", "/v1/queues", json={"name": name})
    served.api("POST", "/v1/queues/archive/pause", json={"reason": "the archive moves to another disk"})
    served.api(
        "PUT", "/v1/limits/mail.example", json={"concurrency": 10, "rate_count": 100, "rate_period": "PT1M"}
    )
    served.api("PUT", "/v1/limits/reports", json={"concurrency": 3})
    served.api("PUT", "/v1/tenant-limit", json={"concurrency": 500})
    served.api("POST", "/v1/limits/reports/pause", json={"until": "PT30M", "reason": "the database is slow"})
    for number in range(4):
        _batch(served, number)
    served.do(_run)
    served.do(pulse_all)
    body = {"kind": "redrive", "filter": {"task": "mail.send"}, "reason": "the relay is back"}
    served.api("POST", "/v1/operations", json=body, headers={"idempotency-key": "scene"})


def pulse_all(world: Installation) -> None:
    """Every worker pulses now."""
    for number, name in enumerate(("host-a", "host-b", "host-c")):
        tasks = list(TASKS[: 3 - number] or TASKS[:1])
        queues = [] if number else [QueueOffer("default"), QueueOffer("mail", 20)]
        pulse = Pulse(8 - number, -1, is_quiet=number == 2)
        full = FullPulse(name, "0.1.0", tasks, queues, 10_000, 3_000, list(range(number + 2)))
        for partition in range(PARTITIONS):
            report = Report(f"{name}-1.{partition}", 1, pulse, full)
            world.services.workers.take(partition, codec.encode(report), world.clock.now())


def _take_partitions(world: Installation) -> None:
    for partition in range(PARTITIONS):
        taken = facts.OwnershipTaken(_OWNERS[partition % 2], 1, 0, 0)
        world.log.append(partition, [taken])


def _declare_tasks(world: Installation) -> None:
    for name in TASKS:
        command = DeclareTask(
            name=name,
            command_id=mint_id(),
            issued_at=world.clock.now(),
            actor="worker:host-a",
            payload_schema='{"type":"object"}' if name == "mail.send" else "",
        )
        world.log._decide(partition_of(task_key(name), PARTITIONS), command)


def _batch(served: Served, number: int) -> None:
    """A hundred jobs, most of them in the next hours, many at the full hour."""
    jobs: list[dict[str, Any]] = []
    for n in range(100):
        task = TASKS[n % 3]
        job: dict[str, Any] = {
            "id": f"{task}-{number}-{n}",
            "task": task,
            "queue": "mail" if n % 3 == 0 else "default",
        }
        if n < 12:
            job |= {"delay": f"PT{n}S"}
        elif n < 50:
            job |= {"cron": "0 1 * * *"}
        else:
            job |= {"delay": f"PT{(n * n * 7) % 700}M"}
        if task == "mail.send":
            job["payload"] = {}
        jobs.append(job)
    served.api("POST", "/v1/jobs/batch", json={"jobs": jobs}, headers={"idempotency-key": f"scene-{number}"})


def _run(world: Installation) -> None:
    """What is due runs; some fails for good."""
    for step in range(12):
        world.clock.advance(1_000)
        come(world, is_granted=step != 11)
        for book in world.log.books:
            for key, _ in list(book.running.scan(b"")):
                tenant, name = key.decode().split("\0")[:2]
                if name.endswith("0") and "mail" in name:
                    fail(world, name, "SmtpError", tenant=tenant)
                elif step < 9:
                    succeed(world, name, tenant=tenant)
