"""What owners decide by, as their frames name it: the version of the rules, a digest of the settings that decide."""

from __future__ import annotations

import hashlib
from typing import Final

from minutebook.domain import timing
from minutebook.domain.coming import CATCH_UP_PER_S
from minutebook.domain.missed import GRACE_MS
from minutebook.domain.overlap import HELD_MAX
from minutebook.domain.policy import DEFAULT

RULES: Final = 5
TIMEOUT_GRACE_MS: Final = 10_000
"""So long after an attempt's timeout its owner ends it, if nothing was heard of it."""
STOP_GRACE_MS: Final = 30_000
"""So long after a request to stop its owner ends an attempt that did not obey."""
SETTINGS_DIGEST: Final = hashlib.sha256(
    f"{DEFAULT} {TIMEOUT_GRACE_MS} {STOP_GRACE_MS} {timing.DEFAULT} {GRACE_MS} {CATCH_UP_PER_S} {HELD_MAX}".encode()
).digest()[:8]
