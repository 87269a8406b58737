"""`python -m docs.generate_actions` writes `docs/reference/actions.md` from the list of actions that logs name."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from minutebook.actions import ACTIONS

PAGE: Final = Path(__file__).parent / "reference" / "actions.md"
_HEAD: Final = """# Actions in logs

Owners, API and workers write one JSON object a line to stderr, in UTC; on a terminal, text for people. `action` is one of these
names, which stay as they are, so look for them and alert on them. `message` says it in words. Beside them stand `level`,
`timestamp` and what is known of: `job_id` `execution_id` `attempt` `task` `queue` `tenant` `partition` `offset` `trace_id`.
Control characters are escaped and long values cut. Payloads, credentials and what a URL says of its user are never told, and
looks at health are not logged. This page is written by `python -m docs.generate_actions`.

| action | what it means |
|---|---|
"""


def page() -> str:
    """The page as it must be."""
    return _HEAD + "".join(f"| `{name}` | {meaning} |\n" for name, meaning in sorted(ACTIONS.items()))


if __name__ == "__main__":
    PAGE.write_text(page())
