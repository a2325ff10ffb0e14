"""`kschedd run`: the daemon in the foreground, until Ctrl-C, SIGTERM or `kschedd stop`."""

import argparse
import sys
from pathlib import Path
from typing import Any

from kschedd.errors import KscheddError

_LEVELS = ("debug", "info", "warning", "error")


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "run",
        help="run the daemon",
        description="Run the daemon: a cluster's store, controllers and scheduler, with a socket for everybody else. "
        "It ends with Ctrl-C, SIGTERM or `kschedd stop`.",
    )
    parser.add_argument(
        "--socket", metavar="PATH", help="where to listen; default: $KSCHEDD_SOCKET or the runtime directory"
    )
    parser.add_argument("--config", type=Path, metavar="FILE", help="a KubeSchedulerConfiguration (or Policy)")
    parser.add_argument(
        "--plugin", type=Path, action="append", default=[], metavar="FILE", help="a Python file with plugins"
    )
    parser.add_argument("--state", type=Path, metavar="DIR", help="keep a journal here; default: in memory only")
    parser.add_argument("--seed", type=int, metavar="N", help="decides ties; the same seed gives the same choices")
    parser.add_argument("--log-level", choices=_LEVELS, default="info", metavar="LEVEL", help=", ".join(_LEVELS))
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    import trio

    from kschedd import daemon

    given = {
        "socket": None if options.socket is None else Path(options.socket),
        "config": options.config,
        "plugins": tuple(options.plugin),
        "state": options.state,
        "log_level": options.log_level,
    }
    if options.seed is not None:
        given["seed"] = options.seed
    try:
        trio.run(daemon.run_daemon, daemon.Options(**given))
    except BaseExceptionGroup as group:
        ours, bugs = group.split(KscheddError)
        if ours is None or bugs is not None:
            raise
        for fault in _leaves(ours):
            print(f"error: {fault}", file=sys.stderr)
        return 1
    return 0


def _leaves(group: BaseExceptionGroup[Any]) -> list[BaseException]:
    """The exceptions that groups hold."""
    found: list[BaseException] = []
    for inner in group.exceptions:
        found += _leaves(inner) if isinstance(inner, BaseExceptionGroup) else [inner]
    return found
