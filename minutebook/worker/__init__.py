"""The worker SDK: tasks, their outcomes, and the process that runs them."""

from minutebook.worker.app import App, Task
from minutebook.worker.context import Context
from minutebook.worker.outcomes import Cancel, Fail, Retry, Snooze
from minutebook.worker.settings import WorkerSettings
from minutebook.worker.worker import Drained, Worker

__all__ = [
    "App",
    "Cancel",
    "Context",
    "Drained",
    "Fail",
    "Retry",
    "Snooze",
    "Task",
    "Worker",
    "WorkerSettings",
]
