"""What the API answers of a `PUT` that changes nothing."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from minutebook.client.models import JobRequest, JobStatus, Name


class PutEffect(msgspec.Struct, kw_only=True):
    """What a `PUT` of a job would do. Bodies are whole: what is not given stands there with its default."""

    id: Name
    effect: Literal["created", "changed", "unchanged"]
    status: Annotated[JobStatus | None, Meta(description="of the job that is there; null = none is")]
    version: Annotated[int | None, Meta(description="of the job that is there")]
    before: Annotated[JobRequest | None, Meta(description="the create body that says the same as it")]
    after: Annotated[JobRequest, Meta(description="the create body that says the same as the job to be")]
