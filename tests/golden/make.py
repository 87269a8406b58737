"""Make golden histories: `python -m tests.golden.make NAME …` makes new ones, `--fold NAME …` says anew what old records fold
to and tell, after a change of the state's rows or of the words that was meant.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import msgspec

from minutebook.domain.rules import RULES
from replay.files import FileLog
from tests.golden import history, plays_of_time, plays_of_work
from tests.golden.history import HISTORIES, Expected
from tests.golden.plays import PLAYS

__all__ = ["plays_of_time", "plays_of_work"]


def make(name: str, folder: Path) -> None:
    """Play a history and keep it in `folder`, which must not be there yet."""
    history.save(PLAYS[name](), folder)
    expect(folder, RULES)


def expect(folder: Path, rules: int) -> None:
    """Say what a history comes to, and tell its story."""
    log = FileLog(folder)
    lines = map(msgspec.json.encode, history.story(log))
    (folder / "story.jsonl").write_bytes(b"\n".join(lines) + b"\n")
    expected = Expected(rules, history.fold(log))
    text = msgspec.json.format(msgspec.json.encode(expected), indent=2)
    (folder / "expected.json").write_bytes(text + b"\n")


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, epilog=f"known: {', '.join(PLAYS)}")
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help="default: all that --fold knows, or that are new"
    )
    parser.add_argument("--fold", action="store_true", help="leave the records as they are")
    chosen = parser.parse_args()
    known = history.names() if chosen.fold else PLAYS
    if unknown := set(chosen.names) - set(known):
        parser.error(f"no such history: {', '.join(sorted(unknown))}")
    new = [name for name in PLAYS if name not in history.names()]
    for name in chosen.names or (known if chosen.fold else new):
        folder = HISTORIES / name
        if chosen.fold:
            expect(folder, history.expected_of(name).rules)
        elif folder.exists():
            parser.error(f"{name} is there already: a history that was released is never made anew")
        else:
            make(name, folder)
        print(name)


if __name__ == "__main__":
    main()
