"""A cluster in virtual time built from a dump, for commands that work without a daemon."""

import argparse
import sys
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

import attrs

from kschedd.commands.flags.dump import config_of_dump, load_options
from kschedd.commands.notices import note, report_error

if TYPE_CHECKING:
    from kschedd.clusters.virtual import VirtualCluster


@attrs.frozen(eq=False)
class DumpedCluster:
    """`errors` lists the unreadable or rejected parts of the dump; `count` is the number of its objects."""

    cluster: "VirtualCluster"
    errors: list[str]
    count: int


def report_empty(origin: Collection[str], errors: Sequence[str]) -> None:
    """Print why a dump contains no objects: the reasons why its files cannot be read, if there are any."""
    for text in errors or [f"{', '.join(origin)}: no Kubernetes objects found"]:
        report_error(text)


def dumped_cluster(options: argparse.Namespace) -> DumpedCluster:
    """Build the cluster of `--from`, with the configuration that the flags select.

    Assumptions about the dump are printed on standard error. Raises KscheddError.
    """
    from kschedd.clusters.virtual import VirtualCluster
    from kschedd.commands.studies.simulate import read_config
    from kschedd.config.changing.changes import with_schedulers
    from kschedd.config.in_tree import IN_TREE
    from kschedd.dumps.loading import read_dump, take_dump
    from kschedd.garbage_collection import collection_paused
    from kschedd.values import run_steps

    registry, config = read_config(options)
    config = with_schedulers(config, dict(options.scheduler))
    with collection_paused():
        dump = read_dump(options.origin, load_options(options, config), stdin=sys.stdin.buffer)
    config = config_of_dump(options, config, IN_TREE | registry.catalogue(), dump)
    cluster = VirtualCluster(
        config,
        seed=options.seed,
        registry=registry,
        start_s=dump.taken_at,
        controlled=not options.frozen,
    )
    taken = run_steps(take_dump(cluster.engine.store, dump))
    for text in dump.assumptions.texts():
        note(text)
    return DumpedCluster(cluster, taken.errors, dump.count)
