"""The decision log: one line of JSON per scheduling attempt, in the order of the attempts.

Two runs with the same seed and input write the same bytes: the order of fields is fixed, times are virtual, and no
value depends on the machine.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from kschedd.errors import KscheddError
from kschedd.simulation.engine import LoggedAttempt


class DecisionLogError(KscheddError):
    """The error if the decision log cannot be written."""


class DecisionLog:
    """Context manager for the log's file, which is open during the simulation.

    If `path` is None, nothing is written.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._file: IO[str] | None = None
        if path is not None:
            with self._appended():
                self._file = path.open("w", encoding="utf-8", newline="\n")

    def __enter__(self) -> "DecisionLog":
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            with self._appended():
                self._file.close()

    def write(self, decision: LoggedAttempt) -> None:
        if self._file is not None:
            with self._appended():
                self._file.write(line(decision))

    @contextmanager
    def _appended(self) -> Iterator[None]:
        """Raise a DecisionLogError in place of an OSError, also for a delayed write."""
        try:
            yield
        except OSError as fault:
            raise DecisionLogError(f"{self._path}: cannot be written: {fault.strerror}") from fault


_encoded = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def line(decision: LoggedAttempt) -> str:
    return _encoded(decision.line()) + "\n"
