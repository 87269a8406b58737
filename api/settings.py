"""Settings of the API process."""

from __future__ import annotations

import hashlib
import re
from ipaddress import ip_network
from pathlib import Path
from typing import Annotated, Final, Literal

import msgspec
from pydantic import BaseModel, Field, SecretStr, field_validator, model_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from api.actors import Network
from api.notifier.settings import NotifySettings
from minutebook.domain.view_retention import AUDIT_DAYS, DEAD_DAYS, HISTORY_DAYS, Retention
from minutebook.errors import SettingsError
from minutebook.ids import is_name
from minutebook.log.admin import TopicSettings
from minutebook.log.settings import KafkaSettings

RoleName = Literal["viewer", "submitter", "operator", "admin", "worker"]
_SECRET_BYTES_MIN: Final = 16
_SHA256_HEX = re.compile(r"[0-9a-f]{64}\Z")


class KeyHolder(BaseModel, frozen=True, extra="forbid"):
    """Whom a key belongs to."""

    tenant: str
    role: RoleName


class ApiSettings(BaseSettings):
    """Environment names start with `MINUTEBOOK_API_`. `keys`: SHA-256 in hex of a key -> its tenant and role."""

    model_config = SettingsConfigDict(env_prefix="MINUTEBOOK_API_", frozen=True, extra="ignore")

    host: str = Field(default="127.0.0.1", description="address of the public port")
    port: int = Field(default=8000, ge=0, le=65_535, description="public port")
    health_port: int = Field(
        default=8001,
        ge=0,
        le=65_535,
        description="health port: `/livez /startupz /readyz /metrics` and `POST /checkpoint`",
    )
    health_host: str = Field(
        default="127.0.0.1",
        description="address of the health port: whoever reaches it reads metrics and makes copies, without a key",
    )
    clock_bound_ms: int = Field(
        default=1_000, gt=0, description="a clock off the broker's by more is not ready: `/readyz` says so"
    )
    niceness: int = Field(
        default=10,
        ge=0,
        le=19,
        description="added to the process's niceness: on a shared machine a read may lag, a due run may not",
    )
    data_dir: Path = Field(default=Path("data/api"), description="the view's store")
    retention_days: int = Field(
        default=HISTORY_DAYS,
        ge=1,
        le=3_650,
        description="days before today of which ended executions, closed jobs and answers to commands are shown; what is "
        "open stays. Changed, the view is folded again",
    )
    dead_retention_days: int = Field(
        default=DEAD_DAYS,
        ge=1,
        le=3_650,
        description="days before today of which dead letters are shown, never fewer than of others. Changed, the view is "
        "folded again",
    )
    audit_retention_days: int = Field(
        default=AUDIT_DAYS,
        ge=1,
        le=3_650,
        description="days before today of which the audit log tells, by months, never fewer than dead letters are shown. "
        "Changed, the view is folded again",
    )
    checkpoint_dir: Path = Field(
        default=Path("data/checkpoints"), description="where `POST /checkpoint` puts copies of the view"
    )
    reports_dir: Path | None = Field(
        default=None,
        description="folder to which `python -m replay verify` and `completeness` write (`--report`): the page of the audit "
        "log shows their last results",
    )
    keys: dict[str, KeyHolder] = Field(
        default={}, description="JSON: SHA-256 in hex of a key -> its `tenant` and `role`"
    )
    keys_file: Path | None = Field(default=None, description="file of the same form, read at the start")
    cursor_secret: SecretStr | None = Field(
        default=None,
        min_length=_SECRET_BYTES_MIN,
        description="signs cursors and sessions of the pages: the same in every API process; without it they are signed "
        "with what follows from the keys of the settings, and end when these change",
    )
    cursor_secret_file: Path | None = Field(default=None, description="or the file that holds it")
    trusted_proxies: Annotated[tuple[str, ...], NoDecode] = Field(
        default=(),
        description="networks of proxies whose `X-Forwarded-For` is believed, such as `10.1.0.0/16`, with commas; its "
        "last hop is on record as where a command came from",
    )
    operator_tenant: str = Field(
        default="", description="tenant whose admins see all tenants, with counts; others see their own"
    )
    rate_per_s: float = Field(
        default=0.0,
        ge=0,
        allow_inf_nan=False,
        description="requests a second of one key, of each API process; 0 = as many as come",
    )
    rate_burst: int = Field(
        default=1_000, ge=1, description="requests of one key that may come at once, where a rate is set"
    )
    body_timeout_s: float = Field(default=10.0, gt=0, description="for a request's body to arrive")
    append_timeout_s: float = Field(
        default=10.0, gt=0, description="for the broker to acknowledge a command, else 503"
    )
    streams_max: int = Field(
        default=2_000, ge=0, description="`/v1/stream` at once in this process; more get 503"
    )
    path_prefix: str = Field(
        default="",
        pattern=r"^(/[A-Za-z0-9._~-]+)*$",
        max_length=200,
        description="what stands before every path, such as `/minutebook`, whether a proxy takes it off or not",
    )
    environment: str = Field(
        default="", max_length=40, description="shown at the head of every page, such as `staging`"
    )
    is_payload_masked: bool = Field(default=False, description="pages show no payload and no result")
    login_token: str = Field(
        default="", max_length=200, description="good once, for 10 minutes from the start: `/login?token=…`"
    )
    login_key: str = Field(
        default="", description="SHA-256 in hex of the key that `login_token` stands for, one of `keys`"
    )
    cache_bytes: int = Field(default=64 << 20, ge=1 << 20, description="block cache of the view's store")

    @field_validator("trusted_proxies", mode="before")
    @classmethod
    def _split(cls, given: object) -> object:
        return (
            [part.strip() for part in given.split(",") if part.strip()] if isinstance(given, str) else given
        )

    @field_validator("trusted_proxies")
    @classmethod
    def _check_proxies(cls, networks: tuple[str, ...]) -> tuple[str, ...]:
        for network in networks:
            ip_network(network)
        return networks

    @model_validator(mode="after")
    def _check_keys(self) -> ApiSettings:
        for name, holder in self.keys.items():
            if not _SHA256_HEX.match(name):
                raise ValueError(
                    "keys: each name must be the SHA-256 of a key in lower-case hex (`sha256sum`)"
                )
            if not is_name(holder.tenant):
                raise ValueError("keys: a tenant is 1-128 ASCII letters, digits, ._-")
        if bool(self.login_token) != bool(self.login_key):
            raise ValueError("login_token, login_key: give both or neither")
        if self.login_key and not _SHA256_HEX.match(self.login_key):
            raise ValueError("login_key: must be the SHA-256 of a key in lower-case hex (`sha256sum`)")
        return self

    def retention(self) -> Retention:
        """How long the view keeps what is over."""
        return Retention(self.retention_days, self.dead_retention_days, self.audit_retention_days)

    def all_keys(self) -> dict[str, KeyHolder]:
        """Keys of the setting and of the file, which is JSON of the same shape. Raises SettingsError."""
        if self.keys_file is None:
            return self.keys
        try:
            more = msgspec.json.decode(self.keys_file.read_bytes())
        except (OSError, msgspec.DecodeError) as error:
            raise SettingsError(f"MINUTEBOOK_API_KEYS_FILE cannot be read: {error}") from error
        return self.model_validate({"keys": more}).keys | self.keys

    def cursor_key(self) -> bytes:
        """What signs cursors and sessions. Raises SettingsError for a file that cannot be read, or holds too little."""
        if self.cursor_secret is not None:
            return _signing_key(self.cursor_secret.get_secret_value().encode())
        if self.cursor_secret_file is not None:
            return _signing_key(_secret_in(self.cursor_secret_file))
        return _signing_key(b"".join(sorted(bytes.fromhex(name) for name in self.all_keys())))

    def proxies(self) -> tuple[Network, ...]:
        """Networks of trusted proxies."""
        return tuple(map(ip_network, self.trusted_proxies))


class ProcessSettings(BaseModel, frozen=True, arbitrary_types_allowed=True):
    """Everything that one API process is told at its start."""

    api: ApiSettings
    kafka: KafkaSettings
    topics: TopicSettings
    notify: NotifySettings


def _signing_key(secret: bytes) -> bytes:
    return hashlib.sha256(b"cursors" + secret).digest()


def _secret_in(file: Path) -> bytes:
    try:
        secret = file.read_bytes().strip()
    except OSError as error:
        raise SettingsError(f"MINUTEBOOK_API_CURSOR_SECRET_FILE cannot be read: {error}") from error
    if len(secret) < _SECRET_BYTES_MIN:
        raise SettingsError(
            f"MINUTEBOOK_API_CURSOR_SECRET_FILE holds {len(secret)} bytes: put {_SECRET_BYTES_MIN} or more there"
        )
    return secret


def key_hash(key: str) -> str:
    """What is kept of a key: SHA-256 in hex."""
    return hashlib.sha256(key.encode()).hexdigest()
