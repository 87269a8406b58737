"""Changes as they are folded, kept for a while and told to whoever listens, at most four times a second.

The fold only notes what a frame was about, and only while somebody listens. One task tells it: what changed since it last
told is one `Turn`, in which of several changes of a subject the last one counts. How subjects stand is looked up once for
each tenant, a message is made once for all who wish the same, and each listener has a short queue of its own: one that
does not take its messages loses them, is told so by `reset`, and holds up nobody.

The latest turns are kept, so that who comes back with the `id` of the last message it saw is told what it missed.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Iterator
from typing import Final, NamedTuple

import msgspec
import structlog
from fastapi.sse import format_sse_event
from msgspec import UNSET

from api.live.standing import Standing, standings
from api.live.subjects import Subject, subjects_of
from api.positions import Token, encode_token
from api.view import View
from minutebook.client.live_models import Change, Changes
from minutebook.clock import Clock
from minutebook.times import format_instant
from minutebook.wire.frames import Frame

TURN_S: Final = 0.25
KEEP_ALIVE_S: Final = 15.0
LINGER_S: Final = 60.0
"""So long after the last listener has left, changes are still noted: it may come back."""
KEPT_MAX: Final = 20_000
"""Changes kept of the past, and noted within one turn."""
TOLD_MAX: Final = 500
"""Changes in one message: where there are more, the listener is told to read anew."""
QUEUED_MAX: Final = 8
"""Messages that wait for one listener."""
_TRAITS_MAX: Final = 4_096

_log = structlog.get_logger()
_encode: Final = msgspec.json.Encoder().encode


class Seen(NamedTuple):
    """The frame that changed a subject last: where it lies, and when it was decided (ms, UTC)."""

    partition: int
    offset: int
    at: int


class Turn:
    """What changed between two tellings, up to and including `through`. `is_whole` False: there was too much to note."""

    def __init__(self) -> None:
        self.seen: dict[Subject, Seen] = {}
        self.is_whole = True
        self.through = Token()


class Wish(NamedTuple):
    """Who listens, and to what: empty = to everything of the tenant. `sees_all`: queues of other tenants too."""

    tenant: str
    job_id: str = ""
    task: str = ""
    queue: str = ""
    status: str = ""
    sees_all: bool = False


class Listener:
    """One stream. Messages wait here, a few of them."""

    def __init__(self, wish: Wish) -> None:
        self.wish = wish
        self.is_closed = False
        self._messages: deque[bytes] = deque()
        self._ready = asyncio.Event()

    def put(self, message: bytes, through: Token) -> None:
        """One more message; where too many wait, they give way to one that says so."""
        if len(self._messages) >= QUEUED_MAX:
            self._messages.clear()
            message = _reset("this listener is too slow", through)
        self._messages.append(message)
        self._ready.set()

    def close(self) -> None:
        """End the stream, once what waits is taken."""
        self.is_closed = True
        self._ready.set()

    async def take(self, timeout_s: float) -> bytes | None:
        """All messages that wait, as soon as there is one; nothing after `timeout_s`; None at the end."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._ready.wait()
        except TimeoutError:
            return b""
        self._ready.clear()
        if not self._messages and self.is_closed:
            return None
        found = b"".join(self._messages)
        self._messages.clear()
        if self.is_closed:
            self._ready.set()
        return found


