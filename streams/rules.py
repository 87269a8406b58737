"""What owners decide by, as their frames name it: the version of the rules, a digest of the settings that decide."""

from __future__ import annotations

import hashlib
from typing import Final

from minutebook.domain import timing
from minutebook.domain.coming import CATCH_UP_PER_S
from minutebook.domain.missed import GRACE_MS
from minutebook.domain.overlap import HELD_MAX
from minutebook.domain.policy import DEFAULT
from streams.overruns import STOP_GRACE_MS, TIMEOUT_GRACE_MS

RULES: Final = 5
SETTINGS_DIGEST: Final = hashlib.sha256(
    f"{DEFAULT} {TIMEOUT_GRACE_MS} {STOP_GRACE_MS} {timing.DEFAULT} {GRACE_MS} {CATCH_UP_PER_S} {HELD_MAX}".encode()
).digest()[:8]
