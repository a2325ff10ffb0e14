"""Verbs for out-of-tree plugins: plugin list, plugin reload."""

import argparse
from collections.abc import Mapping, Sequence
from typing import Any

from kschedd.printing.terminal.tables import Table
from kschedd.verbs.command_line.answers import FORMS, write_listing
from kschedd.verbs.command_line.grammar import VerbParser, output_flag, verb
from kschedd.verbs.command_line.parsing import path_text
from kschedd.verbs.command_line.session import VerbSession


def _output_words(words: VerbParser) -> None:
    output_flag(words, FORMS)


@verb(
    "plugins",
    "List out-of-tree plugins, and the profiles that enable them.",
    _output_words,
    whole="plugin list",
    examples=("plugins", "plugins -o json"),
)
def plugins(session: VerbSession, options: argparse.Namespace) -> int:
    found = session.daemon.call("plugins.list")
    nothing = "Only built-in plugins are there: `kschedd run --plugin FILE.py` brings others."
    return write_listing(session, options.output, found, _plugins_table, nothing)


def _plugins_table(plugins: Sequence[Mapping[str, Any]]) -> Table:
    rows = tuple(
        (one["name"], ",".join(one["profiles"]) or "<none>", ",".join(one["points"]), one["source"]) for one in plugins
    )
    return Table(("NAME", "PROFILES", "POINTS", "FROM"), rows)


def _reload_words(words: VerbParser) -> None:
    words.add_argument(
        "file", metavar="FILE.py", type=path_text, help="a file that was given when the daemon was started"
    )


@verb(
    "reload",
    "Reload a plugin file; the new code takes effect at the next attempt.",
    _reload_words,
    whole="plugin reload",
    examples=("reload my_plugin.py",),
)
def reload(session: VerbSession, options: argparse.Namespace) -> int:
    found = session.daemon.call("plugins.reload", file=str((session.folder / options.file).absolute()))
    for one in found:
        where = f"profiles {', '.join(one['profiles'])}" if one["profiles"] else "no profile has it"
        session.write(f"{one['name']} reloaded: {where}\n")
    return 0
