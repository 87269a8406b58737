"""Jobs that are created if, and only if, a transaction of a database is committed."""
