"""The log of a partition: read it, tell valid frames from void records, append to it."""
