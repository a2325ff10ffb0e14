"""profile: a sampling profile of the daemon."""

import argparse

from kschedd.printing.reports.profiles import collapsed, profile_tables, speedscope
from kschedd.printing.terminal.tables import render
from kschedd.verbs.command_line.grammar import VerbParser, verb
from kschedd.verbs.command_line.parsing import duration, path_text
from kschedd.verbs.command_line.session import VerbSession

_LONGEST_S = 600.0


def _words(words: VerbParser) -> None:
    words.add_argument("--for", dest="seconds", type=_span, default=5.0, metavar="DURATION", help="how long (5s)")
    words.renamed["--seconds"] = "--for"
    words.add_argument(
        "-o",
        dest="path",
        metavar="FILE",
        type=path_text,
        help="write the profile to a file, for speedscope if the name ends in .json, otherwise as collapsed stacks (- "
        "is stdout)",
    )


def _span(text: str) -> float:
    """Return the seconds of a duration. For argparse: raises ArgumentTypeError if the duration is invalid."""
    seconds = duration(text)
    if not 0.01 <= seconds <= _LONGEST_S:
        raise argparse.ArgumentTypeError(f'"{text[:40]}": from 10ms to {_LONGEST_S / 60:g}m is allowed')
    return seconds


@verb(
    "profile",
    "Profile the daemon: CPU time by task and by function.",
    _words,
    examples=("profile", "profile --for 30s -o daemon.speedscope.json"),
)
def profile(session: VerbSession, options: argparse.Namespace) -> int:
    found = session.daemon.call("daemon.profile", seconds=options.seconds)
    if options.path is None:
        session.write("\n".join(render(table, session.style) for table in profile_tables(found)))
        session.write(f"\n{found['looks']:,} samples in {found['seconds']:g} s\n")
        return 0
    text = speedscope(found) if options.path.endswith(".json") else collapsed(found)
    if options.path == "-":
        session.write(text)
        return 0
    try:
        (session.folder / options.path).absolute().write_text(text, encoding="utf-8", newline="\n")
    except OSError as fault:
        session.error(f"{options.path}: cannot be written: {fault.strerror}")
        return 1
    session.write(f"{options.path}: {found['looks']:,} samples in {found['seconds']:g} s\n")
    return 0
