"""Where the API is and who calls it."""

from __future__ import annotations

from pydantic import SecretStr
from pydantic_settings import BaseSettings, SettingsConfigDict


class ClientSettings(BaseSettings):
    """Environment names start with `MINUTEBOOK_CLIENT_`; `api_key` is the secret itself, not its hash."""

    model_config = SettingsConfigDict(env_prefix="MINUTEBOOK_CLIENT_", frozen=True, extra="ignore")

    url: str = "http://127.0.0.1:8000"
    api_key: SecretStr | None = None
    timeout_s: float = 35.0
    retries_max: int = 5
