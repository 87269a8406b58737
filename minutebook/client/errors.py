"""Errors of the client, under `MinutebookError`; they mirror the codes of the API's problems.

ApiError                the API answered with a problem, or not at all
├── DeniedError         401, 403
├── NotFoundError       404
├── RefusedError        409, 422: the request will not be done as it stands
│   └── StaleVersionError  412: somebody else has changed it meanwhile
└── UnavailableError    429, 503, no connection, no answer in time; safe to repeat
"""

from __future__ import annotations

from minutebook.client.models import Problem
from minutebook.errors import MinutebookError


class ApiError(MinutebookError):
    """The API answered with a problem, or not at all. `problem` is None where none came."""

    def __init__(self, message: str, problem: Problem | None = None) -> None:
        super().__init__(message)
        self.problem = problem


class DeniedError(ApiError):
    """No credential, or one whose role does not cover this."""


class NotFoundError(ApiError):
    """There is no such thing for this tenant."""


class RefusedError(ApiError):
    """The request will not be done as it stands."""


class StaleVersionError(RefusedError):
    """The job has another version than the one that was read: read it again, then send what is still wanted."""


class UnavailableError(ApiError):
    """The API cannot be reached or is not ready. `retry_after_s` is what it asked for, None if it did not."""

    def __init__(
        self, message: str, problem: Problem | None = None, retry_after_s: float | None = None
    ) -> None:
        super().__init__(message, problem)
        self.retry_after_s = retry_after_s


_BY_STATUS: dict[int, type[ApiError]] = {
    401: DeniedError,
    403: DeniedError,
    404: NotFoundError,
    409: RefusedError,
    412: StaleVersionError,
    422: RefusedError,
}
UNAVAILABLE = frozenset({429, 503})


def error_of(problem: Problem, retry_after_s: float | None) -> ApiError:
    """The error that a problem means."""
    message = f"{problem.title}: {problem.detail}"
    for fault in problem.errors:
        message += f"\n  {fault.pointer}: {fault.detail}"
    if problem.status in UNAVAILABLE:
        return UnavailableError(message, problem, retry_after_s)
    return _BY_STATUS.get(problem.status, ApiError)(message, problem)
