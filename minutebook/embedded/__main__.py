"""`python -m minutebook.embedded` gets everything ready for starts without a network; `… lock` pins the files anew."""

from __future__ import annotations

import sys

from minutebook.embedded import jars, warmup
from minutebook.embedded.errors import EmbeddedError


def main(arguments: list[str]) -> int:
    """Run one of the two. Returns the exit code: 0, or 1 with a message that names the remedy."""
    try:
        if arguments == ["lock"]:
            jars.write_lock()
        else:
            files = jars.fetch(progress=print)
            print(f"Kafka {jars.KAFKA_VERSION}: {len(files)} files, checksums right.")
            warmup.make_startup_cache(progress=print)
    except EmbeddedError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
