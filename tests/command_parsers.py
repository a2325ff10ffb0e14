"""The parsers of the commands that have modules of their own; verbs have theirs in `kschedd.verbs.table`."""

from collections.abc import Iterator

from kschedd.cli import MOUNTED
from kschedd.commands.shell.completion import parser_of
from kschedd.verbs.command_line.parsing import NotingParser


def command_parsers() -> Iterator[tuple[str, NotingParser]]:
    """Yield each command with its parser, and after it its subcommands, by their whole names such as `plugin new`."""
    for name in MOUNTED:
        yield from _with_subcommands(name, parser_of(name, MOUNTED))


def _with_subcommands(name: str, parser: NotingParser) -> Iterator[tuple[str, NotingParser]]:
    yield name, parser
    for member, below in parser.commands.items():
        yield from _with_subcommands(f"{name} {member}", below)
