"""For tests of your tasks and schedules: no broker, no process, no waiting. Needs the extra `minutebook[worker]`."""

from minutebook.testing.replay import assert_replays
from minutebook.testing.scheduler import Attempt, InMemoryScheduler, RefusedError
from minutebook.testing.task_env import TaskEnv

__all__ = ["Attempt", "InMemoryScheduler", "RefusedError", "TaskEnv", "assert_replays"]
