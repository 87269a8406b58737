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
JOB_ORDERS: Final = ("-created", "created")
EXECUTION_ORDERS: Final = ("-scheduled", "scheduled")
JOB_FILTERS: Final = ("status", "task", "queue", "tag", "from", "until")
EXECUTION_FILTERS: Final = ("status", "task", "queue", "job_id", "error_type", "from", "until")
ERROR_TYPE_MAX: Final = 256
_NAMES: Final = ("task", "queue", "tag", "job_id")


class ListFilter(NamedTuple):
    """Which rows, from which instant up to which, not included, and in which direction; `job_id` empty = any."""

    wanted: Filter
    job_id: str = ""
    from_at: int = 0
    until_at: int = LAST_AT
    is_ascending: bool = False

    def span(self, place: bytes) -> Span:
        """Where to read from `place` on; from the start where it is empty."""
        return span_of(self.from_at, self.until_at, self.is_ascending, place)


def job_filter(query: Mapping[str, str]) -> ListFilter:
    """The filter of a list of jobs. Raises Refused (bad-parameter)."""
    return _filter(query, JOB_STATUSES, JOB_ORDERS)


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
