"""Where an audit of one partition keeps what it has: owner's state, view, open permits and how far it came, in one store.

What its users write is stored together, in one batch, so that after a crash all of it stands at the same record. Kept in a
folder, an audit goes on from there in a later call.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import BinaryIO, Final

import msgspec

from minutebook.domain import book as state
from minutebook.domain import view_rows as view
from minutebook.errors import SettingsError
from minutebook.log.written import unfinished_of, write_whole
from minutebook.store.port import Pending, Ranges, Rows
from replay import permits
from replay.refold import MakeRows, on_disk

FORMAT: Final = f"2.{state.FORMAT}.{view.FORMAT}"
"""What an audit kept in a folder can be gone on with: this version of it, and of both folds."""
PROGRESS: Final = "progress"

_MARKER: Final = "audit.json"
_SECTIONS: Final[dict[str, tuple[str, ...]]] = {
    "state": state.FAMILIES,
    "view": view.FAMILIES,
    "audit": (PROGRESS, permits.FAMILY),
}


class AuditStore:
    """One store with sections. What is written into a section is there once `flush` has stored all of it."""

    def __init__(self, folder: Path, make_rows: MakeRows = on_disk) -> None:
        """Raises SettingsError where the store in `folder` cannot be opened."""
        names = tuple(f"{section}.{name}" for section, families in _SECTIONS.items() for name in families)
        try:
            self._rows = make_rows(folder, names)
        except Exception as error:  # rocksdict raises bare Exception
            raise SettingsError(f"{folder} cannot be opened: {error}. Choose a new folder") from error
        self._pending: dict[str, dict[bytes, bytes | None]] = {}
        self._ranges: Ranges = []

    def section(self, name: str) -> Section:
        """The rows of one user."""
        return Section(self, self._rows, name)

    def gather(self, family: str, rows: Mapping[bytes, bytes | None]) -> None:
        """Rows of a family that are to be written with the next `flush`."""
        self._pending.setdefault(family, {}).update(rows)

    def gather_range(self, family: str, start: bytes, end: bytes) -> None:
        """Rows of a family that are to be deleted with the next `flush`, those gathered so far among them."""
        self._ranges.append((family, start, end))
        gathered = self._pending.get(family, {})
        for key in [key for key in gathered if start <= key < end]:
            del gathered[key]

    def flush(self) -> None:
        """Store what was gathered, in one batch."""
        self._rows.write(self._pending, self._ranges)
        self._pending, self._ranges = {}, []

    def close(self) -> None:
        """Give the store free."""
        self._rows.close()


class Section:
    """`Rows` of one user of an `AuditStore`."""

    def __init__(self, store: AuditStore, rows: Rows, name: str) -> None:
        self._store = store
        self._rows = rows
        self._names = {family: f"{name}.{family}" for family in _SECTIONS[name]}

    def get(self, family: str, key: bytes) -> bytes | None:
        """See `Rows.get`."""
        return self._rows.get(self._names[family], key)

    def scan(self, family: str, start: bytes, end: bytes | None) -> Iterator[tuple[bytes, bytes]]:
        """See `Rows.scan`."""
        return self._rows.scan(self._names[family], start, end)

    def scan_back(self, family: str, start: bytes, end: bytes) -> Iterator[tuple[bytes, bytes]]:
        """See `Rows.scan_back`."""
        return self._rows.scan_back(self._names[family], start, end)

    def write(self, pending: Pending, ranges: Ranges) -> None:
        """See `Rows.write`: with all that other sections write before the store's next `flush`."""
        for family, start, end in ranges:
            self._store.gather_range(self._names[family], start, end)
        for family, rows in pending.items():
            self._store.gather(self._names[family], rows)

    def checkpoint(self, folder: str) -> None:
        """See `Rows.checkpoint`: of all sections."""
        self._rows.checkpoint(folder)

    def close(self) -> None:
        """Nothing: the store is closed by who opened it."""


def keep_in(folder: Path) -> None:
    """Make `folder` one that audits are kept in, unless it is. Raises SettingsError for a folder with anything else in it."""
    marker = folder / _MARKER
    if marker.is_file():
        found = marker.read_text().strip()
        if found != f'"{FORMAT}"':
            raise SettingsError(
                f"{folder} holds an audit of format {found}, {FORMAT} is known here: choose a new folder"
            )
        return
    if folder.exists() and any(path != unfinished_of(marker) for path in folder.iterdir()):
        raise SettingsError(f"{folder} holds something else: choose a new folder")
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    write_whole(marker, f'"{FORMAT}"\n'.encode())


def write_rows(path: Path, rows: Iterable[permits.Row]) -> None:
    """Rows into a file, to be read by `read_rows` in another process."""
    encode = msgspec.msgpack.Encoder().encode
    with path.open("wb") as out:
        for row in rows:
            data = encode(row)
            out.write(len(data).to_bytes(4) + data)


def read_rows(path: Path) -> Iterator[permits.Row]:
    """Rows that `write_rows` wrote, one at a time."""
    decode = msgspec.msgpack.Decoder(permits.Row).decode
    with path.open("rb") as source:
        while length := source.read(4):
            yield decode(source.read(int.from_bytes(length)))


class KeptHeads:
    """The chain's head before each record of a partition from `start` on, in a file: `count` of them are there."""

    _BYTES: Final = 32

    def __init__(self, path: Path, start: int, count: int) -> None:
        """Raises SettingsError where the file holds less."""
        self._start = start
        self._file: BinaryIO = path.open("r+b" if count else "w+b")  # closed by close
        if self._file.seek(0, 2) < count * self._BYTES:
            self._file.close()
            raise SettingsError(f"{path} was cut: choose a new folder")
        self._file.seek(count * self._BYTES)
        self._file.truncate()

    def add(self, head: bytes) -> None:
        """The head before the next record."""
        self._file.write(head)

    def before(self, offset: int) -> bytes:
        """The head before the record at `offset`, one of those added."""
        self._file.seek((offset - self._start) * self._BYTES)
        found = self._file.read(self._BYTES)
        self._file.seek(0, 2)
        return found

    def flush(self) -> None:
        """Hand all to the system."""
        self._file.flush()

    def close(self) -> None:
        """Give the file free."""
        self._file.close()
