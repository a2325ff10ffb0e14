"""`kschedd explain --from DUMP ...` and `kschedd plan --from DUMP ...`: run on a dumped cluster, without a daemon."""

import argparse
from collections.abc import Callable, Sequence
from typing import Any, Never

from kschedd.commands.flags.dump import add_dump_flags
from kschedd.commands.flags.scheduler import add_scheduler_flags, wants_gates
from kschedd.commands.notices import note, report_error, warn
from kschedd.commands.offline.dumped_cluster import dumped_cluster, report_empty
from kschedd.verbs.command_line.parsing import NotingParser, path_value

FAILED = 2


def run_on_dump(words: Sequence[str], session_of: Callable[[Any, float], Any]) -> int:
    """Run the verb `words[0]`; `session_of` creates the verb's session from a client and the cluster's time.

    Raises KscheddError.
    """
    from kschedd.verbs.command_line.grammar import UsageError
    from kschedd.verbs.table import find_verb, run_words, wants_help

    name = words[0]
    try:
        options, rest = _options(name, words[1:])
        if name == "explain":
            verb = find_verb(name).parser("kschedd ")
            if wants_help(rest):
                print(verb.format_help(), end="")
                return 0
            verb.read(rest)  # wrong flags are reported before the dump is loaded
    except UsageError as wrong:
        report_error(f"{wrong}\nSee kschedd {name} --help")
        return FAILED
    from kschedd.causes.sampling import sample
    from kschedd.clusters.virtual import VirtualDaemon
    from kschedd.methods import daemon_methods

    if wants_gates(options):
        return 0
    dumped = dumped_cluster(options)
    if not dumped.count:
        report_empty(options.origin, dumped.errors)
        return FAILED
    for text in dumped.errors:
        warn(text)
    cluster = dumped.cluster
    for text in sample(cluster.engine.store) if name == "explain" else ():
        note(text)
    cluster.engine.run_until_idle()
    client = VirtualDaemon(cluster, daemon_methods)
    return run_words(session_of(client, cluster.engine.now), [name, *rest])


class _DumpFlags(NotingParser):
    verb = ""

    def error(self, message: str) -> Never:
        from kschedd.verbs.command_line.grammar import UsageError
        from kschedd.verbs.command_line.usage_messages import clearer

        known = [name for flag in self.noted for name in flag.names]
        raise UsageError(clearer(message, known), self.verb)


def _options(verb: str, words: Sequence[str]) -> tuple[argparse.Namespace, list[str]]:
    """Parse the flags of the dump and of the scheduler. Return the flags and the remaining words. Raises UsageError."""
    parser = _DumpFlags(prog=f"kschedd {verb}", add_help=False, allow_abbrev=False)
    parser.verb = verb
    add_dump_flags(parser)
    add_scheduler_flags(parser)
    parser.add_argument("--plugin", action="append", type=path_value, default=[], metavar="FILE.py")
    parser.add_argument("--seed", type=int, default=0, metavar="N")
    return parser.parse_known_args(list(words))
