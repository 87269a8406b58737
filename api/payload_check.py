"""A payload against the JSON Schema of its task, in bounded time, whatever the two of them are.

Checked are the keywords that pydantic and msgspec write; others are passed over, and so is what would take too many
steps, or a schema that cannot be used: the worker reads each payload into its type all the same. Nothing is ever
fetched, and no text repeats what a payload holds.
"""

from __future__ import annotations

import operator
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sized
from functools import lru_cache
from itertools import islice
from typing import Any, Final

import msgspec
from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError, best_match
from jsonschema.validators import extend
from pydantic_core import SchemaError, SchemaValidator, core_schema
from referencing import Registry

from minutebook.client.models import FieldError

STEPS_MAX: Final = 5_000
"""Some 10 to 50 ms."""
FAULTS_MAX: Final = 16
_UNIQUE_MAX: Final = 256
"""Lists up to this length are looked through for repeats, which takes the square of it."""
_SHOWN_CHARS_MAX: Final = 200

_Keyword = Callable[[Any, Any, Any, Any], Iterable[ValidationError] | None]


class _TooLong(Exception):
    """The check has used up its steps."""


class PayloadCheck:
    """A schema (JSON text of an object), made ready once. One check at a time."""

    def __init__(self, schema: str) -> None:
        self._left = 0
        passed_over = dict.fromkeys(Draft202012Validator.VALIDATORS, _nothing)
        checked = {name: self._counted(keyword) for name, keyword in _KEYWORDS.items()}
        kind = extend(Draft202012Validator, passed_over | checked)
        self._validator = kind(msgspec.json.decode(schema), registry=Registry())

    def faults(self, payload: bytes) -> list[FieldError]:
        """What does not fit in `payload`, JSON text: the first faults, by JSON pointers; empty where it fits."""
        self._left = STEPS_MAX
        found: list[FieldError] = []
        try:
            errors = self._validator.iter_errors(msgspec.json.decode(payload))
            found.extend(_fault(error) for error in islice(errors, FAULTS_MAX))
        except Exception:  # too long, too deep, or whatever the library meets in a schema that is none
            return found
        return found

    def _counted(self, keyword: _Keyword) -> _Keyword:
        def check(validator: Any, value: Any, instance: Any, schema: Any) -> Iterable[ValidationError]:
            self._left -= 1 + _size(value) // 16 + _size(instance) // 16
            if self._left < 0:
                raise _TooLong
            return keyword(validator, value, instance, schema) or ()

        return check


def _fault(error: ValidationError) -> FieldError:
    """Of alternatives that all fail, the one that came closest."""
    closest = best_match([error]) or error
    # A path from the root; that of an alternative's fault is relative to the alternative.
    parts = (str(part).replace("~", "~0").replace("/", "~1") for part in closest.absolute_path)
    return FieldError("/".join(["/payload", *parts]), closest.message)


def _size(value: Any) -> int:
    return len(value) if isinstance(value, list | dict) else 0


def _shown(value: Any) -> str:
    """Part of a schema, cut."""
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= _SHOWN_CHARS_MAX else text[:_SHOWN_CHARS_MAX] + "..."


# -- keywords: the validator, the keyword's value, what is checked, the schema around


def _nothing(validator: Any, value: Any, instance: Any, schema: Any) -> None:
    return None


