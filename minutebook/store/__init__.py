"""A sorted key-value store with families: the cache of what a log folds to.

`port.Rows` is what folds read and write, `memory.MemoryRows` and `rocks.RocksRows` are its two adapters; one
conformance suite runs on both. rocksdict is imported in `rocks.py` alone.
"""
