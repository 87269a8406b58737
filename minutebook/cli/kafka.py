"""`minutebook kafka`: the embedded broker alone, for development: a real Kafka on this machine, never for production."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Annotated, Final

import msgspec
import typer

from minutebook.cli.dev import stop_signals
from minutebook.cli.exits import ExitCode
from minutebook.cli.output import Format, Output, fault, note, write_one
from minutebook.embedded.broker import Broker
from minutebook.embedded.held import held, stop_held

app = typer.Typer(help="The embedded Kafka, for development.", no_args_is_help=True)

_STOP_S: Final = 40
Data = Annotated[Path, typer.Option(help="Folder of everything it keeps.")]
_DATA: Final = Path(".minutebook/kafka-alone")


class KafkaStatus(msgspec.Struct):
    """An embedded broker: the process that holds it, and where clients reach it; both null where none runs."""

    data: str
    pid: int | None
    bootstrap_servers: str | None


@app.command()
def start(
    data: Data = _DATA,
    port: Annotated[int | None, typer.Option(help="Port of the clients; a free one by default.")] = None,
    output: Output = Format.TABLE,
) -> None:
    """Run a broker here until Ctrl-C, SIGTERM or `minutebook kafka stop`. It ends with this process."""
    broker = Broker(data, port)
    with stop_signals():
        try:
            broker.start(note)
            _write(data, output)
            threading.Event().wait()
        except KeyboardInterrupt:
            raise typer.Exit(ExitCode.INTERRUPTED) from None
        finally:
            broker.stop()


@app.command()
def status(data: Data = _DATA, output: Output = Format.TABLE) -> None:
    """Say where the broker on a folder is. Exit code 1 where none runs."""
    if not _write(data, output):
        raise typer.Exit(ExitCode.NO)


@app.command()
def stop(data: Data = _DATA, output: Output = Format.TABLE) -> None:
    """Let the broker on a folder close its files and end, and wait for that. Its data stays."""
    if not stop_held(data, _STOP_S):
        fault(f"the broker on {data} did not end within {_STOP_S} s")
        raise typer.Exit(ExitCode.UNREACHABLE)
    _write(data, output)


def _write(data: Path, output: Format) -> bool:
    found = held(data)
    told = KafkaStatus(str(data), *(found or (None, None)))
    write_one(told, output, msgspec.structs.asdict(told))
    if found is None:
        note(f"No broker runs on {data}.")
    return found is not None
