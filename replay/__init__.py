"""Audits of the log: read-only, from the log and copied files alone."""
