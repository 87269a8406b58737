"""What is wrong with the settings of this environment: names that nothing reads, values that are refused, files that cannot
be read, and pairs that cannot be true together.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec
from pydantic import ValidationError

from minutebook.cli.config_values import settings
from minutebook.cli.setting_parts import PARTS, installed
from minutebook.environment import names_of, unknown_names
from minutebook.errors import SettingsError

OTHER_NAMES: Final = frozenset({"MINUTEBOOK_ROUNDS", "MINUTEBOOK_TEST_BOOTSTRAP_SERVERS"})
"""Read by the tests alone."""
_PREFIX: Final = "MINUTEBOOK_"
_LONGEST_WAIT_S: Final = 30
_READERS: Final = {"API": "all_keys", "Notifier": "all_targets", "Client": "key", "Kafka": "password"}
"""Part -> what reads the files that its settings name. Raises SettingsError."""


class SettingFault(msgspec.Struct):
    """What is wrong with a setting, and what to do."""

    name: str
    fault: str
    remedy: str


def faults(environment: Mapping[str, str], options: set[str]) -> Iterator[SettingFault]:
    """All faults. `options`: environment names of the options of commands."""
    yield from _unknown(environment, options)
    for one in settings(environment):
        if one.refused:
            yield SettingFault(
                one.name, one.refused, "give another value; docs/reference/settings.md has the bounds"
            )
    there = {}
    for part, kind in installed():
        try:
            there[part.title] = kind()
        except ValidationError:
            continue
    yield from _unreadable(there)
    yield from _pairs(there)


def _unknown(environment: Mapping[str, str], options: set[str]) -> Iterator[SettingFault]:
    kinds = dict(installed())
    absent = tuple(part.prefix for part in PARTS if part not in kinds)
    known = {name for kind in kinds.values() for name in names_of(kind)} | options | OTHER_NAMES
    for name, near in unknown_names(environment, [_PREFIX], known):
        if not name.startswith(absent or ("\0",)):
            remedy = (
                f"did you mean {near}?" if near else "remove it; docs/reference/settings.md has all names"
            )
            yield SettingFault(name, "nothing reads it", remedy)


def _unreadable(there: Mapping[str, Any]) -> Iterator[SettingFault]:
    for title, reader in _READERS.items():
        try:
            if title in there:
                getattr(there[title], reader)()
        except (SettingsError, ValidationError) as error:
            name, _, reason = str(error).partition(" ")
            yield SettingFault(
                name, reason, "name a file that this process can read, of the form that is asked for"
            )


def _pairs(there: Mapping[str, Any]) -> Iterator[SettingFault]:
    if "Kafka" in there:
        yield from _kafka(there["Kafka"])
    if "Client" in there:
        yield from _client(there["Client"])
    if "API" in there and "Owners" in there:
        yield from _servers(there["API"], there["Owners"])


def _kafka(kafka: Any) -> Iterator[SettingFault]:
    name, has_sasl = "MINUTEBOOK_KAFKA_SECURITY_PROTOCOL", kafka.security_protocol.startswith("SASL")
    if has_sasl and kafka.sasl_username is None:
        yield SettingFault(
            name, f"{kafka.security_protocol} without a user", "give MINUTEBOOK_KAFKA_SASL_USERNAME"
        )
    if not has_sasl and kafka.sasl_username is not None:
        yield SettingFault(name, f"{kafka.security_protocol} takes no user", "give SASL_SSL, or no user")
    has_password = kafka.sasl_password is not None or kafka.sasl_password_file is not None
    if kafka.sasl_username is not None and not has_password:
        remedy = "give MINUTEBOOK_KAFKA_SASL_PASSWORD or _FILE"
        yield SettingFault("MINUTEBOOK_KAFKA_SASL_USERNAME", "a user without a password", remedy)
    if kafka.ssl_ca_file is not None and not kafka.security_protocol.endswith("SSL"):
        remedy = "give SSL or SASL_SSL as the protocol, or no file"
        fault = f"nothing is encrypted by {kafka.security_protocol}"
        yield SettingFault("MINUTEBOOK_KAFKA_SSL_CA_FILE", fault, remedy)
    elif kafka.ssl_ca_file is not None and not Path(kafka.ssl_ca_file).is_file():
        yield SettingFault("MINUTEBOOK_KAFKA_SSL_CA_FILE", "there is no such file", "name a PEM file")


def _client(client: Any) -> Iterator[SettingFault]:
    if client.api_key is not None and client.api_key_file is not None:
        fault = "both a key and a file are given; the key counts"
        yield SettingFault("MINUTEBOOK_CLIENT_API_KEY_FILE", fault, "give one of them")
    if client.timeout_s <= _LONGEST_WAIT_S:
        fault = f"requests end after {client.timeout_s:g} s, but an outcome is waited for up to {_LONGEST_WAIT_S} s"
        yield SettingFault("MINUTEBOOK_CLIENT_TIMEOUT_S", fault, f"give more than {_LONGEST_WAIT_S}")


def _servers(api: Any, owners: Any) -> Iterator[SettingFault]:
    if api.port and api.port == api.health_port:
        yield SettingFault(
            "MINUTEBOOK_API_HEALTH_PORT", f"{api.port} is the public port, too", "give another one"
        )
    if owners.health_port in {api.port, api.health_port} - {0}:
        fault = f"{owners.health_port} is a port of the API, too"
        yield SettingFault(
            "MINUTEBOOK_STREAMS_HEALTH_PORT", fault, "give another one, or run them on two hosts"
        )
    if _is_same_or_inside(api.data_dir, owners.data_dir):
        fault = f"{api.data_dir} is the folder of the owners' stores, too"
        yield SettingFault("MINUTEBOOK_API_DATA_DIR", fault, "give each process a folder of its own")
    for part, kind in (("API", api), ("STREAMS", owners)):
        if _is_same_or_inside(kind.checkpoint_dir, kind.data_dir):
            fault = f"{kind.checkpoint_dir} is in the folder that the copies are made of"
            yield SettingFault(f"MINUTEBOOK_{part}_CHECKPOINT_DIR", fault, "give a folder on another disk")


def _is_same_or_inside(one: Path, other: Path) -> bool:
    first, second = one.resolve(), other.resolve()
    return first == second or second in first.parents
