"""Rows in RocksDB, by rocksdict, in raw mode only (its default mode pickles).

`set_iterate_lower_bound` of rocksdict 0.3.29 sets the upper bound, so it is never called: scans start with `from_key`.
Write-ahead log without fsync: a lost tail only costs a replay of the log. Handles are dropped before `close`, else the
lock stays with this process.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from rocksdict import (
    AccessType,
    BlockBasedOptions,
    Cache,
    Checkpoint,
    DBCompressionType,
    Options,
    Rdict,
    ReadOptions,
    WriteBatch,
)

from minutebook.store.port import Pending, Ranges


def _options(cache: Any) -> Any:
    table = BlockBasedOptions()
    table.set_block_cache(cache)
    table.set_bloom_filter(10, False)
    options = Options(raw_mode=True)
    options.set_block_based_table_factory(table)
    options.set_write_buffer_size(16 << 20)
    options.set_compression_type(DBCompressionType.lz4())
    return options


class RocksRows:
    """A `Rows` in a RocksDB folder of its own (mode 0700)."""

    def __init__(
        self,
        folder: Path,
        families: Sequence[str],
        *,
        cache_bytes: int = 32 << 20,
        is_read_only: bool = False,
    ):
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        os.chmod(folder, 0o700)
        cache = Cache(cache_bytes)
        options = _options(cache)
        options.create_if_missing(True)
        options.create_missing_column_families(True)
        options.set_max_background_jobs(2)
        options.set_keep_log_file_num(2)
        # By default 16 threads are started for each family, which has a few files: half of the time of an opening.
        options.set_max_file_opening_threads(1)
        options.set_max_total_wal_size(128 << 20)
        access = AccessType.read_only() if is_read_only else AccessType.read_write()
        self._db = Rdict(
            str(folder),
            options,
            column_families={name: _options(cache) for name in families},
            access_type=access,
        )
        self._families = {name: self._db.get_column_family(name) for name in families}
        self._handles = {name: self._db.get_column_family_handle(name) for name in families}

    def get(self, family: str, key: bytes) -> bytes | None:
        """See `Rows.get`."""
        value: bytes | None = self._families[family].get(key)
        return value

    def scan(self, family: str, start: bytes, end: bytes | None) -> Iterator[tuple[bytes, bytes]]:
        """See `Rows.scan`."""
        bounds = ReadOptions()
        if end is not None:
            bounds.set_iterate_upper_bound(end)
        yield from self._families[family].items(from_key=start, read_opt=bounds)

    def scan_back(self, family: str, start: bytes, end: bytes) -> Iterator[tuple[bytes, bytes]]:
        """See `Rows.scan_back`."""
        bounds = ReadOptions()
        bounds.set_iterate_upper_bound(end)
        found: Any = self._families[family].items(backwards=True, from_key=end, read_opt=bounds)
        for key, value in found:
            if key < start:
                return
            yield key, value

    def write(self, pending: Pending, ranges: Ranges) -> None:
        """See `Rows.write`."""
        batch = WriteBatch(raw_mode=True)
        for family, start, end in ranges:
            batch.delete_range(start, end, self._handles[family])
        for family, rows in pending.items():
            handle = self._handles[family]
            for key, value in rows.items():
                if value is None:
                    batch.delete(key, handle)
                else:
                    batch.put(key, value, handle)
        self._db.write(batch)

    def checkpoint(self, folder: str) -> None:
        """See `Rows.checkpoint`."""
        copy = Checkpoint(self._db)
        copy.create_checkpoint(folder)
        del copy

    def close(self) -> None:
        """See `Rows.close`."""
        self._handles.clear()
        for family in self._families.values():
            family.close()
        self._families.clear()
        self._db.close()
        del self._db
        gc.collect()
