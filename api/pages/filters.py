"""Filters of lists: `status:active task:mail.send` in the bar, `status=active&task=mail.send` in the address."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Final

from fastapi import Request, Response

from api.pages.rendering import redirect
from api.problems import refused_field

_WORD: Final = re.compile(r'([a-z_]+):(?:"((?:[^"\\]|\\.)*)"|([^\s"]\S*))(?=\s|\Z)', re.ASCII)


def read_filter(text: str, names: Collection[str]) -> dict[str, str]:
    """The query names and values of a filter. Raises Refused (bad-parameter)."""
    found: dict[str, str] = {}
    rest = text.strip()
    while rest:
        word = _WORD.match(rest)
        if word is None or word[1] not in names:
            raise refused_field(
                "filter", f"write name:value, with the names {', '.join(names)}", "bad-parameter"
            )
        if word[1] in found:
            raise refused_field("filter", f"give {word[1]} once", "bad-parameter")
        found[word[1]] = word[3] if word[2] is None else re.sub(r"\\(.)", r"\1", word[2])
        rest = rest[word.end() :].lstrip()
    return found


def show_filter(query: Mapping[str, str], names: Collection[str]) -> str:
    """The filter that a query says."""
    return " ".join(f"{name}:{_quoted(query[name])}" for name in names if query.get(name))


def _quoted(text: str) -> str:
    """A value as it is written in a filter."""
    if not re.search(r'[\s"\\]', text):
        return text
    return '"' + re.sub(r'(["\\])', r"\\\1", text) + '"'


def filtered(
    request: Request, path: str, names: Collection[str], kept: Collection[str] = ()
) -> Response | None:
    """On to the address of what was typed into the bar; None where nothing was. `kept`: names that stay.

    Raises Refused (bad-parameter).
    """
    typed = request.query_params.get("filter")
    if typed is None:
        return None
    stays = {name: request.query_params.get(name, "") for name in kept}
    return redirect(request, path, **read_filter(typed, names), **stays)
