"""web: a link to the page in the browser."""

import argparse

from kschedd.verbs.command_line.answers import FORMS, write_answer
from kschedd.verbs.command_line.grammar import VerbParser, output_flag, verb
from kschedd.verbs.command_line.session import VerbSession


def _words(words: VerbParser) -> None:
    output_flag(words, FORMS)


@verb(
    "web",
    "Print the address of the daemon's page for browsers. The daemon must run with `kschedd run --web`. If the page "
    "requires a login, the address is a link that is valid once, for 120 s.",
    _words,
    examples=("web", "web -o json"),
)
def web(session: VerbSession, options: argparse.Namespace) -> int:
    found = session.daemon.call("daemon.page")
    if not write_answer(session, options.output, found):
        session.write(f"{found['url']}\n")
    return 0
