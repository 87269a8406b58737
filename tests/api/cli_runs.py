"""Command lines run against an installation in memory."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from importlib import import_module
from pkgutil import iter_modules

import httpx
import pytest

from minutebook import cli
from minutebook.cli import main
from minutebook.client import SyncClient

Run = Callable[..., int]


def runner(transport: httpx.AsyncBaseTransport, key: str, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs a command line, its calls going to `transport` under `key`; answers with the exit code."""
    for name, value in (("URL", "http://api"), ("API_KEY", key), ("RETRIES_MAX", "0")):
        monkeypatch.setenv(f"MINUTEBOOK_CLIENT_{name}", value)
    client = partial(SyncClient, transport=transport)
    for found in iter_modules(cli.__path__):
        if found.name == "__main__":
            continue
        module = import_module(f"minutebook.cli.{found.name}")
        if hasattr(module, "SyncClient"):
            monkeypatch.setattr(module, "SyncClient", client)

    def run(*arguments: str) -> int:
        monkeypatch.setattr(sys, "argv", ["minutebook", *arguments])
        with pytest.raises(SystemExit) as ended:
            main.run()
        return int(ended.value.code or 0)

    return run