def _type(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    kinds = [value] if isinstance(value, str) else value
    if not any(validator.is_type(instance, kind) for kind in kinds):
        yield ValidationError(f"must be of type {' or '.join(kinds)}")


def _enum(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    if not any(_is_same(one, instance) for one in value):
        yield ValidationError(f"must be one of {_shown(value)}")


def _const(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    if not _is_same(value, instance):
        yield ValidationError(f"must be {_shown(value)}")


def _is_same(one: Any, other: Any) -> bool:
    """Python holds True for 1."""
    return bool(one == other) and isinstance(one, bool) == isinstance(other, bool)


def _required(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    if isinstance(instance, dict):
        for name in value:
            if name not in instance:
                yield ValidationError("is required", path=deque([name]))


def _additional_properties(
    validator: Any, value: Any, instance: Any, schema: Any
) -> Iterator[ValidationError]:
    if not isinstance(instance, dict) or "patternProperties" in schema:
        return
    known = schema.get("properties", {})
    for name in instance:
        if name in known:
            continue
        if value is False:
            yield ValidationError(f"unknown field; known are {_shown(list(known))}", path=deque([name[:64]]))
        else:
            yield from validator.descend(instance[name], value, path=name)


def _alternatives(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    """`anyOf`, and `oneOf` of types that exclude one another, as tagged ones do."""
    context: list[ValidationError] = []
    for number, one in enumerate(value):
        errors = list(validator.descend(instance, one, schema_path=number))
        if not errors:
            return
        context.extend(errors)
    yield ValidationError("fits none of the types that the task takes here", context=context)


def _bound(is_good: Callable[[Any, Any], bool], words: str) -> _Keyword:
    """A bound of numbers."""

    def check(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
        if validator.is_type(instance, "number") and not is_good(instance, value):
            yield ValidationError(f"must be {words} {_shown(value)}")

    return check


def _is_multiple(number: Any, of: Any) -> bool:
    if isinstance(number, float) or isinstance(of, float):
        quotient = number / of
        return bool(abs(quotient - round(quotient)) < 1e-9 * max(1.0, abs(quotient)))
    return bool(number % of == 0)


def _length(kind: type[Sized], is_good: Callable[[Any, Any], bool], words: str, what: str) -> _Keyword:
    """A bound of the length of texts, lists or objects."""

    def check(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
        if isinstance(instance, kind) and not is_good(len(instance), value):
            yield ValidationError(f"must have {words} {value} {what}")

    return check


def _pattern(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    if isinstance(instance, str):
        engine = _engine(value)
        if engine is not None and not engine.isinstance_python(instance):
            yield ValidationError(f"must match {_shown(value)}")


@lru_cache(maxsize=1024)
def _engine(pattern: str) -> SchemaValidator | None:
    """pydantic's engine, whose time is linear; None for what it does not know, such as looking ahead."""
    try:
        return SchemaValidator(core_schema.str_schema(pattern=pattern, strict=True))
    except SchemaError:
        return None


def _unique_items(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    if value and isinstance(instance, list) and len(instance) <= _UNIQUE_MAX:
        for number, one in enumerate(instance):
            if any(_is_same(one, other) for other in instance[:number]):
                yield ValidationError("is there before; items must differ", path=deque([number]))
                return


_THEIRS: Final = ("$ref", "allOf", "items", "prefixItems", "properties")
_KEYWORDS: Final[dict[str, _Keyword]] = {
    **{name: Draft202012Validator.VALIDATORS[name] for name in _THEIRS},
    "additionalProperties": _additional_properties,
    "anyOf": _alternatives,
    "const": _const,
    "enum": _enum,
    "exclusiveMaximum": _bound(operator.lt, "less than"),
    "exclusiveMinimum": _bound(operator.gt, "more than"),
    "maxItems": _length(list, operator.le, "at most", "items"),
    "maxLength": _length(str, operator.le, "at most", "characters"),
    "maxProperties": _length(dict, operator.le, "at most", "fields"),
    "maximum": _bound(operator.le, "at most"),
    "minItems": _length(list, operator.ge, "at least", "items"),
    "minLength": _length(str, operator.ge, "at least", "characters"),
    "minProperties": _length(dict, operator.ge, "at least", "fields"),
    "minimum": _bound(operator.ge, "at least"),
    "multipleOf": _bound(_is_multiple, "a multiple of"),
    "oneOf": _alternatives,
    "pattern": _pattern,
    "required": _required,
    "type": _type,
    "uniqueItems": _unique_items,
}
