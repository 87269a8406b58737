"""The HTTP client: what users and the command line reach the API with."""

from minutebook.client.audit_models import AuditEntry
from minutebook.client.bulk import Submitted, Tally
from minutebook.client.calendar_models import Calendar, CalendarEffect, CalendarEntry, DateRange
from minutebook.client.change_models import CalendarsChange, JobChange, JobVersion, MisfireChange, RetryChange
from minutebook.client.client import Client, SyncClient
from minutebook.client.dead_letter_models import DeadLetter
from minutebook.client.errors import (
    ApiError,
    DeniedError,
    NotFoundError,
    RefusedError,
    StaleVersionError,
    UnavailableError,
)
from minutebook.client.history_models import HistoryEvent, WhyAnswer
from minutebook.client.key_models import CreatedKey, Key, Me, Tenant
from minutebook.client.list_models import ExecutionSummary, Overview
from minutebook.client.live_models import Change, DueBucket, Partition, PartitionPage, Reset, Upcoming
from minutebook.client.models import (
    Alert,
    BatchResult,
    CalendarsRequest,
    Command,
    Discarded,
    Execution,
    ExecutionPage,
    Job,
    JobRequest,
    Limit,
    LimitRequest,
    MisfireRequest,
    Problem,
    Queue,
    RetryRequest,
    RunNow,
    WholeExecution,
)
from minutebook.client.operation_models import (
    BackfillDryRun,
    DeadLetterFilter,
    DryRun,
    JobDryRun,
    JobFilter,
    Operation,
)
from minutebook.client.put_models import PutEffect
from minutebook.client.settings import ClientSettings

__all__ = [
    "Alert",
    "ApiError",
    "AuditEntry",
    "BackfillDryRun",
    "BatchResult",
    "Calendar",
    "CalendarEffect",
    "CalendarEntry",
    "CalendarsChange",
    "CalendarsRequest",
    "Change",
    "Client",
    "ClientSettings",
    "Command",
    "CreatedKey",
    "DateRange",
    "DeadLetter",
    "DeadLetterFilter",
    "DeniedError",
    "Discarded",
    "DryRun",
    "DueBucket",
    "Execution",
    "ExecutionPage",
    "ExecutionSummary",
    "HistoryEvent",
    "Job",
    "JobChange",
    "JobDryRun",
    "JobFilter",
    "JobRequest",
    "JobVersion",
    "Key",
    "Limit",
    "LimitRequest",
    "Me",
    "MisfireChange",
    "MisfireRequest",
    "NotFoundError",
    "Operation",
    "Overview",
    "Partition",
    "PartitionPage",
    "Problem",
    "PutEffect",
    "Queue",
    "RefusedError",
    "Reset",
    "RetryChange",
    "RetryRequest",
    "RunNow",
    "StaleVersionError",
    "Submitted",
    "SyncClient",
    "Tally",
    "Tenant",
    "UnavailableError",
    "Upcoming",
    "WholeExecution",
    "WhyAnswer",
]
