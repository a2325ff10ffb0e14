"""An argument parser that records its arguments: one source for completion, help and manual pages.

argparse has no public interface to list a parser's arguments, so each one is recorded when it is added.
"""

import argparse
from pathlib import Path
from typing import Any

import attrs


def path_text(text: str) -> str:
    """A path as it was given; an empty one, such as an unset shell variable, would mean the current directory.

    For argparse: raises ArgumentTypeError.
    """
    if not text:
        raise argparse.ArgumentTypeError('a path is expected, not ""')
    return text


def path_value(text: str) -> Path:
    """As `path_text`."""
    return Path(path_text(text))


@attrs.frozen
class Flag:
    """A flag, such as `-o, --output FORM`; a positional argument if `names` is empty."""

    names: tuple[str, ...]
    metavar: str  # "" if it takes no value
    help: str
    choices: tuple[str, ...] = ()


class NotingParser(argparse.ArgumentParser):
    """An ArgumentParser with `noted`: every argument, in the order in which it was added."""

    def __init__(self, **options: Any) -> None:
        self.noted: list[Flag] = []
        super().__init__(**options)

    def add_argument(self, *names: Any, **options: Any) -> argparse.Action:
        return self._note(super().add_argument(*names, **options))

    def add_argument_group(self, *args: Any, **options: Any) -> Any:
        group = super().add_argument_group(*args, **options)
        add = group.add_argument

        def add_and_note(*names: Any, **options: Any) -> argparse.Action:
            return self._note(add(*names, **options))

        vars(group)["add_argument"] = add_and_note
        return group

    def _note(self, action: argparse.Action) -> argparse.Action:
        metavar = action.metavar if isinstance(action.metavar, str) else ""
        if action.nargs != 0 and not metavar:
            metavar = "{" + ",".join(map(str, action.choices)) + "}" if action.choices else action.dest.upper()
        choices = tuple(map(str, action.choices or ()))
        takes = "" if action.option_strings and action.nargs == 0 else metavar
        text = (action.help or "") if action.help != argparse.SUPPRESS else ""
        self.noted.append(Flag(tuple(action.option_strings), takes, text % {"default": action.default}, choices))
        return action
