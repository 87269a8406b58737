"""What a worker is asked to do from outside, decided at the worker's home: the partition of its id.

It is a wish about a process, not a fact about jobs: nothing but the asking itself follows from it. The home repeats it
until the worker's pulses show that it was heard.
"""

from __future__ import annotations

from typing import Final

from minutebook.domain import events as facts
from minutebook.domain.book import Book
from minutebook.domain.commands import REASON_CHARS_MAX, AskWorker
from minutebook.domain.events import Event
from minutebook.domain.records import Pulse
from minutebook.domain.refusal import Refusal, answered

QUIET: Final = "quiet"
RESUME: Final = "resume"
STOP: Final = "stop"
WISHES: Final = (QUIET, RESUME, STOP)


def ask_worker(book: Book, command: AskWorker, stamp: int) -> Event:
    """Event of a wish; one that is no other than the last changes nothing. Raises Refusal."""
    if command.what not in WISHES:
        raise Refusal("invalid", "what", f"must be one of {', '.join(WISHES)}")
    asked = book.remembered(book.asked, command.name.encode())
    if asked == command.what:
        return answered(command, "exists")
    if asked == STOP:
        raise Refusal("worker_stops", "what", "it was asked to stop, which is final; start another worker")
    return facts.WorkerAsked(
        command.name,
        command.what,
        command.command_id,
        command.actor,
        command.reason[:REASON_CHARS_MAX],
        stamp,
    )


def is_heard(what: str, pulse: Pulse) -> bool:
    """Whether a pulse shows that its worker does what it was asked; one that leaves takes nothing, whatever it was asked."""
    if pulse.is_leaving:
        return True
    return what != STOP and pulse.is_quiet == (what == QUIET)
