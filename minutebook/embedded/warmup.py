"""The start-up cache: classes of Kafka loaded once and kept, which halves the time of a start (JEP 483, JEP 514).

The JVM itself checks that the cache fits its version and the class path, and starts without it if not: it is never needed.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from minutebook.embedded import jars, jvm
from minutebook.embedded.broker import Broker, Progress

_WRITE_S = 120.0


def make_startup_cache(cache: Path | None = None, progress: Progress | None = None) -> None:
    """Run a broker once in a temporary folder and keep what it loaded beside the files in `cache`.

    Takes 15 s on two cores; does nothing if the start-up cache is there. Raises what `Broker.start` raises.
    """
    cache = cache or jars.default_cache()
    tell = progress or (lambda _line: None)
    kept = jvm.startup_cache(cache)
    if kept.exists():
        return
    tell(f"Kafka {jars.KAFKA_VERSION}: one trial run, so that later starts take half the time")
    with tempfile.TemporaryDirectory(dir=cache, prefix=".trial-") as folder:
        made = Path(folder) / "made.aot"
        broker = Broker(Path(folder) / "data", jar_cache=cache, jvm_options=(f"-XX:AOTCacheOutput={made}",))
        broker.start()
        broker.stop(_WRITE_S)
        if made.exists():
            made.replace(kept)
            tell(f"Kafka {jars.KAFKA_VERSION}: ready.")
        else:
            tell(
                f"Kafka {jars.KAFKA_VERSION}: ready, but starts will be slow: the JVM kept no start-up cache."
            )
