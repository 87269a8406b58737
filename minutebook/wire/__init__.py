"""Bytes to records and back: Avro single-object encoding, frames, topics. No I/O but the schema files."""
