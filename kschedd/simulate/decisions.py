"""The decision log: one line of JSON an attempt, in the order in which attempts were made.

With one seed and one input two runs write the same bytes, whatever PYTHONHASHSEED is: fields come in a fixed order,
times are virtual, and nothing of this machine is in it.
"""

import json
from pathlib import Path
from typing import IO

from kschedd.errors import KscheddError
from kschedd.simulate.engine import LoggedAttempt


class DecisionLogError(KscheddError):
    """The file for the decision log cannot be written."""


class DecisionLog:
    """Open while the simulation runs; `path` None writes nothing. A context manager."""

    def __init__(self, path: Path | None) -> None:
        self._file: IO[str] | None = None
        if path is not None:
            try:
                self._file = path.open("w", encoding="utf-8", newline="\n")
            except OSError as fault:
                raise DecisionLogError(f"{path}: cannot be written: {fault.strerror}") from fault

    def __enter__(self) -> "DecisionLog":
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()

    def write(self, decision: LoggedAttempt) -> None:
        if self._file is not None:
            self._file.write(line(decision))


def line(decision: LoggedAttempt) -> str:
    return json.dumps(decision.line(), ensure_ascii=False, separators=(",", ":")) + "\n"
