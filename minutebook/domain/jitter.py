"""When an instant is due: at its time, or up to `jitter_ms` later, so that jobs of one schedule do not all start at once."""

from __future__ import annotations

from hashlib import sha256

from minutebook import ids


def due_at(tenant: str, job_id: str, scheduled_at: int, jitter_ms: int) -> int:
    """When the instant of a job is due (ms, UTC): from `scheduled_at` to `jitter_ms` after it.

    Folds rest on it, so it must give the same for ever: the delay is the first 8 bytes of the SHA-256 of
    `<tenant>/<execution id>` modulo `jitter_ms` + 1.
    """
    if not jitter_ms:
        return scheduled_at
    named = f"{tenant}/{ids.execution_id(job_id, scheduled_at)}".encode()
    return scheduled_at + int.from_bytes(sha256(named).digest()[:8]) % (jitter_ms + 1)
