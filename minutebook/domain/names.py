"""Dictionaries of columns: each text once, rows hold its number."""

from __future__ import annotations

from collections.abc import Sequence


class Names:
    """Dictionary of a column: each text once, rows hold its number."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self._numbers: dict[str, int] = {}

    def number(self, text: str) -> int:
        """Number of `text`, given on first sight."""
        found = self._numbers.get(text)
        if found is None:
            found = self._numbers[text] = len(self.texts)
            self.texts.append(text)
        return found

    def column(self, texts: Sequence[str]) -> list[int]:
        """Numbers of `texts`. Often they are all the same."""
        if not self.texts and texts and texts.count(texts[0]) == len(texts):
            return [self.number(texts[0])] * len(texts)
        number = self.number
        return [number(text) for text in texts]
