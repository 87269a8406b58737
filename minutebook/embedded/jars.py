"""The files of Apache Kafka: which ones, fetched how, and that they are the pinned ones.

`kafka-jars.lock` lists every file with its size and SHA-256. `fetch` takes exactly those, by jgo's resolver in Python: neither
Maven nor a Java on the PATH is used. `python -m minutebook.embedded` fetches, `… lock` resolves `ROOTS` anew.
"""

from __future__ import annotations

import fcntl
import hashlib
import sys
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import tenacity
import truststore
from jgo.maven import MavenContext, PythonResolver
from jgo.parse import Coordinate

from minutebook.embedded.errors import JarDamagedError, JarFetchError
from minutebook.log.written import write_whole

Progress = Callable[[str], None]

KAFKA_VERSION = "4.3.1"
# slf4j is named because Kafka asks for 1.7.36, which finds no simple binding and logs nothing. The command line tools
# (kafka-tools) are left out: broker and storage formatter are in kafka_2.13, the tools double the files with Connect and Jetty.
ROOTS = (
    f"org.apache.kafka:kafka_2.13:{KAFKA_VERSION}",
    "org.slf4j:slf4j-api:2.0.20",
    "org.slf4j:slf4j-simple:2.0.20",
)
LOCK_FILE = Path(__file__).with_name("kafka-jars.lock")
_ATTEMPTS = 3
_TIMEOUT_S = 60
_DOWNLOADS_AT_ONCE = 4


@dataclass(frozen=True, slots=True)
class Jar:
    """One pinned file: `group:artifact:version`, its bytes and their SHA-256 in hex."""

    coordinate: str
    size: int
    sha256: str

    @property
    def file_name(self) -> str:
        """Name of the file in the cache and in the repository."""
        _, artifact, version = self.coordinate.split(":")
        return f"{artifact}-{version}.jar"


def read_lock(lock_file: Path = LOCK_FILE) -> tuple[Jar, ...]:
    """The pinned files, in class path order. Lines that begin with `#` are remarks."""
    lines = (line for line in lock_file.read_text().splitlines() if line and not line.startswith("#"))
    return tuple(
        Jar(coordinate, int(size), sha256) for coordinate, size, sha256 in (line.split() for line in lines)
    )


def default_cache() -> Path:
    """Folder of the files: inside the virtual environment if there is one, else in the user's cache."""
    in_environment = sys.prefix != sys.base_prefix
    base = Path(sys.prefix) / "share" if in_environment else Path.home() / ".cache"
    return base / "minutebook" / f"kafka-{KAFKA_VERSION}"


def fetch(
    cache: Path | None = None, progress: Progress | None = None, lock_file: Path = LOCK_FILE
) -> tuple[Path, ...]:
    """The class path: every pinned file, checked just now; missing ones are downloaded first.

    Needs no network once all files are there. `progress` gets one line per file. Safe in several processes at once.
    Raises JarFetchError if a download fails (what has arrived is kept), JarDamagedError if a file is not the pinned one.
    """
    cache = cache or default_cache()
    jars = read_lock(lock_file)
    if any(not (cache / jar.file_name).exists() for jar in jars):
        _download_missing(jars, cache, progress or _silent)
    for jar in jars:
        _check(jar, cache / jar.file_name, remedy=f"Delete the folder {cache} and run `make setup` again.")
    return tuple(cache / jar.file_name for jar in jars)


def _silent(_line: str) -> None:
    pass


def _download_missing(jars: tuple[Jar, ...], cache: Path, progress: Progress) -> None:
    cache.mkdir(parents=True, exist_ok=True)
    with _exclusive(cache / ".lock"), tempfile.TemporaryDirectory(dir=cache, prefix=".arriving-") as arriving:
        missing = [jar for jar in jars if not (cache / jar.file_name).exists()]
        context = MavenContext(resolver=PythonResolver(), repo_cache=Path(arriving), timeout=_TIMEOUT_S)
        with _system_trust(), ThreadPoolExecutor(_DOWNLOADS_AT_ONCE) as pool:
            arrivals = pool.map(lambda jar: _download(jar, context, cache), missing)
            for number, jar in enumerate(arrivals, start=1):
                progress(
                    f"Kafka {KAFKA_VERSION}: {number}/{len(missing)} {jar.file_name} ({jar.size // 1024} KiB)"
                )


@contextmanager
def _system_trust() -> Iterator[None]:
    """TLS goes by the certificates that this machine trusts, as pip's does, not by those that requests brings along:
    behind a company's proxy only the machine knows the proxy's."""
    truststore.inject_into_ssl()
    try:
        yield
    finally:
        truststore.extract_from_ssl()


@contextmanager
def _exclusive(lock: Path) -> Iterator[None]:
    with lock.open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def _download(jar: Jar, context: MavenContext, cache: Path) -> Jar:
    group, artifact, version = jar.coordinate.split(":")
    wanted = context.project(group, artifact).at_version(version).artifact()
    retrying = tenacity.Retrying(
        stop=tenacity.stop_after_attempt(_ATTEMPTS), wait=tenacity.wait_fixed(1), reraise=True
    )

    def once() -> Path:
        partial = wanted.cached_path
        if partial is not None:
            partial.unlink(missing_ok=True)
        return Path(wanted.resolve())

    try:
        arrived = retrying(once)
    except Exception as error:  # jgo and requests raise many kinds; each means: not here
        raise JarFetchError(
            f"{jar.coordinate} could not be downloaded from Maven Central ({type(error).__name__}). "
            "Check the network or the proxy settings and run `make setup` again: what has arrived is kept."
        ) from error
    _check(jar, arrived, remedy="The download is not used. Run `make setup` again; if it stays, report it.")
    arrived.replace(cache / jar.file_name)
    return jar


def _check(jar: Jar, path: Path, remedy: str) -> None:
    digest = _sha256(path) if path.stat().st_size == jar.size else "another size"
    if digest != jar.sha256:
        raise JarDamagedError(
            f"{path} is not the pinned {jar.coordinate}: expected sha256 {jar.sha256}, found {digest}. {remedy}"
        )


def _sha256(path: Path) -> str:
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def write_lock(lock_file: Path = LOCK_FILE, progress: Progress = print) -> None:
    """Resolve `ROOTS` with all they need at run time and write the lock. For a new Kafka version; takes a minute."""
    with tempfile.TemporaryDirectory() as folder:
        context = MavenContext(resolver=PythonResolver(), repo_cache=Path(folder), timeout=_TIMEOUT_S)
        roots = [context.create_dependency(Coordinate.parse(root)) for root in ROOTS]
        named, drawn_in = context.resolver.resolve(roots)
        wanted = [*named, *(one for one in drawn_in if one.scope in ("compile", "runtime"))]
        lines = []
        for one in wanted:
            path = Path(one.artifact.resolve())
            progress(path.name)
            coordinate = f"{one.groupId}:{one.artifactId}:{one.version}"
            lines.append(f"{coordinate} {path.stat().st_size} {_sha256(path)}\n")
    header = f"# Apache Kafka {KAFKA_VERSION} and what it needs: coordinate, size in bytes, sha256.\n"
    write_whole(lock_file, (header + "".join(sorted(lines))).encode())
