"""Verbs on plugins from elsewhere: plugins, reload."""

import argparse

from kschedd.printing.tables import Table, render
from kschedd.verbs.answers import FORMS, write_answer
from kschedd.verbs.grammar import Verb, VerbParser, output_flag
from kschedd.verbs.parsing import path_text
from kschedd.verbs.session import VerbSession


def plugins(session: VerbSession, options: argparse.Namespace) -> int:
    found = session.daemon.call("plugins.list")
    if write_answer(session, options.output, found):
        return 0
    if not found:
        session.write_error("Only built-in plugins are there: `kschedd run --plugin FILE.py` brings others.\n")
        return 0
    rows = tuple(
        (one["name"], ",".join(one["profiles"]) or "<none>", ",".join(one["points"]), one["source"]) for one in found
    )
    session.write(render(Table(("NAME", "PROFILES", "POINTS", "FROM"), rows), session.style))
    return 0


def _reload_words(words: VerbParser) -> None:
    words.add_argument("file", metavar="FILE.py", type=path_text, help="a file that the daemon was started with")


def reload(session: VerbSession, options: argparse.Namespace) -> int:
    found = session.daemon.call("plugins.reload", file=str((session.folder / options.file).absolute()))
    for one in found:
        where = f"profiles {', '.join(one['profiles'])}" if one["profiles"] else "no profile has it"
        session.write(f"{one['name']} reloaded: {where}\n")
    return 0


def _output_words(words: VerbParser) -> None:
    output_flag(words, FORMS)


VERBS = (
    Verb(
        "plugins",
        "Plugins that are not built in, and which profiles have them.",
        plugins,
        _output_words,
        examples=("plugins", "plugins -o json"),
    ),
    Verb(
        "reload",
        "Read a plugin file again: it counts from the next attempt on.",
        reload,
        _reload_words,
        examples=("reload my_plugin.py",),
    ),
)
