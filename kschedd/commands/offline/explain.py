"""`kschedd explain --from DUMP ...`: runs the verb on a cluster loaded from a dump, without a daemon."""

import argparse
from collections.abc import Callable, Sequence
from typing import Any

from kschedd.commands.flags.dump import add_dump_flags
from kschedd.commands.flags.scheduler import add_scheduler_flags, wants_gates
from kschedd.commands.notices import note, report_error, warn
from kschedd.commands.offline.dumped_cluster import dumped_cluster
from kschedd.verbs.command_line.parsing import NotingParser, path_value

FAILED = 2


def explain_dump(words: Sequence[str], session_of: Callable[[Any, float], Any]) -> int:
    """Run the verb; `session_of` creates the verb's session from a client and the cluster's time.

    Raises KscheddError.
    """
    from kschedd.causes.sampling import sample
    from kschedd.clusters.virtual import VirtualDaemon
    from kschedd.methods import daemon_methods
    from kschedd.verbs.table import run_words

    options, rest = _options(words[1:])
    if wants_gates(options):
        return 0
    dumped = dumped_cluster(options)
    for text in dumped.errors:
        warn(text)
    if not dumped.count:
        report_error(f"{', '.join(options.origin)}: no Kubernetes objects found")
        return FAILED
    cluster = dumped.cluster
    for text in sample(cluster.engine.store):
        note(text)
    cluster.engine.run_until_idle()
    client = VirtualDaemon(cluster, daemon_methods)
    return run_words(session_of(client, cluster.engine.now), ["explain", *rest])


def _options(words: Sequence[str]) -> tuple[argparse.Namespace, list[str]]:
    """Parse the flags of the dump and of the scheduler. Return the flags and the remaining words."""
    parser = NotingParser(prog="kschedd explain", add_help=False, allow_abbrev=False)
    add_dump_flags(parser)
    add_scheduler_flags(parser)
    parser.add_argument("--plugin", action="append", type=path_value, default=[], metavar="FILE.py")
    parser.add_argument("--seed", type=int, default=0, metavar="N")
    return parser.parse_known_args(list(words))
