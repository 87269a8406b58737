"""Where the API is and who calls it."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field, SecretStr
from pydantic_settings import BaseSettings, SettingsConfigDict

from minutebook import __version__
from minutebook.errors import SettingsError


class ClientSettings(BaseSettings):
    """Environment names start with `MINUTEBOOK_CLIENT_`. The key is given itself, or as the file that holds it."""

    model_config = SettingsConfigDict(env_prefix="MINUTEBOOK_CLIENT_", frozen=True, extra="ignore")

    url: str = Field(default="http://127.0.0.1:8000", description="where the API is")
    api_key: SecretStr | None = Field(default=None, description="the API key itself")
    api_key_file: Path | None = Field(default=None, description="or the file that holds it")
    user_agent: str = Field(
        default=f"minutebook-python/{__version__}",
        pattern=r"^[\x20-\x7e]{1,200}$",
        description="how it names itself; the first word is on record with every command, as `sdk` or `cli`",
    )
    timeout_s: float = Field(default=35.0, description="of one request")
    retries_max: int = Field(default=5, description="repeats after 429, 503 and connection faults")

    def key(self) -> str | None:
        """The API key, None without one. Raises SettingsError for a file that cannot be read."""
        if self.api_key is not None:
            return self.api_key.get_secret_value()
        if self.api_key_file is None:
            return None
        try:
            return self.api_key_file.read_text().strip()
        except OSError as error:
            raise SettingsError(f"MINUTEBOOK_CLIENT_API_KEY_FILE cannot be read: {error}") from error
