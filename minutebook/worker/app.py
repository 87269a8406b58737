"""Tasks by name, and how each is called."""

from __future__ import annotations

import dis
import functools
import inspect
import types
from collections.abc import Callable, Mapping
from typing import Any, Generic, Literal, ParamSpec, TypeVar, get_type_hints

from msgspec import UNSET

from minutebook import ids
from minutebook.worker.duration import Duration, duration_ms
from minutebook.worker.payload import Reader, reader_of, schema_of

P = ParamSpec("P")
R = TypeVar("R")
Executor = Literal["async", "thread"]


class Task(Generic[P, R]):
    """A function under a name; calling it calls the function. Made by `App.task`."""

    def __init__(
        self,
        name: str,
        function: Callable[P, R],
        queue: str | None,
        timeout_ms: int | None,
        executor: Executor,
        payload_type: Any = UNSET,
    ) -> None:
        functools.update_wrapper(self, function)
        self.name = name
        self.function = function
        self.queue = queue
        self.timeout_ms = timeout_ms
        self.executor = executor
        self.is_coroutine = inspect.iscoroutinefunction(function)
        self.is_instant = executor == "async" and not (self.is_coroutine and can_suspend(function))
        parameter, self.takes_context = _parameters(name, function)
        if payload_type is UNSET:
            payload_type = _annotation(name, function, parameter)
        self.payload_type = payload_type
        self.read: Reader = reader_of(payload_type)

    @property
    def payload_schema(self) -> str:
        """JSON Schema of the payload that it takes, as JSON text; empty = any payload."""
        return schema_of(self.payload_type)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function."""
        return self.function(*args, **kwargs)


class App:
    """The tasks of a program: `minutebook worker run module:app` runs them."""

    def __init__(self) -> None:
        self._tasks: dict[str, Task[Any, Any]] = {}

    @property
    def tasks(self) -> Mapping[str, Task[Any, Any]]:
        """Tasks by name."""
        return types.MappingProxyType(self._tasks)

    @property
    def queues(self) -> tuple[str, ...]:
        """Queues that the tasks name, sorted; a task that names none is for `default`."""
        return tuple(sorted({task.queue or "default" for task in self._tasks.values()})) or ("default",)

    def task(
        self,
        name: str,
        *,
        queue: str | None = None,
        timeout: Duration | None = None,
        executor: Executor | None = None,
        payload: Any = UNSET,
    ) -> Callable[[Callable[P, R]], Task[P, R]]:
        """Decorator: register a function that takes the payload and, if it likes, a `Context`.

        `timeout` bounds each attempt beside the job's own timeout; the shorter one counts. `executor` says where it runs: `async`
        = on the event loop (default for coroutine functions), `thread` = on a thread of its own (default for others).
        `payload` is the type that payloads are read into: a pydantic model, a msgspec Struct or a dataclass, also inside
        `list[...]`, `| None` and the like; if not given, the annotation of the function's first argument.
        Raises ValueError for a bad or taken name or timeout, TypeError for a function that cannot be a task.
        """
        if not ids.is_name(name) or (queue is not None and not ids.is_name(queue)):
            raise ValueError(f"task {name!r}: names have 1-128 ASCII letters, digits, . _ -")
        if name in self._tasks:
            raise ValueError(f"task {name!r} is there already")
        timeout_ms = None if timeout is None else duration_ms(timeout)
        if timeout_ms == 0:
            raise ValueError(f"task {name!r}: a timeout of 0 leaves no time to run")

        def register(function: Callable[P, R]) -> Task[P, R]:
            task = Task(name, function, queue, timeout_ms, _executor(name, function, executor), payload)
            self._tasks[name] = task
            return task

        return register


def can_suspend(function: Callable[..., Any]) -> bool:
    """Whether a coroutine function has a place where it could wait. One without can be run to its end in one step,
    without a Task of asyncio, which would cost more than everything else that the worker does for a run.
    """
    code = getattr(function, "__code__", None)
    return code is None or any(step.opname in ("SEND", "YIELD_VALUE") for step in dis.get_instructions(code))


def _executor(name: str, function: Callable[..., Any], wanted: Executor | None) -> Executor:
    is_coroutine = inspect.iscoroutinefunction(function)
    if wanted == "thread" and is_coroutine:
        raise TypeError(f"task {name!r} is a coroutine function: it runs on the event loop, not on a thread")
    return wanted or ("async" if is_coroutine else "thread")


def _parameters(name: str, function: Callable[..., Any]) -> tuple[str, bool]:
    """Name of the payload's parameter, and whether a context follows."""
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    parameters = list(inspect.signature(function).parameters.values())
    if len(parameters) not in (1, 2) or any(parameter.kind not in kinds for parameter in parameters):
        raise TypeError(f"task {name!r} must take (payload) or (payload, ctx)")
    return parameters[0].name, len(parameters) == 2


def _annotation(name: str, function: Callable[..., Any], parameter: str) -> Any:
    annotation = getattr(function, "__annotations__", {}).get(parameter, Any)
    holder = types.SimpleNamespace(__annotations__={parameter: annotation})
    try:
        return get_type_hints(holder, globalns=getattr(function, "__globals__", {}), include_extras=True)[
            parameter
        ]
    except NameError as error:
        raise TypeError(
            f"task {name!r}: the type of {parameter!r} cannot be found at run time ({error}); "
            "define it at the top of a module and import it outside `if TYPE_CHECKING`"
        ) from None
