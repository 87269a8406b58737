"""One field of a cron expression: from its text to the set of values that it names, as bits.

A list (`,`) of `*`, values and ranges `a-b`, each with an optional step: `*/n`, `a-b/n`, and `a/n` from `a` to the
field's end. `H`, `H(a-b)`, `H/n` and `H(a-b)/n` take their value from the job. What only the day fields know (`L`, `W`,
`#`) is read there: see `day_fields`.
"""

import re
from hashlib import sha256
from typing import NamedTuple

from minutebook.errors import ScheduleError
from minutebook.schedule.tzif import YEAR_END

ANY_JOB = "*"
"""In place of a job's key: an `H` names every value that some job could have."""


class Field(NamedTuple):
    """A field and its bounds."""

    name: str
    low: int
    high: int
    """Largest number that is accepted."""
    last: int
    """Last value of `*` and `a/n`: Sunday as 7 would be counted twice."""
    hashed_last: int
    """Last value of `H`: every month has it."""
    names: tuple[str, ...] = ()
    """Of the values from `low` on."""
    hint: str = "L, W and # are accepted in the two day fields only"
    """Remedy for an item with L, W or # that is not taken."""

    def refusal(self, reason: str) -> ScheduleError:
        """The error for a text of this field."""
        return ScheduleError("cron", f"{self.name} field: {reason}")


_MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
_WEEKDAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
SECOND = Field("second", 0, 59, 59, 59)
MINUTE = Field("minute", 0, 59, 59, 59)
HOUR = Field("hour", 0, 23, 23, 23)
DAY = Field(
    "day-of-month", 1, 31, 31, 28, hint="give L (the last day), L-3 (three days before it), LW or 15W"
)
MONTH = Field("month", 1, 12, 12, 12, _MONTHS)
WEEKDAY = Field(
    "day-of-week", 0, 7, 6, 6, _WEEKDAYS, hint="give 5L for the last Friday, 5#2 for the second (#1 to #5)"
)
YEAR = Field("year", 1970, YEAR_END - 1, YEAR_END - 1, YEAR_END - 1)

_HASHED = re.compile(r"H(?:\((?P<span>[^()/]*)\))?(?P<step>/.*)?", re.IGNORECASE | re.DOTALL)
_EXTENSION = re.compile(r"[A-Z0-9]*#.*|\d*(?:L|W|LW)|[A-Z]{3}L|L(?:\d|-\d+W?)|H(?:\W.*)?")
_RANDOM = re.compile(r"R(?:\W.*)?")
_H_WORD = re.compile(r"(?<![A-Z])H(?![A-Z])", re.IGNORECASE)


def has_hash(text: str) -> bool:
    """Whether an expression has an `H`, so that its meaning depends on the job."""
    return ("H" in text or "h" in text) and _H_WORD.search(text) is not None


def items_of(field: Field, text: str) -> list[str]:
    """Items of a field's list, none empty. Raises ScheduleError."""
    if text == "?" and field in (DAY, WEEKDAY):
        return ["*"]
    items = text.split(",")
    if "" in items:
        raise field.refusal("an item of the list is empty")
    return items


def parse_field(field: Field, text: str, job_key: str | None) -> int:
    """Set of the values that `text` names, as bits. `job_key`: what `H` is taken from. Raises ScheduleError."""
    bits = 0
    for item in items_of(field, text):
        bits |= parse_item(field, item, job_key)
    return bits


def parse_item(field: Field, item: str, job_key: str | None) -> int:
    """Set of the values of one item of a list, as bits. Raises ScheduleError."""
    hashed = _HASHED.fullmatch(item)
    values = _plain(field, item) if hashed is None else _hashed(field, item, hashed, job_key)
    bits = 0
    for value in values:
        bits |= 1 << value
    return bits


def parse_value(field: Field, text: str, item: str) -> int:
    """One number or name. Raises ScheduleError."""
    if text.isdecimal():
        value = int(text)
        if not field.low <= value <= field.high:
            raise field.refusal(f"{text} in {item!r} is not from {field.low} to {field.high}")
        return value
    if text.upper() in field.names:
        return field.low + field.names.index(text.upper())
    names = f" or a name ({field.names[0]}-{field.names[-1]})" if field.names else ""
    raise field.refusal(f"{item!r} is not a number from {field.low} to {field.high}{names}, a range or *")


def _plain(field: Field, item: str) -> range:
    _refuse_foreign(field, item)
    span, slash, step_text = item.partition("/")
    low, high = _parse_span(field, span, is_open=bool(slash))
    if not slash:
        return range(low, high + 1)
    return range(low, high + 1, _parse_step(field, item, step_text, low, high))


def _hashed(field: Field, item: str, found: re.Match[str], job_key: str | None) -> range:
    """Values of an item with `H`: one value of its span, or every n-th from one of the first n."""
    if field is YEAR:
        raise field.refusal("H is not accepted here: it would choose one year of 230")
    if job_key is None:
        raise field.refusal("H takes its value from the job: name the job, by its id or key")
    low, high = field.low, field.hashed_last
    if found["span"] is not None:
        if "-" not in found["span"]:
            raise field.refusal(f"{item!r}: give H, H(a-b), H/n or H(a-b)/n")
        low, high = _parse_span(field, found["span"], is_open=False)
    step = _parse_step(field, item, found["step"][1:], low, high) if found["step"] else None
    if job_key == ANY_JOB:
        return range(low, high + 1)
    number = int.from_bytes(sha256(f"{field.name} {job_key}".encode(errors="surrogatepass")).digest()[:8])
    if step is None:
        value = low + number % (high - low + 1)
        return range(value, value + 1)
    return range(low + number % step, high + 1, step)


def _parse_step(field: Field, item: str, text: str, low: int, high: int) -> int:
    if not text.isdecimal():
        raise field.refusal(f"the step in {item!r} is not a number")
    step = int(text)
    if step == 0:
        raise field.refusal(f"the step in {item!r} is zero")
    if step > high - low + 1:
        raise field.refusal(f"the step in {item!r} is larger than its range, {low}-{high}")
    return step


def _parse_span(field: Field, span: str, *, is_open: bool) -> tuple[int, int]:
    """First and last value of `*`, `a`, or `a-b`; a single value before a step is open to the field's end."""
    if span == "*":
        return field.low, field.last
    low_text, dash, high_text = span.partition("-")
    if not dash:
        low = parse_value(field, span, span)
        return low, max(low, field.last) if is_open else low
    low, high = parse_value(field, low_text, span), parse_value(field, high_text, span)
    if low > high:
        hint = "; Sunday at the end of a range is 7" if high_text.upper() == "SUN" else ""
        raise field.refusal(f"{span!r} is a reversed range{hint}")
    return low, high


def _refuse_foreign(field: Field, item: str) -> None:
    """Name what other schedulers accept, so that the reason is not just "not a number"."""
    if item.startswith("?"):
        raise field.refusal("? is accepted only alone and only in the two day fields")
    if _RANDOM.fullmatch(item.upper()):
        raise field.refusal("R (random) is not accepted: a replay must give the same instants; use H")
    if _EXTENSION.fullmatch(item.upper()):
        remedy = "give H, H(a-b), H/n or H(a-b)/n" if item.upper().startswith("H") else field.hint
        raise field.refusal(f"{item!r}: {remedy}")
