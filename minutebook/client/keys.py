"""The first API key of an installation: made once, kept in a folder, known to the API by its hash alone.

`python -m minutebook.client.keys FOLDER` makes `FOLDER/api-key`, which only its owner can read, and
`FOLDER/keys.json`, which is what MINUTEBOOK_API_KEYS_FILE names.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import sys
from pathlib import Path
from typing import Final

from minutebook.log.written import write_whole
from minutebook.mint import mint_api_key, mint_key_id

TENANT: Final = "default"
ROLE: Final = "admin"


def kept_key(file: Path) -> str:
    """The API key in `file`, made if it is not there; readable by its owner alone."""
    with contextlib.suppress(FileNotFoundError):
        return file.read_text().strip()
    file.parent.mkdir(parents=True, exist_ok=True)
    key = mint_api_key(mint_key_id())
    with contextlib.suppress(FileExistsError):  # another process was first
        write_whole(file, f"{key}\n".encode(), mode=0o600, is_new=True)
    return file.read_text().strip()


def keyring(key: str) -> str:
    """What the API is told of `key`, as JSON: SHA-256 in hex -> tenant `default`, role admin."""
    return json.dumps({digest_of(key): {"tenant": TENANT, "role": ROLE}})


def digest_of(key: str) -> str:
    """All that the API knows of `key`: its SHA-256 in hex."""
    return hashlib.sha256(key.encode()).hexdigest()


def main(folder: Path) -> None:
    """Make both files in `folder` unless they are there."""
    key = kept_key(folder / "api-key")
    write_whole(folder / "keys.json", f"{keyring(key)}\n".encode())
    sys.stderr.write(f"API key: {folder / 'api-key'}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
