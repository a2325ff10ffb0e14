"""`kschedd mcp`: serves tools for language models with the Model Context Protocol on standard input and output.

The tools use a running daemon over its socket, or a separate cluster in virtual time that is loaded from a dump.
"""

import argparse
import signal
import sys
import time
from importlib.resources import files
from typing import Any, Final

from kschedd.commands.flags.dump import add_dump_flags, config_of_dump, load_options
from kschedd.commands.flags.scheduler import add_scheduler_flags, wants_gates
from kschedd.commands.notices import note, report_error, warn
from kschedd.verbs.command_line.parsing import path_value

BAD_INPUT: Final = 2
_CALL_S: Final = 300.0
_REST_S: Final = 600.0
_VIRTUAL_PATIENCE_S: Final = 86_400.0
NOT_INSTALLED: Final = "error: the Model Context Protocol needs the package mcp: pip install 'kschedd[mcp]'"


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "mcp",
        help="serve tools for language models: MCP on standard input and output",
        description="Serve the Model Context Protocol on standard input and output: tools that read the cluster of a"
        " running daemon, explain placements, and try changes on a copy. With --from the cluster is a "
        "dump in virtual time, and no daemon is required. An MCP client, such as an assistant, starts `kschedd mcp`.",
    )
    parser.add_argument(
        "--socket", metavar="PATH", help="the daemon's socket; default: $KSCHEDD_SOCKET or the runtime directory"
    )
    parser.add_argument(
        "--allow-writes",
        action="store_true",
        help="also serve tools that change the cluster: apply, delete, scale, ...",
    )
    parser.add_argument(
        "--skill",
        action="store_true",
        help="print SKILL.md, instructions for assistants that run commands instead of tools, and exit",
    )
    add_dump_flags(parser)
    add_scheduler_flags(parser)
    parser.add_argument(
        "--plugin", action="append", type=path_value, default=[], metavar="FILE.py", help="a Python file with plugins"
    )
    parser.add_argument(
        "--seed", type=int, default=0, metavar="N", help="seed for breaking ties, with --from (default 0)"
    )
    parser.set_defaults(run=main)


def main(options: argparse.Namespace) -> int:
    if wants_gates(options):
        return 0
    if options.skill:
        print(files("kschedd.assistants").joinpath("SKILL.md").read_text(encoding="utf-8"), end="")
        return 0
    try:
        import mcp  # noqa: F401 - whether it is there
    except ImportError:
        print(NOT_INSTALLED, file=sys.stderr)
        return BAD_INPUT
    import trio

    from kschedd.assistants.server import mcp_server, serve_stdio
    from kschedd.assistants.toolbox import Toolbox
    from kschedd.errors import KscheddError

    try:
        target = target_of_dump(options) if options.origin else target_of_daemon(options.socket)
    except KscheddError as fault:
        report_error(str(fault))
        return BAD_INPUT
    # A thread reads standard input, so an exception in the main thread would not end it.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    trio.run(serve_stdio, mcp_server(Toolbox(target, writes=options.allow_writes)))
    return 0


def target_of_daemon(socket: str | None) -> Any:
    from kschedd.assistants.command import Reconnecting, ServedCluster
    from kschedd.rpc.blocking import BlockingClient

    daemon = Reconnecting(lambda: BlockingClient(socket, timeout=_CALL_S))
    return ServedCluster(daemon, lambda: float(daemon.call("time.get")["now_s"]), time.sleep)


def target_of_dump(options: argparse.Namespace) -> Any:
    """Create a cluster from the dump. Raises KscheddError."""
    from kschedd.assistants.command import ServedCluster
    from kschedd.clusters.virtual import VirtualCluster, VirtualDaemon
    from kschedd.commands.studies.simulate import read_config
    from kschedd.config.changing.changes import with_schedulers
    from kschedd.config.in_tree import IN_TREE
    from kschedd.dumps.loading import read_dump, take_dump
    from kschedd.garbage_collection import collection_paused
    from kschedd.methods import daemon_methods
    from kschedd.values import run_steps

    registry, config = read_config(options)
    config = with_schedulers(config, dict(options.scheduler))
    with collection_paused():
        dump = read_dump(options.origin, load_options(options, config))
        config = config_of_dump(options, config, IN_TREE | registry.catalogue(), dump)
        cluster = VirtualCluster(
            config, seed=options.seed, registry=registry, start_s=dump.taken_at, controlled=not options.frozen
        )
        taken = run_steps(take_dump(cluster.engine.store, dump))
    for text in dump.assumptions.texts():
        note(text)
    for text in taken.errors:
        warn(text)
    engine = cluster.engine
    engine.run_until_idle()

    def run_to_rest() -> None:
        engine.run_to_rest(_REST_S)

    def sleep(seconds: float) -> None:
        engine.advance(engine.now + seconds)

    return ServedCluster(
        VirtualDaemon(cluster, daemon_methods), lambda: engine.now, sleep, _VIRTUAL_PATIENCE_S, run_to_rest
    )
