"""`python -m docs.generate_cli` writes `docs/reference/cli.md` from the commands."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any, Final

import typer

from minutebook.cli.exits import MEANING
from minutebook.cli.main import app
from minutebook.cli.nouns import NOUNS, commands
from minutebook.cli.presentation import OPTIONS as EVERYWHERE

PAGE: Final = Path(__file__).parent / "reference" / "cli.md"
_HEAD: Final = """# Command line

`minutebook NOUN VERB` goes through the HTTP API, at `MINUTEBOOK_CLIENT_URL` with the key of `MINUTEBOOK_CLIENT_API_KEY` or of
the file that `MINUTEBOOK_CLIENT_API_KEY_FILE` names. `worker run`, `topics`, `doctor` and `dev` talk to Kafka, `config` and
`schedule preview` to nobody. This page is written by `python -m docs.generate_cli`.

## Output

Results go to stdout, everything else to stderr: hints, progress, faults. `--output` (`-o`) says how results are written: as a
`table`, as `json`, or as `jsonl` with one result a line. JSON has the shape of the API, and nothing else stands on stdout
then. Off a terminal there is no progress bar, and no line is folded; `NO_COLOR` leaves colours out.

Durations are given as `500ms`, `30s`, `2m`, `1h`, `7d`, or as ISO 8601 (`PT2M`); instants as RFC 3339 with an offset. What
destroys something asks before, or wants `--yes`; where nobody can be asked, it ends with 2.

**Every option has an environment name**, which `--help` shows: `MINUTEBOOK_`, the words of the command, and the option, such as
`MINUTEBOOK_JOB_SUBMIT_QUEUE` for `--queue` of `minutebook job submit`. The command line counts before the environment.

Every command has these options, which are left out below:

| option | environment | default | meaning |
|---|---|---|---|
"""
_COMPLETION: Final = """
## Completion

`minutebook --install-completion` sets up completion of nouns, verbs, options and choices for the shell that runs it (bash,
zsh, fish), from the next session on; `minutebook --show-completion` prints what it would install.
"""
_CODES: Final = """
## Exit codes

The same for every command and for `python -m replay`.

| exit | meaning |
|---|---|
"""

_TYPES: Final = {"str": "TEXT", "int": "NUMBER", "list[str]": "TEXT"}
_CONTEXT: Final = typer.Context(typer.main.get_command(app))
"""What names of types are asked with."""


def page() -> str:
    """The page as it must be."""
    everywhere = "".join(f"{row}\n" for row in _options(EVERYWHERE))
    codes = "".join(f"| {code.value} | {meaning} |\n" for code, meaning in MEANING.items())
    nouns = groupby(commands(), key=lambda found: found[0][0])
    return "".join([_HEAD, everywhere, _CODES, codes, _COMPLETION, *(_noun(*one) for one in nouns)])


def _noun(name: str, found: Iterator[tuple[tuple[str, ...], Any]]) -> str:
    return f"\n## {name}\n\n{NOUNS[name].help}\n" + "".join(_command(*one) for one in found)


def _command(words: tuple[str, ...], command: Any) -> str:
    heading = f"\n### {' '.join(words)}\n" if len(words) > 1 else ""
    arguments = [one for one in command.params if one.param_type_name == "argument"]
    left_out = {"help", "output", *(one.name for one in EVERYWHERE)}
    options = [one for one in command.params if one not in arguments and one.name not in left_out]
    usage = " ".join(["minutebook", *words, *(_usage(one) for one in arguments)])
    parts = [heading, f"\n{_text(command.help)}\n" if heading else _more(command.help)]
    parts.append(f"\n`{usage}`\n")
    if arguments:
        parts.append("\n" + "".join(f"- `{_name(one)}`: {one.help}\n" for one in arguments if one.help))
    if options:
        rows = "".join(f"{row}\n" for row in _options(options))
        parts.append(f"\n| option | environment | default | meaning |\n|---|---|---|---|\n{rows}")
    return "".join(parts)


def _text(help_: str | None) -> str:
    paragraphs = (help_ or "").split("\n\n")
    return "\n\n".join(" ".join(one.split()) for one in paragraphs)


def _more(help_: str | None) -> str:
    """What a noun without verbs says beyond its first sentence, which stands above."""
    _, _, rest = _text(help_).partition("\n\n")
    return f"\n{rest}\n" if rest else ""


def _usage(argument: Any) -> str:
    name = _name(argument)
    return name if argument.required else f"[{name}]"


def _name(argument: Any) -> str:
    return str(argument.metavar or argument.name.upper()).strip("[]").removesuffix("...").rstrip("]")


def _options(options: Any) -> Iterator[str]:
    for one in options:
        flags = ", ".join(f"`{flag}`" for flag in (*one.opts, *one.secondary_opts))
        kind = "" if one.is_flag else f" {_kind(one)}"
        default = "required" if one.required else _default(one)
        yield f"| {flags}{kind} | `{one.envvar}` | {default} | {_cell(one.help)} |"


def _kind(option: Any) -> str:
    text = str(option.metavar or option.display_type(_CONTEXT)).strip("<>")
    if "|" in text:
        return _cell(f"`{text}`")
    return _TYPES.get(text, text.upper())


def _default(option: Any) -> str:
    if isinstance(option.show_default, str):
        return f"`{option.show_default}`"
    value = option.default
    return "" if value is None or value in ("", False, []) else f"`{getattr(value, 'value', value)}`"


def _cell(text: str | None) -> str:
    return " ".join((text or "").split()).replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(page())
