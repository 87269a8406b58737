"""One version of the zone data: the files of a tzdata package, wherever they lie. Read as data, nothing of it is run."""

from __future__ import annotations

import re
import struct
from functools import cached_property
from importlib.resources.abc import Traversable

from minutebook.schedule.tzif import Timeline, read_timeline

_BANNED = frozenset({"Factory"})  # a placeholder for "not set up yet", no place's time
_VERSION = re.compile(r"^IANA_VERSION = [\"']([0-9a-z]{1,16})[\"']", re.MULTILINE)
_NAME = re.compile(r"[A-Za-z0-9_+-]+(/[A-Za-z0-9_+-]+)*", re.ASCII)


class ZoneData:
    """The zones in `package`, the folder of a tzdata package. Raises ValueError, also later, for files that are none."""

    def __init__(self, package: Traversable) -> None:
        self._package = package
        self._timelines: dict[str, Timeline] = {}
        found = _VERSION.search(self._text("__init__.py"))
        if found is None:
            raise ValueError("no tzdata package: its __init__.py names no IANA_VERSION")
        self.version = found[1]
        """Of the IANA database, such as `2025b`."""

    @cached_property
    def names(self) -> frozenset[str]:
        """The zones that it lists, without `Factory`. Case matters."""
        listed = frozenset(self._text("zones").split())
        if not listed or not all(map(_NAME.fullmatch, listed)):
            raise ValueError("no tzdata package: its list of zones is empty, or has names that are none")
        return listed - _BANNED

    def file(self, name: str) -> Traversable:
        """The file of a zone that it lists."""
        return self._package.joinpath("zoneinfo", *name.split("/"))

    def timeline(self, name: str) -> Timeline:
        """Offsets of a zone that it lists, up to the year 2200; the same object each time."""
        if name not in self._timelines:
            try:
                self._timelines[name] = read_timeline(self.file(name).read_bytes())
            except (ValueError, OSError, KeyError, IndexError, struct.error) as error:
                raise ValueError(f"the file of the zone {name} cannot be read: {error}") from error
        return self._timelines[name]

    def _text(self, name: str) -> str:
        try:
            return self._package.joinpath(name).read_text(encoding="utf-8")
        except (OSError, KeyError, UnicodeDecodeError) as error:
            raise ValueError(f"no tzdata package: its {name} cannot be read") from error
