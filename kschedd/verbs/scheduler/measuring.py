"""metrics: the scheduler's metrics."""

import argparse

from kschedd.verbs.command_line.grammar import UsageError, VerbParser, verb
from kschedd.verbs.command_line.session import VerbSession


def _words(words: VerbParser) -> None:
    words.add_argument("prefix", nargs="?", default="", metavar="PREFIX", help="metrics whose names have this prefix")


@verb(
    "metrics",
    "Print the scheduler's metrics in Prometheus' text format.",
    _words,
    examples=("metrics scheduler_pending_pods",),
)
def metrics(session: VerbSession, options: argparse.Namespace) -> int:
    text = session.daemon.call("metrics.get", prefix=options.prefix)["text"]
    if not text:
        raise UsageError(f'no metric name starts with "{options.prefix}": `metrics` shows all')
    session.write(text)
    return 0
