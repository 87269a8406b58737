"""Entries of a YAML file with their lines: values of JSON alone, by the rules of YAML 1.2 for what a plain word means.

PyYAML goes by YAML 1.1, where `no` is false, `2026-01-01` a date and `12:30` a number; here these are texts.
"""

from __future__ import annotations

import math
import re
from collections.abc import Hashable, Iterator, Mapping
from typing import Any, ClassVar, Final, NamedTuple

import yaml
from yaml.nodes import MappingNode, Node, SequenceNode

_DEPTH_MAX: Final = 100
_VALUES_MAX: Final = 1_000_000
_INT_MIN: Final = -(1 << 63)
_INT_MAX: Final = (1 << 63) - 1
_LIST: Final = "jobs"


class YamlFault(Exception):
    """Text that is no YAML, or holds what JSON cannot say: the line, from 1, and the remedy."""

    def __init__(self, line: int, detail: str) -> None:
        super().__init__(f"line {line}: {detail}")
        self.line = line
        self.detail = detail


class Entry(NamedTuple):
    """An entry: its line and those of its fields, from 1, and what it says."""

    line: int
    lines: Mapping[str, int]
    members: Mapping[str, Any]


class _Loader(yaml.SafeLoader):
    """Makes plain values alone; a name that stands twice is refused."""

    yaml_implicit_resolvers: ClassVar[dict[Any, Any]] = {}

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Hashable, Any]:
        self.flatten_mapping(node)
        seen: set[str] = set()
        for key, _ in node.value:
            if key.tag != "tag:yaml.org,2002:str":
                raise YamlFault(_line(key), "names are texts: put quotes around it")
            if key.value in seen:
                raise YamlFault(_line(key), f"{key.value} stands here twice")
            seen.add(key.value)
        made: dict[Hashable, Any] = super().construct_mapping(node, deep)
        return made


for _tag, _pattern, _first in (
    ("bool", r"true|false|True|False", "tfTF"),
    ("int", r"[-+]?(?:0|[1-9][0-9]*)", "-+0123456789"),
    ("float", r"[-+]?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?", "-+0123456789"),
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("merge", r"<<", "<"),
):
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(rf"(?:{_pattern})\Z"), list(_first))


def yaml_entries(text: str) -> Iterator[Entry]:
    """The entries of all documents in `text`. Raises YamlFault."""
    loader = _Loader(text)
    try:
        while loader.check_node():
            for node in _entry_nodes(loader.get_node()):
                yield _entry(loader, node)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        remedy = "; text that begins with * & ! % @ ` needs quotes" if "alias" in str(error) else ""
        raise YamlFault(
            1 if mark is None else mark.line + 1, f"is no YAML: {error.problem}{remedy}"
        ) from None
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise YamlFault(1, f"is no YAML: {error}") from None
    finally:
        loader.dispose()


def _entry_nodes(node: Node) -> list[Node]:
    if isinstance(node, MappingNode) and [key.value for key, _ in node.value] == [_LIST]:
        node = node.value[0][1]
    return list(node.value) if isinstance(node, SequenceNode) else [node]


def _entry(loader: _Loader, node: Node) -> Entry:
    line = _line(node)
    if not isinstance(node, MappingNode):
        raise YamlFault(line, "an entry is the fields of a job, such as `id: nightly`")
    members = loader.construct_document(node)
    _check(members, line)
    lines = {key.value: _line(key) for key, _ in node.value}
    return Entry(line, lines, members)


def _check(value: Any, line: int) -> None:
    """Raises YamlFault for what JSON cannot say, and for aliases that would grow beyond all bounds."""
    level, count, depth = [value], 0, 0
    while level:
        below: list[Any] = []
        for item in level:
            if isinstance(item, dict):
                below.extend(item.values())
            elif isinstance(item, list):
                below.extend(item)
            elif isinstance(item, float) and not math.isfinite(item):
                raise YamlFault(line, "a number is out of range")
            elif isinstance(item, int) and not _INT_MIN <= item <= _INT_MAX:
                raise YamlFault(line, "an integer is beyond 64 bits; give it as text")
            elif item is not None and not isinstance(item, str | int | float | bool):
                raise YamlFault(line, f"JSON has no value such as {type(item).__name__}; give a text")
        count, depth = count + len(level), depth + 1
        if count > _VALUES_MAX or depth > _DEPTH_MAX:
            raise YamlFault(line, "nested too deeply, or too many values: is there an alias to itself?")
        level = below


def _line(node: Node) -> int:
    return int(node.start_mark.line) + 1
