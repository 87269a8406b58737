"""Fields of a JSON body, read one after another; what is wrong with any is gathered and told together."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Any, Final

import msgspec
from msgspec import Raw

from api.bodies import check_value, read_value
from api.problems import Refused
from minutebook.client.models import FieldError
from minutebook.domain.submit import PAYLOAD_BYTES_MAX
from minutebook.ids import is_name

_SHOWN_CHARS_MAX: Final = 64
_WHOLE_MAX: Final = (1 << 63) - 1


class Fields:
    """Reads one field after another and gathers what is wrong with them."""

    def __init__(self, members: dict[str, Raw], prefix: str = "") -> None:
        self.members = members
        self.errors: list[FieldError] = []
        self.names = len(members)
        """Names in the body that were counted so far."""
        self.payload_names = 0
        """Those of them that are in the payload."""
        self._prefix = prefix

    def fault(self, name: str, detail: str) -> None:
        """Note what is wrong with a field, and the remedy."""
        self.errors.append(FieldError(f"/{self._prefix}{name}", detail))

    def fault_unknown(self, name: str, prefix: str, known: Iterable[str]) -> None:
        """Note a field that is not known."""
        shown = ascii(name[:_SHOWN_CHARS_MAX])[1:-1].replace("~", "~0").replace("/", "~1")
        self.fault(f"{prefix}{shown}", f"unknown field; known are {', '.join(sorted(known))}")

    def value(self, name: str) -> Any:
        """Any value but null; None where the field is left out or at fault."""
        raw = self.members.get(name)
        if raw is None:
            return None
        try:
            value = read_value(raw, f"/{self._prefix}{name}")
        except Refused as refused:
            self.errors += refused.errors
            return None
        if value is None:
            self.fault(name, "must not be null; leave the field out for its default")
        return value

    def whole(self, name: str) -> int | None:
        """A whole number."""
        value = self.value(name)
        if value is not None and (type(value) is not int or abs(value) > _WHOLE_MAX):
            self.fault(name, "must be a whole number of at most 64 bits")
            return None
        return value

    def flag(self, name: str) -> bool | None:
        """True or false."""
        value = self.value(name)
        if value is not None and type(value) is not bool:
            self.fault(name, "must be true or false")
            return None
        return value

    def number(self, name: str) -> float | None:
        """A number."""
        value = self.value(name)
        if value is not None and type(value) not in (int, float):
            self.fault(name, "must be a number")
            return None
        return None if value is None else float(value)

    def texts(self, name: str) -> list[str] | None:
        """A list of texts."""
        value = self.value(name)
        if value is None:
            return None
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            self.fault(name, "must be a list of texts")
            return None
        return value

    def text(self, name: str) -> str | None:
        """A text."""
        if name not in self.members:
            return None
        value = self.value(name)
        if value is not None and not isinstance(value, str):
            self.fault(name, "must be a text; leave the field out for its default")
            return None
        return value

    def name(self, field: str, default: str | None) -> str | None:
        """A name, `default` where it is left out."""
        if field not in self.members:
            return default
        value = self.text(field)
        if value is None:
            return default
        if not is_name(value):
            self.fault(field, "must be 1-128 ASCII letters, digits, ._-")
        return value

    def choice(self, field: str, choices: tuple[str, ...]) -> str:
        """One of `choices`; the first where it is left out."""
        if field not in self.members:
            return choices[0]
        value = self.text(field)
        if value is not None and value not in choices:
            self.fault(field, f"must be one of {', '.join(choices)}")
        return choices[0] if value is None else value

    def parsed(self, field: str, parse: Callable[[str], int]) -> int | None:
        """A text that `parse` understands."""
        if field not in self.members:
            return None
        value = self.text(field)
        if value is None:
            return None
        try:
            return parse(value)
        except ValueError as error:
            self.fault(field, str(error))
            return None

    def inner(self, name: str, known: Collection[str]) -> Fields:
        """The fields of the object in a field, none where it is left out; what is wrong with them is gathered here."""
        found = Fields({}, f"{self._prefix}{name}/")
        found.errors = self.errors
        value = self.value(name)
        if isinstance(value, dict):
            self.names += len(value)
            found.members = msgspec.json.decode(self.members[name], type=dict[str, Raw])
            found.refuse_unknown(known)
        elif value is not None:
            self.fault(name, "must be an object; leave the field out for the defaults")
        return found

    def payload(self) -> bytes:
        """Any JSON, as it was sent."""
        raw = self.members.get("payload")
        if raw is None:
            return b"null"
        data = bytes(raw)
        if len(data) > PAYLOAD_BYTES_MAX:
            raise Refused(
                "too-large",
                f"A payload ends at {PAYLOAD_BYTES_MAX} bytes; store it elsewhere and send where it is.",
                [FieldError("/payload", f"{len(data)} bytes")],
            )
        try:
            self.payload_names = check_value(read_value(raw, "/payload"), "/payload")
        except Refused as refused:
            self.errors += refused.errors
        self.names += self.payload_names
        return data

    def refuse_unknown(self, known: Iterable[str]) -> None:
        """Note every field that is not known."""
        for name in self.members:
            if name not in known:
                self.fault_unknown(name, "", known)
