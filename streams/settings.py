"""Settings of the owners' process. Environment names start with `MINUTEBOOK_STREAMS_`."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict


class StreamsSettings(BaseSettings):
    """Read once, in `__main__`, and passed on."""

    model_config = SettingsConfigDict(env_prefix="MINUTEBOOK_STREAMS_", frozen=True, extra="ignore")

    data_dir: Path = Field(
        default=Path(".data/streams"),
        description="the owners' stores, one folder a partition; of this process alone",
    )
    checkpoint_dir: Path = Field(
        default=Path(".data/checkpoints"), description="where `POST /checkpoint` puts copies of the state"
    )
    instance_id: str = Field(
        default="owner-1", description="stable name of this process: static membership and owner id"
    )
    group: str = Field(
        default="minutebook-owners", description="consumer group that shares out the partitions"
    )
    health_host: str = Field(default="127.0.0.1", description="address of the health port")
    health_port: int = Field(
        default=8181, description="`/livez /startupz /readyz /metrics` and `POST /checkpoint`"
    )
    session_timeout_s: float = Field(
        default=6.0, gt=0, description="after this long without heartbeats the group moves on"
    )
    clock_bound_ms: int = Field(
        default=1_000, gt=0, le=1_000, description="off the broker by more: stop deciding"
    )
    stuck_after_s: float = Field(
        default=30.0, gt=0, description="an input undecided for longer restarts the process"
    )
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"] = Field(
        default="INFO", description="lowest level that is logged"
    )
