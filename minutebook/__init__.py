"""A job scheduler whose only truth is a Kafka log.

`import minutebook` needs nothing but the standard library: the names of the worker SDK come with the extra `minutebook[worker]`
and are loaded when first asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from minutebook.worker import App, Cancel, Context, Fail, Retry, Snooze

__version__ = "0.1.0"
__all__ = ["App", "Cancel", "Context", "Fail", "Retry", "Snooze", "__version__"]


def __getattr__(name: str) -> Any:
    """Load a public name of the worker SDK. Raises AttributeError for others, ImportError with the remedy without the extra."""
    if name not in __all__:
        raise AttributeError(f"module 'minutebook' has no attribute {name!r}")
    try:
        worker = import_module("minutebook.worker")
    except ModuleNotFoundError as error:
        raise ImportError(
            f"minutebook.{name} needs {error.name!r}: install it with `pip install 'minutebook[worker]'`"
        ) from error
    return getattr(worker, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
