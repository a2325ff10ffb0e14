"""report: an HTML page about the recent activity of the cluster."""

import argparse

from kschedd.verbs.command_line.grammar import VerbParser, verb
from kschedd.verbs.command_line.parsing import path_text
from kschedd.verbs.command_line.session import VerbSession

_FILE = "kschedd-report.html"


def _words(words: VerbParser) -> None:
    words.add_argument("path", nargs="?", default=_FILE, metavar="FILE", type=path_text, help=f"{_FILE}; - for stdout")
    words.add_argument("--redact", action="store_true", help="replace names of the cluster")
    words.add_argument("--force", action="store_true", help="overwrite an existing file")


@verb(
    "report",
    "Write an HTML report of the cluster: utilization, pending pods, decisions.",
    _words,
    examples=("report", "report incident.html --redact"),
)
def report(session: VerbSession, options: argparse.Namespace) -> int:
    target = (session.folder / options.path).absolute()
    if options.path != "-" and target.exists() and not options.force:
        session.error(f"{options.path} already exists; --force overwrites it")
        return 1
    text = session.daemon.call("report.page", redact=options.redact)["page"]
    if options.path == "-":
        session.write(text)
        return 0
    try:
        target.write_text(text, encoding="utf-8", newline="\n")
    except OSError as fault:
        session.error(f"{options.path}: cannot be written: {fault.strerror}")
        return 1
    session.write(f"{options.path}: {len(text.encode()):,} bytes; open it in a browser\n")
    return 0
