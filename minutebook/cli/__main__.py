"""`python -m minutebook.cli` is the same as `minutebook`."""

from minutebook.cli.main import run

run()
