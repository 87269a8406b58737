"""What differs between an event as a frame has it and as it is decided again, in plain words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from minutebook.domain.events import Event
from minutebook.times import format_instant

_CHARS_MAX: Final = 200
_FIELDS_MAX: Final = 3


def difference(said: Event | None, again: Event | None) -> str:
    """`said`: by the frame, `again`: decided again; None = no such event. Not both."""
    if said is None:
        return f"an event is left out: {_brief(again)}"
    if again is None:
        return f"nothing calls for the event {_brief(said)}"
    if type(said) is not type(again):
        return f"the frame says {_brief(said)}; decided again it is {_brief(again)}"
    fields = list(_fields(said, again))
    more = f"; and {len(fields) - _FIELDS_MAX} fields more" if len(fields) > _FIELDS_MAX else ""
    return f"{type(said).__name__}{_about(said)}: {'; '.join(fields[:_FIELDS_MAX])}{more}"


def _fields(said: Event, again: Event) -> Iterator[str]:
    for name in said.__struct_fields__:
        one, other = getattr(said, name), getattr(again, name)
        if one == other:
            continue
        place = ""
        if isinstance(one, list) and isinstance(other, list):
            row = _first(one, other)
            place = f" of row {row}"
            one, other = _at(one, row), _at(other, row)
        yield f"{name}{place} is {_value(name, one)}, decided again {_value(name, other)}"


def _first(one: Sequence[Any], other: Sequence[Any]) -> int:
    both = enumerate(zip(one, other, strict=False))
    return next((row for row, (a, b) in both if a != b), min(len(one), len(other)))


def _at(column: Sequence[Any], row: int) -> Any:
    return column[row] if row < len(column) else "nothing"


def _value(name: str, value: Any) -> str:
    if name.endswith("_at") and isinstance(value, int) and value >= 0:
        return f"{value} ({format_instant(value)})"
    return _cut(repr(value))


def _brief(event: Event | None) -> str:
    return _cut(f"{type(event).__name__}{_about(event)}")


def _about(event: Event | None) -> str:
    """Whom it is about, as far as it says."""
    names = ("tenant", "job_id", "execution", "executions", "name", "limit", "key", "operation", "session")
    found = [str(value) for name in names if isinstance(value := getattr(event, name, None), str) and value]
    columns = getattr(event, "executions", None) or getattr(event, "job_ids", None) or []
    found += [str(value) for value in columns[:3]]
    return f" of {' '.join(found)}" if found else ""


def _cut(text: str) -> str:
    return text if len(text) <= _CHARS_MAX else f"{text[:_CHARS_MAX]}…"


def words(error: Exception) -> str:
    """What a decision that failed says of itself."""
    return _cut(f"{type(error).__name__}: {error}")
