"""A producer that writes `job-commands` itself, by the schema files alone."""
