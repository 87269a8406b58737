"""The HTTP API: takes commands, answers from its own view of the log."""
