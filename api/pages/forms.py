"""What a form sent: texts by name, bounded before they are read."""

from __future__ import annotations

import asyncio
from typing import Final
from urllib.parse import parse_qsl

from fastapi import Request

from api.guard import BODY_BYTES_MAX
from api.problems import Refused
from api.services import Services

_FIELDS_MAX: Final = 2_000
_MEDIA: Final = "application/x-www-form-urlencoded"


class Form:
    """Fields of a form, each with all its values, in order."""

    def __init__(self, fields: dict[str, list[str]]) -> None:
        self._fields = fields

    def text(self, name: str) -> str:
        """The first value of a field; empty where there is none."""
        return self._fields.get(name, [""])[0]

    def texts(self, name: str) -> list[str]:
        """All values of a field."""
        return self._fields.get(name, [])

    def lines(self, name: str) -> str:
        """A text of several lines, ended by line feeds alone as in the page."""
        return self.text(name).replace("\r\n", "\n")


async def read_form(request: Request) -> Form:
    """The form in a body. Raises Refused: unsupported-media, too-large, body-too-slow, malformed."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != _MEDIA:
        raise Refused("unsupported-media", "Send the form of the page.")
    services: Services = request.app.state.services
    data = bytearray()
    try:
        async with asyncio.timeout(services.settings.body_timeout_s):
            async for part in request.stream():
                data += part
                if len(data) > BODY_BYTES_MAX:
                    raise Refused("too-large", f"A form ends at {BODY_BYTES_MAX} bytes.")
    except TimeoutError:
        raise Refused("body-too-slow") from None
    try:
        pairs = parse_qsl(data.decode(), keep_blank_values=True, max_num_fields=_FIELDS_MAX, errors="strict")
    except ValueError:
        raise Refused("malformed", "The form is not well formed; load the page again.") from None
    fields: dict[str, list[str]] = {}
    for name, value in pairs:
        fields.setdefault(name, []).append(value)
    return Form(fields)