class LiveChanges:
    """All listeners of this process, and the changes that they may be told."""

    def __init__(self, view: View, clock: Clock) -> None:
        self._view = view
        self._clock = clock
        self._listeners: set[Listener] = set()
        self._turn = Turn()
        self._kept: deque[Turn] = deque()
        self._kept_changes = 0
        self._before = Token()
        self._has_moved = asyncio.Event()
        self._left_at = 0.0
        self._telling: asyncio.Task[None] | None = None
        self._traits: dict[tuple[str, str], tuple[str, str]] = {}

    def __len__(self) -> int:
        """How many listen."""
        return len(self._listeners)

    async def stream(self, wish: Wish, after: Token | None, life_s: float) -> AsyncIterator[bytes]:
        """What `wish` asks for as server-sent events, for `life_s` at most. `after`: what the caller has seen last; None:
        it begins now, if it gave something that cannot be read, by `Token()` of nothing it is told to read anew.
        """
        listener = Listener(wish)
        ends_at = self._clock.monotonic() + life_s
        first = self._enter(listener, after)
        try:
            yield first
            while self._clock.monotonic() < ends_at:
                found = await listener.take(KEEP_ALIVE_S)
                if found is None:
                    return
                yield found or format_sse_event(comment="keep-alive", id=encode_token(self._told()))
        finally:
            self._listeners.discard(listener)
            self._left_at = self._clock.monotonic()

    def close(self) -> None:
        """End all streams: the process leaves."""
        for listener in self._listeners:
            listener.close()
        if self._telling is not None:
            self._telling.cancel()

    # -- the fold notes

    def _note(self, partition: int, frame: Frame) -> None:
        seen = Seen(partition, frame.offset, frame.now)
        noted = self._turn.seen
        for event in frame.events:
            for subject in subjects_of(event, partition):
                noted[subject] = seen
        if len(noted) > KEPT_MAX:
            noted.clear()
            self._turn.is_whole = False
        self._has_moved.set()

    # -- listeners come

    def _enter(self, listener: Listener, after: Token | None) -> bytes:
        """Begin to tell a listener; its first message."""
        if self._telling is None:
            self._before = self._view.reached()
            self._view.heard = self._note
            self._telling = asyncio.create_task(self._tell_all(), name="live changes")
        self._listeners.add(listener)
        if after is None:
            return format_sse_event(event="position", data_str="{}", id=encode_token(self._view.reached()))
        missed = self._missed(listener.wish, after)
        if missed is None:
            return _reset("what came after that position is no longer kept", self._view.reached())
        if missed:
            return _message(missed, self._told())
        return format_sse_event(event="position", data_str="{}", id=encode_token(self._told()))

    def _told(self) -> Token:
        """Up to where turns are closed."""
        return self._kept[-1].through if self._kept else self._before

    def _missed(self, wish: Wish, after: Token) -> list[Change] | None:
        """What `wish` asks for of the turns closed since `after`; None if not all of it is kept, or too much."""
        if not _covers(after, self._before):
            return None
        seen: dict[Subject, Seen] = {}
        for turn in self._kept:
            if not _covers(after, turn.through):
                if not turn.is_whole:
                    return None
                seen |= {
                    subject: at
                    for subject, at in turn.seen.items()
                    if at.offset > after.events.get(at.partition, -1) and subject.tenant in ("", wish.tenant)
                }
        if len(seen) > TOLD_MAX:
            return None
        now = self._clock.now()
        return [
            change for found in self._changes(seen, now) if (change := self._wanted(wish, *found)) is not None
        ]

    # -- turns are told

    async def _tell_all(self) -> None:
        """Tell turn after turn, until nobody listens for a while."""
        try:
            while self._listeners or self._clock.monotonic() - self._left_at < LINGER_S:
                try:
                    async with asyncio.timeout(LINGER_S):
                        await self._has_moved.wait()
                except TimeoutError:
                    continue
                self._has_moved.clear()
                await self._tell(self._close_turn())
                await asyncio.sleep(TURN_S)
        except Exception:
            _log.exception("live_changes_failed")
            for listener in self._listeners:
                listener.close()
        finally:
            self._view.heard = None
            self._telling = None
            self._turn = Turn()
            self._kept.clear()
            self._kept_changes = 0
            self._traits.clear()

    def _close_turn(self) -> Turn:
        """What was noted, as a turn that is kept; the oldest ones make room."""
        turn, self._turn = self._turn, Turn()
        turn.through = self._view.reached()
        self._kept.append(turn)
        self._kept_changes += len(turn.seen)
        while self._kept_changes > KEPT_MAX and len(self._kept) > 1:
            oldest = self._kept.popleft()
            self._kept_changes -= len(oldest.seen)
            self._before = oldest.through
        for subject in turn.seen:
            if subject.kind == "job":
                self._traits.pop((subject.tenant, subject.id), None)
        return turn

    async def _tell(self, turn: Turn) -> None:
        """Tell everybody what they wish of a turn; others get their turn in between."""
        groups: dict[Wish, list[Listener]] = {}
        for listener in self._listeners:
            groups.setdefault(listener.wish, []).append(listener)
        by_tenant: dict[str, list[tuple[Standing, Seen]] | None] = {}
        for wish, listeners in groups.items():
            if wish.tenant not in by_tenant:
                by_tenant[wish.tenant] = self._of_tenant(turn, wish.tenant)
            message = self._told_of(by_tenant[wish.tenant], wish, turn.through)
            if message:
                for listener in listeners:
                    listener.put(message, turn.through)
            await asyncio.sleep(0)

    def _of_tenant(self, turn: Turn, tenant: str) -> list[tuple[Standing, Seen]] | None:
        """How the changed subjects of a tenant stand, and those of nobody; None if they are too many."""
        seen = {subject: at for subject, at in turn.seen.items() if subject.tenant in ("", tenant)}
        if not turn.is_whole or len(seen) > TOLD_MAX:
            return None
        return list(self._changes(seen, self._clock.now()))

    def _told_of(self, found: list[tuple[Standing, Seen]] | None, wish: Wish, through: Token) -> bytes:
        """The message for `wish`; empty if it does not concern it."""
        if found is None:
            return _reset("too much has changed at once", through)
        wanted = [change for pair in found if (change := self._wanted(wish, *pair)) is not None]
        return _message(wanted, through) if wanted else b""

    def _changes(self, seen: dict[Subject, Seen], now: int) -> Iterator[tuple[Standing, Seen]]:
        told: dict[Subject, tuple[Standing, Seen]] = {}
        for subject, at in seen.items():
            for standing in standings(self._view, subject, now):
                told[standing.subject] = standing, at
        return iter(told.values())

    def _wanted(self, wish: Wish, standing: Standing, seen: Seen) -> Change | None:
        """The change as it is told; None if `wish` does not ask for it, or may not see it."""
        kind, _, name = standing.subject
        is_hidden = standing.tenants is not None and wish.tenant not in standing.tenants and not wish.sees_all
        if is_hidden or (wish.status and wish.status not in (standing.status, standing.outcome)):
            return None
        if wish.job_id and wish.job_id != standing.job_id:
            return None
        if wish.task or wish.queue:
            task, queue = self._traits_of(standing)
            if (wish.task and wish.task != task) or (wish.queue and wish.queue != queue):
                return None
        return Change(
            kind=kind,
            id=name,
            status=standing.status,
            outcome=standing.outcome,
            job_id=standing.job_id or UNSET,
            at=format_instant(seen.at),
            position=f"{seen.partition}:{seen.offset}",
        )

    def _traits_of(self, standing: Standing) -> tuple[str, str]:
        """Task and queue of the job that a change is about; a task and a queue are their own."""
        kind, tenant, name = standing.subject
        if not standing.job_id:
            return (name if kind == "task" else ""), (name if kind == "queue" else "")
        key = tenant, standing.job_id
        found = self._traits.get(key)
        if found is None:
            job = self._view.job(*key)
            found = ("", "") if job is None else (job[0].task, job[0].queue)
            if len(self._traits) >= _TRAITS_MAX:
                self._traits.clear()
            self._traits[key] = found
        return found


def _covers(seen: Token, through: Token) -> bool:
    """Whether who has seen `seen` has seen everything up to `through`."""
    return all(seen.events.get(partition, -1) >= offset for partition, offset in through.events.items())


def _message(changes: list[Change], through: Token) -> bytes:
    data = _encode(Changes(changes)).decode()
    return format_sse_event(event="changes", data_str=data, id=encode_token(through))


def _reset(reason: str, through: Token) -> bytes:
    data = _encode({"reason": reason}).decode()
    return format_sse_event(event="reset", data_str=data, id=encode_token(through))
