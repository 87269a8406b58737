"""What a list is asked for: names of the query, the same for API, command line and pages, checked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple, get_args

from api.problems import refused_field
from minutebook.client.models import AttemptStatus, JobStatus
from minutebook.domain.view_lists import LAST_AT, Filter, Span, span_of
from minutebook.ids import is_name
from minutebook.times import parse_instant

JOB_STATUSES: Final = get_args(JobStatus)
ATTEMPT_STATUSES: Final = get_args(AttemptStatus)
JOB_ORDERS: Final = ("-created", "created", "due", "-due")
EXECUTION_ORDERS: Final = ("-scheduled", "scheduled")
DUE_FILTERS: Final = ("due_from", "due_until")
JOB_FILTERS: Final = ("status", "task", "queue", "tag", "from", "until", *DUE_FILTERS)
EXECUTION_FILTERS: Final = ("status", "task", "queue", "job_id", "error_type", "from", "until")
ERROR_TYPE_MAX: Final = 256
_NAMES: Final = ("task", "queue", "tag", "job_id")


class ListFilter(NamedTuple):
    """Which rows, from which instant up to which, not included, and in which direction; `job_id` empty = any.

    `is_by_due`: the instants are those that come next, and `created` bounds when a job was created.
    """

    wanted: Filter
    job_id: str = ""
    from_at: int = 0
    until_at: int = LAST_AT
    is_ascending: bool = False
    is_by_due: bool = False
    created: tuple[int, int] = (0, LAST_AT)
    due: tuple[int, int] | None = None
    """Bounds of the next instant where rows go by another one; None = whatever it is."""

    def span(self, place: bytes) -> Span:
        """Where to read from `place` on; from the start where it is empty."""
        return span_of(self.from_at, self.until_at, self.is_ascending, place)


def job_filter(query: Mapping[str, str]) -> ListFilter:
    """The filter of a list of jobs: with a bound on what is due they go by that. Raises Refused (bad-parameter)."""
    is_bound = any(name in query for name in DUE_FILTERS)
    order = query.get("order", "due" if is_bound else JOB_ORDERS[0])
    found = _filter({**query, "order": order}, JOB_STATUSES, JOB_ORDERS)
    due = _instant(query, "due_from", 0), _instant(query, "due_until", LAST_AT)
    if not order.endswith("due"):
        return found._replace(due=due if is_bound else None)
    return found._replace(
        from_at=due[0],
        until_at=due[1],
        is_by_due=True,
        created=(found.from_at, found.until_at),
    )


def execution_filter(query: Mapping[str, str]) -> ListFilter:
    """The filter of a list of executions: scheduled ones begin with the earliest. Raises Refused (bad-parameter)."""
    default = "scheduled" if query.get("status") == "scheduled" else "-scheduled"
    return _filter({"order": default, **query}, ATTEMPT_STATUSES, EXECUTION_ORDERS)


def _filter(query: Mapping[str, str], statuses: tuple[str, ...], orders: tuple[str, ...]) -> ListFilter:
    _check_choice(query, "status", statuses)
    _check_choice(query, "order", orders)
    for name in _NAMES:
        if not is_name(query.get(name, "x")):
            raise refused_field(name, "must be 1-128 ASCII letters, digits, ._-", "bad-parameter")
    if not 0 < len(query.get("error_type", "x")) <= ERROR_TYPE_MAX:
        raise refused_field("error_type", f"must be 1-{ERROR_TYPE_MAX} characters", "bad-parameter")
    wanted = Filter(*(query.get(name, "") for name in Filter._fields))
    from_at, until_at = _instant(query, "from", 0), _instant(query, "until", LAST_AT)
    order = query.get("order", orders[0])
    return ListFilter(wanted, query.get("job_id", ""), from_at, until_at, not order.startswith("-"))


def _check_choice(query: Mapping[str, str], name: str, choices: tuple[str, ...]) -> None:
    if query.get(name, choices[0]) not in choices:
        raise refused_field(name, f"must be one of {', '.join(choices)}", "bad-parameter")


def _instant(query: Mapping[str, str], name: str, default: int) -> int:
    if name not in query:
        return default
    try:
        return max(0, parse_instant(query[name]))
    except ValueError as error:
        raise refused_field(name, str(error), "bad-parameter") from None
