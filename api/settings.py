"""Settings of the API process."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Literal

import msgspec
from pydantic import BaseModel, Field, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from api.notifier.settings import NotifySettings
from minutebook.domain.view_rows import RETENTION_DAYS
from minutebook.errors import SettingsError
from minutebook.ids import is_name
from minutebook.log.admin import TopicSettings
from minutebook.log.settings import KafkaSettings

RoleName = Literal["viewer", "submitter", "operator", "admin", "worker"]
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
        default=RETENTION_DAYS,
        ge=1,
        le=3_650,
        description="days before today of which ended executions are shown; what is open or was given up stays. "
        "Changed, the view is folded again",
    )
    checkpoint_dir: Path = Field(
        default=Path("data/checkpoints"), description="where `POST /checkpoint` puts copies of the view"
    )
    keys: dict[str, KeyHolder] = Field(
        default={}, description="JSON: SHA-256 in hex of a key -> its `tenant` and `role`"
    )
    keys_file: Path | None = Field(default=None, description="file of the same form, read at the start")
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
    cache_bytes: int = Field(default=64 << 20, ge=1 << 20, description="block cache of the view's store")

    @model_validator(mode="after")
    def _check_keys(self) -> ApiSettings:
        for name, holder in self.keys.items():
            if not _SHA256_HEX.match(name):
                raise ValueError(
                    "keys: each name must be the SHA-256 of a key in lower-case hex (`sha256sum`)"
                )
            if not is_name(holder.tenant):
                raise ValueError("keys: a tenant is 1-128 ASCII letters, digits, ._-")
        return self

    def all_keys(self) -> dict[str, KeyHolder]:
        """Keys of the setting and of the file, which is JSON of the same shape. Raises SettingsError."""
        if self.keys_file is None:
            return self.keys
        try:
            more = msgspec.json.decode(self.keys_file.read_bytes())
        except (OSError, msgspec.DecodeError) as error:
            raise SettingsError(f"MINUTEBOOK_API_KEYS_FILE cannot be read: {error}") from error
        return self.model_validate({"keys": more}).keys | self.keys


class ProcessSettings(BaseModel, frozen=True, arbitrary_types_allowed=True):
    """Everything that one API process is told at its start."""

    api: ApiSettings
    kafka: KafkaSettings
    topics: TopicSettings
    notify: NotifySettings


def key_hash(key: str) -> str:
    """What is kept of a key: SHA-256 in hex."""
    return hashlib.sha256(key.encode()).hexdigest()
