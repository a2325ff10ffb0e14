"""record: the run of the daemon into a file, from now on."""

import argparse

from kschedd.verbs.command_line.grammar import VerbParser, verb
from kschedd.verbs.command_line.parsing import path_text
from kschedd.verbs.command_line.session import VerbSession


def _words(words: VerbParser) -> None:
    words.add_argument("what", choices=("start", "stop"), help="begin, or end it")
    words.add_argument("path", metavar="FILE", nargs="?", type=path_text, help="with start: a new file")
    words.add_argument(
        "--wait", type=float, default=10.0, metavar="SECONDS", help="for pods that are being bound, at most (10)"
    )


@verb(
    "record",
    "Record the run into a file; `kschedd replay FILE` makes the same decisions again.",
    _words,
    examples=("record start incident.rec", "record stop"),
)
def record(session: VerbSession, options: argparse.Namespace) -> int:
    if (options.what == "start") is (options.path is None):
        session.error("record start FILE | record stop")
        return 1
    if options.what == "stop":
        state = session.daemon.call("recording.stop")
        if state["failure"]:
            session.error(f"{state['file']}: the recording had ended: {state['failure']}")
            return 1
        session.write(f"recorded {state['notes']:,} notes into {state['file']}\n")
        return 0
    file = str((session.folder / options.path).absolute())
    state = session.daemon.call("recording.start", file=file, wait_s=options.wait)
    session.write(f"recording into {state['file']}, until `record stop`\n")
    return 0
