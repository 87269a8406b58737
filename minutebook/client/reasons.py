"""Why something is wanted, for requests whose body has no field for it."""

from __future__ import annotations

from urllib.parse import quote


def reason_headers(reason: str) -> dict[str, str]:
    """The header that says `reason`; none for none."""
    return {"minutebook-reason": quote(reason, safe="")} if reason else {}
