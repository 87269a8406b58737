"""What owners decide by, as their frames name it: the version of the rules, a digest of the settings that decide."""

from __future__ import annotations

import hashlib
from typing import Final

from minutebook.domain.due import MISFIRE_MAX, MISFIRE_WINDOW_MS
from minutebook.domain.policy import DEFAULT
from streams.overruns import STOP_GRACE_MS, TIMEOUT_GRACE_MS

RULES: Final = 4
SETTINGS_DIGEST: Final = hashlib.sha256(
    f"{DEFAULT} {TIMEOUT_GRACE_MS} {STOP_GRACE_MS} {MISFIRE_WINDOW_MS} {MISFIRE_MAX}".encode()
).digest()[:8]
