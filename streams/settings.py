"""Settings of the owners' process. Environment names start with `MINUTEBOOK_STREAMS_`."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict


class StreamsSettings(BaseSettings):
    """Read once, in `__main__`, and passed on."""

    model_config = SettingsConfigDict(env_prefix="MINUTEBOOK_STREAMS_", frozen=True, extra="ignore")

    data_dir: Path = Path(".data/streams")
    checkpoint_dir: Path = Path(".data/checkpoints")
    instance_id: str = Field(
        default="owner-1", description="stable name of this process: static membership and owner id"
    )
    group: str = "minutebook-owners"
    health_host: str = "127.0.0.1"
    health_port: int = 8181
    session_timeout_s: float = Field(
        default=6.0, gt=0, description="after this long without heartbeats the group moves on"
    )
    clock_bound_ms: int = Field(
        default=1_000, gt=0, le=1_000, description="off the broker by more: stop deciding"
    )
    stuck_after_s: float = Field(
        default=30.0, gt=0, description="an input undecided for longer restarts the process"
    )
    log_level: str = "INFO"
