"""`kschedd repl`: opens the prompt, which the package `kschedd_repl` implements."""

import argparse
from typing import Any

from kschedd.verbs.command_line.parsing import path_text


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "repl",
        help="open a prompt",
        description="Open a prompt for a running daemon. Without a terminal, or with --script or -c, run "
        "commands from a script; the first failure ends it. A difference found by diff sets the exit status but "
        "is not a failure.",
    )
    parser.add_argument(
        "--socket", metavar="PATH", help="the daemon's socket; default: $KSCHEDD_SOCKET or the runtime directory"
    )
    parser.add_argument(
        "--script", type=path_text, action="append", default=[], metavar="FILE", help="run the commands in FILE"
    )
    parser.add_argument(
        "-c",
        "--command",
        action="append",
        default=[],
        metavar="TEXT",
        help="run this command and exit; may be repeated",
    )
    parser.add_argument("-k", "--keep-going", action="store_true", help="continue a script after a failed command")
    parser.add_argument("-n", "--namespace", default="default", metavar="NS", help="the default namespace")
    parser.add_argument("--no-rc", action="store_true", help="do not read $XDG_CONFIG_HOME/kschedd/replrc (~/.config)")
    parser.renamed |= {"-f": "--script", "--file": "--script"}
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    from kschedd_repl.app import run_repl

    return run_repl(
        options.socket,
        files=options.script,
        commands=options.command,
        keep_going=options.keep_going,
        namespace=options.namespace,
        rc=not options.no_rc,
    )
