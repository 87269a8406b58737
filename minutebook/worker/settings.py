"""Settings of a worker process."""

from __future__ import annotations

import os
import socket
from typing import Annotated, Self

from pydantic import Field, field_validator, model_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict


def _default_name() -> str:
    return f"{socket.gethostname()}-{os.getpid()}"


class WorkerSettings(BaseSettings):
    """Environment names start with `MINUTEBOOK_WORKER_`. `queues` empty = the queues that the app's tasks name; in the
    environment they are parted by commas.
    """

    model_config = SettingsConfigDict(env_prefix="MINUTEBOOK_WORKER_", frozen=True, extra="ignore")

    concurrency: int = Field(10, ge=1, le=100_000, description="tasks at once")
    queues: Annotated[tuple[str, ...], NoDecode] = Field(
        (), description="queues to serve, with commas; empty = those that the tasks name"
    )
    lease_ms: int = Field(
        10_000, ge=5_000, le=600_000, description="a worker silent for so long has lost what it runs"
    )
    pulse_ms: int = Field(3_000, ge=100, description="a full report at the latest; at most half the lease")
    name: str = Field(
        default_factory=_default_name,
        max_length=256,
        description="name for people; host and process id by default",
    )
    metrics_port: int | None = Field(
        None,
        ge=0,
        le=65_535,
        description="port for `/livez /startupz /readyz /metrics`; needs the extra `prometheus`",
    )
    metrics_host: str = Field("127.0.0.1", description="address of that port")
    clock_bound_ms: int = Field(
        1_000, gt=0, description="a clock off the broker's by more is not ready: `/readyz` says so"
    )
    grace_s: float = Field(30.0, ge=0, description="for tasks to finish when asked to leave")

    @field_validator("queues", mode="before")
    @classmethod
    def _split(cls, value: object) -> object:
        return (
            [name.strip() for name in value.split(",") if name.strip()] if isinstance(value, str) else value
        )

    @model_validator(mode="after")
    def _pulses_keep_the_lease(self) -> Self:
        if self.pulse_ms * 2 > self.lease_ms:
            raise ValueError("pulse_ms must be at most half of lease_ms, or one late pulse ends the lease")
        return self
