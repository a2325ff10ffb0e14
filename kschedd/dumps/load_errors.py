"""The errors of a load: the first are told, the others counted, for a file of millions of values may have as many."""

from collections.abc import Iterable
from typing import Final

MOST_TOLD: Final = 100


class LoadErrors:
    def __init__(self, texts: Iterable[str] = ()) -> None:
        self._texts: list[str] = []
        self._more = 0
        for text in texts:
            self.add(text)

    def add(self, text: str) -> None:
        if len(self._texts) < MOST_TOLD:
            self._texts.append(text)
        else:
            self._more += 1

    def copy(self) -> "LoadErrors":
        same = LoadErrors(self._texts)
        same._more = self._more
        return same

    def texts(self) -> list[str]:
        return [*self._texts, f"and {self._more:,} more errors"] if self._more else list(self._texts)
