"""`python -m replay`: audits of the log. It reads topics and files; it writes no topic and calls no URL."""

from __future__ import annotations

import typer

from minutebook.cli.exits import ExitCode
from replay.verbs.at import at
from replay.verbs.completeness import completeness_of
from replay.verbs.decide import decide
from replay.verbs.export import export_log
from replay.verbs.importing import import_files
from replay.verbs.story import story
from replay.verbs.verify import verify_log
from replay.verbs.why import why

app = typer.Typer(help=__doc__, no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)


@app.callback()
def main() -> None:
    """Audits of the log."""


app.command("verify")(verify_log)
app.command("decide")(decide)
app.command("story")(story)
app.command("completeness")(completeness_of)
app.command("why")(why)
app.command("at")(at)
app.command("export")(export_log)
app.command("import")(import_files)


if __name__ == "__main__":
    try:
        app(prog_name="python -m replay")
    except KeyboardInterrupt:
        raise SystemExit(ExitCode.INTERRUPTED) from None
