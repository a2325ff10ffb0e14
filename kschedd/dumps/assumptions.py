"""Notes on how a dump was loaded: omitted, changed and made-up objects; one line with a count per kind of note."""

from collections.abc import Iterable
from typing import Final

import attrs

_EXAMPLES: Final = 3


@attrs.define(eq=False)
class Assumptions:
    """The assumptions of a load: each has a text, and the objects to which it applies."""

    _found: dict[str, list[str]] = attrs.field(factory=dict, init=False)  # examples by text
    _counts: dict[str, int] = attrs.field(factory=dict, init=False)

    def note(self, text: str, about: str = "", times: int = 1) -> None:
        """Record an assumption. `about` is the name of the object; the first few names are printed."""
        self._counts[text] = self._counts.get(text, 0) + times
        examples = self._found.setdefault(text, [])
        if about and len(examples) < _EXAMPLES and about not in examples:
            examples.append(about)

    def update(self, others: "Assumptions") -> None:
        for text, examples in others._found.items():
            self.note(text, times=0)
            self._counts[text] += others._counts[text]
            self._found[text] = list(dict.fromkeys([*self._found[text], *examples]))[:_EXAMPLES]

    def texts(self) -> list[str]:
        """Return one line per assumption, in the order in which they were first noted."""
        return [self._line(text) for text in self._found]

    def _line(self, text: str) -> str:
        count, examples = self._counts[text], self._found[text]
        if not examples:
            return text if count == 1 else f"{text} ({count:,} times)"
        more = f" and {count - len(examples):,} more" if count > len(examples) else ""
        return f"{text}: {', '.join(examples)}{more}"


def counted(names: Iterable[str]) -> str:
    """Return the names with their counts, such as `Deployment 3, Pod 12`."""
    counts: dict[str, int] = {}
    for name in names:
        counts[name] = counts.get(name, 0) + 1
    return ", ".join(f"{name} {counts[name]:,}" for name in sorted(counts))


MOST_KEPT: Final = 100


class LoadErrors:
    """The errors of a load.

    The first errors are stored and all others only counted, because a file of a million values may have a million
    errors.
    """

    def __init__(self, texts: Iterable[str] = ()) -> None:
        self._texts: list[str] = []
        self._more = 0
        for text in texts:
            self.add(text)

    def add(self, text: str) -> None:
        if len(self._texts) < MOST_KEPT:
            self._texts.append(text)
        else:
            self._more += 1

    def copy(self) -> "LoadErrors":
        same = LoadErrors(self._texts)
        same._more = self._more
        return same

    def texts(self) -> list[str]:
        return [*self._texts, f"and {self._more:,} more errors"] if self._more else list(self._texts)
