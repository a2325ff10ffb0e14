"""`kschedd repl`: starts the REPL, which is the package `kschedd_repl`."""

import argparse
from typing import Any

from kschedd.verbs.command_line.parsing import path_text


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "repl",
        help="talk to the daemon with completion, history and a status bar",
        description="Talk to a running daemon. Without a terminal, or with -f or -c, commands are read from a script; "
        "the first one that fails ends it. What diff finds is no failure, though the exit status tells it.",
    )
    parser.add_argument(
        "--socket", metavar="PATH", help="the daemon's; default: $KSCHEDD_SOCKET or the runtime directory"
    )
    parser.add_argument(
        "-f", "--file", type=path_text, action="append", default=[], metavar="FILE", help="run the commands in FILE"
    )
    parser.add_argument("-c", "--command", action="append", default=[], metavar="TEXT", help="run this command")
    parser.add_argument("-k", "--keep-going", action="store_true", help="go on with a script after a failed command")
    parser.add_argument("-n", "--namespace", default="default", metavar="NS", help="the namespace to begin in")
    parser.add_argument(
        "--no-rc", action="store_true", help="without the commands of $XDG_CONFIG_HOME/kschedd/replrc (~/.config)"
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    from kschedd_repl.app import run_repl

    return run_repl(
        options.socket,
        files=options.file,
        commands=options.command,
        keep_going=options.keep_going,
        namespace=options.namespace,
        rc=not options.no_rc,
    )
