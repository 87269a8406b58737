"""From what a caller wants to be otherwise to the whole job as it is to be: JSON merge patch (RFC 7396) with two exceptions.

A payload is replaced as a whole, and the moment that a patch names takes the place of the one that was there.
"""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec import Raw

from api.bodies import check_distinct, check_value, read_object, read_value
from api.fields import Fields
from api.problems import Refused
from minutebook.domain.timing import RECURRING_ONLY

MOMENTS: Final = ("run_at", "delay", "cron", "every")
_RECURRING: Final = ("cron", "every")
_NULL: Final = b"null"
_objects: Final = msgspec.json.Decoder(dict[str, Raw])


def merged(base: dict[str, Raw], data: bytes) -> bytes:
    """The create body that `base` becomes by the patch in `data`. Raises Refused for what is no patch.

    What is no field, or senseless, is left to the reader of create bodies.
    """
    patch = read_object(data)
    check_distinct(data, check_value(read_value(Raw(data), ""), ""))
    found = base | {"late": Raw(b'"run"')}  # an instant that was taken once may be past by now
    moments: list[str] = [name for name in MOMENTS if name in patch]
    _check_moments(patch, moments)
    if moments:
        is_recurring = any(name in _RECURRING for name in moments)
        left_out = {*MOMENTS, "late"} if is_recurring else {*MOMENTS, "late", *RECURRING_ONLY}
        found = {name: value for name, value in found.items() if name not in left_out}
    for name, value in patch.items():
        if name != "payload" and bytes(value) == _NULL:
            found.pop(name, None)
        else:
            found[name] = value if name == "payload" else _laid_over(found.get(name), value)
    return msgspec.json.encode(found)


def _check_moments(patch: dict[str, Raw], moments: list[str]) -> None:
    fields = Fields(patch)
    for name in moments:
        if bytes(patch[name]) == _NULL:
            fields.fault(name, f"give another one of {', '.join(MOMENTS)} in its place")
    if fields.errors:
        raise Refused("invalid", errors=fields.errors)


def _is_object(value: Raw) -> bool:
    return bytes(value).startswith(b"{")


def _laid_over(below: Raw | None, above: Raw) -> Raw:
    """`above`; where both are objects, `below` with the members of `above`, without those that are null."""
    if below is None or not (_is_object(below) and _is_object(above)):
        return above
    members = _objects.decode(below) | _objects.decode(above)
    return Raw(msgspec.json.encode({name: value for name, value in members.items() if bytes(value) != _NULL}))
