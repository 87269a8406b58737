"""`minutebook worker`: run one, and through the API see those that run and ask something of one."""

from __future__ import annotations

from typing import Annotated

import typer

from minutebook.cli.exits import ExitCode
from minutebook.cli.job import undecided
from minutebook.cli.options import Reason, Yes, ask
from minutebook.cli.output import Format, Output, fault, note, write_many, write_one
from minutebook.client import Command, SyncClient
from minutebook.client.fleet import Worker
from minutebook.client.fleet_calls import Wish

app = typer.Typer(help="Workers: processes that run tasks.", no_args_is_help=True)
_COLUMNS = ("id", "name", "status", "running", "offered", "version", "last pulse")
WorkerId = Annotated[str, typer.Argument(metavar="WORKER", help="Id of the worker, as `list` shows it.")]

try:
    from minutebook.cli.worker import run

    app.command()(run)
except ModuleNotFoundError as error:
    _missing = error.name

    @app.command("run", context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
    def explain() -> None:
        """Run the tasks of an app. Needs the extra `worker`."""
        fault(
            f"`minutebook worker run` needs {_missing!r}: install it with `pip install 'minutebook[worker]'`"
        )
        raise typer.Exit(ExitCode.USAGE)


@app.command("list")
def list_(output: Output = Format.TABLE) -> None:
    """List the workers heard of in the last minutes, by name."""
    with SyncClient() as client:
        items = client.workers()
        write_many(items, output, _COLUMNS, map(_row, items))


@app.command()
def show(worker: WorkerId, output: Output = Format.TABLE) -> None:
    """Show a worker: its tasks and queues, and what it runs for your tenant."""
    with SyncClient() as client:
        found = client.worker(worker)
    queues = [
        queue.name if queue.cap is None else f"{queue.name} (at most {queue.cap})" for queue in found.queues
    ]
    fields = {
        **dict(zip(_COLUMNS, _row(found), strict=True)),
        "lease": found.lease,
        "tasks": ", ".join(found.tasks),
        "queues": ", ".join(queues),
        "partitions": len(found.sessions),
    }
    runs = {
        f"runs {one.execution_id}": f"{one.task}, attempt {one.attempt}, since {one.since}"
        for one in found.executions
    }
    more = {"runs besides": found.not_shown} if found.not_shown else {}
    write_one(found, output, {**fields, **runs, **more})


@app.command()
def quiet(worker: WorkerId, reason: Reason = "", output: Output = Format.TABLE) -> None:
    """Ask a worker to take no more grants; what it runs goes on. `resume` undoes it."""
    _ask(worker, "quiet", reason, output)


@app.command()
def resume(worker: WorkerId, reason: Reason = "", output: Output = Format.TABLE) -> None:
    """Ask a worker to take grants again."""
    _ask(worker, "resume", reason, output)


@app.command()
def stop(worker: WorkerId, reason: Reason = "", yes: Yes = False, output: Output = Format.TABLE) -> None:
    """Ask a worker to leave as on SIGTERM: finish within its grace, hand back the rest, exit with 0. It is final."""
    ask(f"Stop {worker}?", yes=yes)
    _ask(worker, "stop", reason, output)


def _ask(worker: str, what: Wish, reason: str, output: Format) -> None:
    with SyncClient() as client:
        answer = client.ask_worker(worker, what, reason=reason)
    if isinstance(answer, Command):
        raise undecided(answer, output)
    write_one(answer, output, dict(zip(_COLUMNS, _row(answer), strict=True)))
    note(f"Asked to {_SAID[what]}; `minutebook worker show {answer.id}` tells when it does.")


_SAID = {"quiet": "take no more grants", "resume": "take grants again", "stop": "leave"}


def _row(item: Worker) -> tuple[object, ...]:
    return item.id, item.name, item.status, item.running, item.offered, item.version, item.last_pulse_at
