"""An argument parser that records its arguments: one source for completion, help and manual pages.

Each argument is recorded when it is added, because argparse cannot list a parser's arguments.
"""

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs


def path_text(text: str) -> str:
    """Return the path unchanged.

    Reject an empty path, which an unset variable produces and which would mean the current directory.

    For argparse: raises ArgumentTypeError if the path is empty.
    """
    if not text:
        raise argparse.ArgumentTypeError("the path is empty")
    return text


def path_value(text: str) -> Path:
    """Return the path as a Path. Raises ArgumentTypeError for an empty path."""
    return Path(path_text(text))


def duration(text: str) -> float:
    """Return the seconds of a duration such as 30s, 1h30m or 2d.

    For argparse: raises ArgumentTypeError if the duration is invalid or negative.
    """
    from kschedd.api.text.durations import DurationError, parse_span

    try:
        seconds = parse_span(text)
    except DurationError:
        raise argparse.ArgumentTypeError(
            f'invalid duration "{text[:40]}": expected a duration such as 30s, 5m, 1h30m or 2d'
        ) from None
    if seconds < 0:
        raise argparse.ArgumentTypeError(f'invalid duration "{text[:40]}": it must not be negative')
    return seconds


@attrs.frozen
class Flag:
    """A flag, such as `-o, --output FORM`; a positional argument if `names` is empty."""

    names: tuple[str, ...]
    metavar: str  # "" if it takes no value
    help: str
    choices: tuple[str, ...] = ()


class NotingParser(argparse.ArgumentParser):
    """ArgumentParser that also stores every argument in `noted`, in the order of the calls to `add_argument`."""

    def __init__(self, **options: Any) -> None:
        self.noted: list[Flag] = []
        self.renamed: dict[str, str] = {}  # former name -> current name of a flag, for error messages
        self.commands: Mapping[str, NotingParser] = {}  # parsers of subcommands
        self.given: Sequence[str] = ()  # words to parse, for error messages
        super().__init__(**options)

    def add_subparsers(self, **options: Any) -> Any:
        action = super().add_subparsers(**options)
        self.commands = action.choices
        return action

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
