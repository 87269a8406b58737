"""Settings of the notifier, which runs in the API process."""

from __future__ import annotations

import ipaddress
from pathlib import Path
from typing import Annotated

import msgspec
from pydantic import BaseModel, Field, SecretStr, field_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from api.notifier.addresses import Network, Rules
from api.notifier.signature import read_secret
from minutebook.domain.notify import read_target
from minutebook.errors import SettingsError
from minutebook.ids import is_name


class TenantTarget(BaseModel, frozen=True, extra="forbid"):
    """Where a tenant's alerts go, and what they are signed with. Without a `url`, only those of jobs that name one."""

    url: str = ""
    secret: SecretStr

    @field_validator("secret")
    @classmethod
    def _check_secret(cls, secret: SecretStr) -> SecretStr:
        read_secret(secret.get_secret_value())
        return secret


class NotifySettings(BaseSettings):
    """Environment names start with `MINUTEBOOK_NOTIFY_`. `targets`: tenant -> its target."""

    model_config = SettingsConfigDict(
        env_prefix="MINUTEBOOK_NOTIFY_", frozen=True, extra="ignore", hide_input_in_errors=True
    )

    targets: dict[str, TenantTarget] = Field(
        default={},
        description="JSON: tenant -> its `secret` (`whsec_...`) and, if it has one for all its jobs, the `url` of its target",
    )
    targets_file: Path | None = Field(default=None, description="file of the same form, read at the start")
    allow_http: bool = Field(default=False, description="targets may be `http://` too, for development")
    allowed_networks: Annotated[tuple[str, ...], NoDecode] = Field(
        default=(),
        description="networks in which targets may lie although they are not public, on any port, such as `10.1.0.0/16`, "
        "with commas",
    )
    timeout_s: float = Field(
        default=10.0, gt=0, le=60, description="for one post, from the name to the answer"
    )

    @field_validator("allowed_networks", mode="before")
    @classmethod
    def _split(cls, value: object) -> object:
        return (
            [text.strip() for text in value.split(",") if text.strip()] if isinstance(value, str) else value
        )

    @field_validator("allowed_networks")
    @classmethod
    def _check_networks(cls, networks: tuple[str, ...]) -> tuple[str, ...]:
        for network in networks:
            ipaddress.ip_network(network)
        return networks

    def rules(self) -> Rules:
        """What may be called."""
        networks: list[Network] = [ipaddress.ip_network(network) for network in self.allowed_networks]
        return Rules(allows_http=self.allow_http, networks=networks)

    def all_targets(self) -> dict[str, TenantTarget]:
        """Targets of the setting and of the file, which is JSON of the same shape. Raises SettingsError."""
        found = self.targets
        if self.targets_file is not None:
            try:
                more = msgspec.json.decode(self.targets_file.read_bytes())
            except (OSError, msgspec.DecodeError) as error:
                raise SettingsError(f"MINUTEBOOK_NOTIFY_TARGETS_FILE cannot be read: {error}") from error
            found = self.model_validate({"targets": more}).targets | found
        for tenant, target in found.items():
            self._check(tenant, target)
        return found

    def _check(self, tenant: str, target: TenantTarget) -> None:
        remedy = "" if is_name(tenant) else "a tenant is 1-128 ASCII letters, digits, ._-"
        if not remedy and target.url:
            try:
                remedy = self.rules().refusal_of_url(read_target(target.url))
            except ValueError as error:
                remedy = str(error)
            remedy = remedy and f"its url {remedy}"
        if remedy:
            raise SettingsError(f"MINUTEBOOK_NOTIFY_TARGETS: tenant {tenant[:128]!a}: {remedy}")
