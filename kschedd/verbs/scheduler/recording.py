"""record: record the run of the daemon to a file."""

import argparse

from kschedd.verbs.command_line.grammar import VerbParser, verb
from kschedd.verbs.command_line.parsing import duration, path_text
from kschedd.verbs.command_line.session import VerbSession


def _words(words: VerbParser) -> None:
    words.add_argument("what", choices=("start", "stop"), metavar="start|stop", help="start or stop recording")
    words.add_argument("path", metavar="FILE", nargs="?", type=path_text, help="a new file (only with start)")
    words.add_argument(
        "--timeout", type=duration, default=10.0, metavar="DURATION", help="limit of the wait for bindings (10s)"
    )
    words.renamed["--wait"] = "--timeout"


@verb(
    "record",
    "Record the run into a file; `kschedd replay FILE` makes the same decisions again.",
    _words,
    examples=("record start incident.rec", "record stop"),
)
def record(session: VerbSession, options: argparse.Namespace) -> int:
    if (options.what == "start") is (options.path is None):
        session.error("either `record start FILE` or `record stop` is expected")
        return 1
    if options.what == "stop":
        state = session.daemon.call("recording.stop")
        if state["failure"]:
            session.error(f"{state['file']}: the recording ended early: {state['failure']}")
            return 1
        session.write(f"recorded {state['notes']:,} notes into {state['file']}\n")
        return 0
    file = str((session.folder / options.path).absolute())
    state = session.daemon.call("recording.start", file=file, wait_s=options.timeout)
    session.write(f"recording into {state['file']}, until `record stop`\n")
    return 0
