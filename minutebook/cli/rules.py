"""When a job is due, in a few words."""

from __future__ import annotations

from minutebook.client import Job, JobRequest


def rule_of(job: Job | JobRequest) -> str:
    """When a job is due, without its bounds."""
    if job.cron:
        return f"{job.cron} ({job.zone})"
    return f"every {job.every}" if job.every else str(job.run_at)
