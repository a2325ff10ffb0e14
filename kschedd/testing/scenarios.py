"""Scenario files as assertions of a test."""

from pathlib import Path

import attrs

from kschedd.scenarios.file import differences, read


@attrs.define(eq=False)
class UnexpectedOutput(AssertionError):
    """The output of commands in a scenario differs from the file."""

    text: str

    def __str__(self) -> str:
        return self.text


def check_scenario(path: Path | str) -> None:
    """Run a scenario file, which may refer to plugin files. Raises UnexpectedOutput with the differences."""
    found = "\n".join(map(str, differences(read(Path(path)))))
    if found:
        raise UnexpectedOutput(found)
