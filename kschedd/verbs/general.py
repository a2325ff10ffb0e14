"""api-resources, stop: verbs for the daemon as a whole."""

import argparse

from kschedd.printing.terminal.tables import Table, render
from kschedd.verbs.command_line.answers import FORMS, write_answer
from kschedd.verbs.command_line.grammar import VerbParser, output_flag, verb
from kschedd.verbs.command_line.parsing import duration
from kschedd.verbs.command_line.session import VerbSession


def _kinds_words(words: VerbParser) -> None:
    output_flag(words, FORMS)


@verb(
    "api-resources",
    "List the kinds of objects, and the number of objects of each.",
    _kinds_words,
    examples=("api-resources", "api-resources -o json"),
)
def api_resources(session: VerbSession, options: argparse.Namespace) -> int:
    found = session.daemon.call("objects.kinds")
    if write_answer(session, options.output, found):
        return 0
    rows = tuple(
        (
            str(kind.get("plural") or ""),
            ",".join(kind.get("short_names") or ()),
            str(kind.get("api_version") or ""),
            str(bool(kind.get("namespaced"))).lower(),
            str(kind["name"]),
            str(kind.get("count", 0)),
        )
        for kind in found
    )
    headers = ("NAME", "SHORTNAMES", "APIVERSION", "NAMESPACED", "KIND", "COUNT")
    session.write(render(Table(headers, rows), session.style))
    return 0


def _stop_words(words: VerbParser) -> None:
    words.add_argument(
        "--grace", type=duration, metavar="DURATION", help="time for running requests to end, such as 10s"
    )
    words.add_argument("-y", "--yes", action="store_true", help="do not ask for confirmation")


@verb("stop", "Stop the daemon.", _stop_words, examples=("stop", "stop --yes --grace 10s"))
def stop(session: VerbSession, options: argparse.Namespace) -> int:
    if not options.yes and not session.confirm("Stop the daemon? State without a journal is lost."):
        session.write_error("The daemon keeps running.\n")
        return 1
    session.daemon.call("daemon.stop", **({} if options.grace is None else {"grace_s": options.grace}))
    session.write("the daemon is stopping\n")
    return 0
