"""Fixtures for pytest, there as soon as `minutebook[worker]` is installed. They are loaded when a test asks for them.

`minutebook_app` is yours to define; `scheduler` and `task_env` build on `minutebook.testing`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from minutebook.testing import InMemoryScheduler, TaskEnv
    from minutebook.worker import App


@pytest.fixture
def minutebook_app() -> App:
    """The app under test. Define a fixture of this name that returns yours."""
    raise pytest.UsageError(
        "the fixture `scheduler` needs your app: define a fixture `minutebook_app` that returns it, "
        "in the test's module or in conftest.py"
    )


@pytest.fixture
def scheduler(minutebook_app: App) -> Iterator[InMemoryScheduler]:
    """A scheduler in memory for `minutebook_app`, to be opened by the test: `async with scheduler: ...`.

    After the test its log is folded again and must give the same state.
    """
    from minutebook.testing import InMemoryScheduler, assert_replays

    made = InMemoryScheduler(minutebook_app)
    yield made
    assert_replays(made)


@pytest.fixture
def task_env() -> type[TaskEnv]:
    """Makes the context of one attempt: `env = task_env(attempt=3)`; the function gets `env.context`."""
    from minutebook.testing import TaskEnv

    return TaskEnv
