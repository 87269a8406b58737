"""The HTTP client: what users and the command line reach the API with."""

from minutebook.client.client import Client, SyncClient
from minutebook.client.errors import (
    ApiError,
    DeniedError,
    NotFoundError,
    RefusedError,
    UnavailableError,
)
from minutebook.client.models import (
    Alert,
    BatchResult,
    Command,
    DeadLetter,
    Execution,
    ExecutionPage,
    Job,
    JobRequest,
    Limit,
    LimitRequest,
    Problem,
    Queue,
    RetryRequest,
    RunNow,
    WholeExecution,
)
from minutebook.client.operation_models import BackfillDryRun, DeadLetterFilter, DryRun, Operation
from minutebook.client.settings import ClientSettings

__all__ = [
    "Alert",
    "ApiError",
    "BackfillDryRun",
    "BatchResult",
    "Client",
    "ClientSettings",
    "Command",
    "DeadLetter",
    "DeadLetterFilter",
    "DeniedError",
    "DryRun",
    "Execution",
    "ExecutionPage",
    "Job",
    "JobRequest",
    "Limit",
    "LimitRequest",
    "NotFoundError",
    "Operation",
    "Problem",
    "Queue",
    "RefusedError",
    "RetryRequest",
    "RunNow",
    "SyncClient",
    "UnavailableError",
    "WholeExecution",
]
