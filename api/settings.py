"""Settings of the API process."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Literal

import msgspec
from pydantic import BaseModel, Field, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

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

    host: str = "127.0.0.1"
    port: int = Field(default=8000, ge=0, le=65_535)
    health_port: int = Field(default=8001, ge=0, le=65_535)
    data_dir: Path = Path("data/api")
    checkpoint_dir: Path = Path("data/checkpoints")
    keys: dict[str, KeyHolder] = {}
    keys_file: Path | None = None
    body_timeout_s: float = Field(default=10.0, gt=0)
    append_timeout_s: float = Field(default=10.0, gt=0)
    cache_bytes: int = Field(default=64 << 20, ge=1 << 20)

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


def key_hash(key: str) -> str:
    """What is kept of a key: SHA-256 in hex."""
    return hashlib.sha256(key.encode()).hexdigest()
