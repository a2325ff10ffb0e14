"""The release of the cluster that a daemon loads or mirrors; it determines the version if the options do not."""

import sys
from pathlib import Path

import attrs
import structlog

from kschedd.config.in_tree import IN_TREE
from kschedd.config.model import Config
from kschedd.config.versions.kube_versions import RANDOM_TIES
from kschedd.dumps.dumped_release import DumpedRelease
from kschedd.dumps.loading import LoadOptions, Prepared, read_dump
from kschedd.framework.registry import Registry
from kschedd.garbage_collection import collection_paused
from kschedd.live.api_server import ApiServer
from kschedd.live.errors import LiveError
from kschedd.startup.options import DaemonOptions, read_config

log = structlog.get_logger("kschedd")


def read_origin(options: DaemonOptions, config: Config, now_s: float) -> Prepared:
    """Read the dump with which a new cluster starts."""
    log.info("dump", reading=", ".join(options.origin))
    taking = LoadOptions(options.keep_secrets, profiles=config.scheduler_names)
    with collection_paused():
        return read_dump(options.origin, taking, stdin=sys.stdin.buffer, now=now_s)


def dumped(options: DaemonOptions, config: Config, journal: Path | None, now_s: float) -> Prepared | None:
    """Return the dump that determines the release.

    Returns None if the options name a version, or if a journal may contain a cluster.
    """
    if not options.origin or not options.version_by_cluster or (journal is not None and journal.exists()):
        return None
    return read_origin(options, config, now_s)


async def served_release(server: ApiServer) -> DumpedRelease:
    """Return the release that an API server reports, or an unknown release if the server does not respond."""
    try:
        release = await server.read_release()
    except LiveError as fault:
        log.warning("version", why=f"the release of {server.url} is unknown, so the default version is used: {fault}")
        return DumpedRelease(None)
    return DumpedRelease.of([release])


def by_release(
    options: DaemonOptions, config: Config, registry: Registry, release: DumpedRelease
) -> tuple[DaemonOptions, Config]:
    """Return the options and the configuration with the version that matches this release. Raises ConfigErrors."""
    if not options.version_by_cluster or not release.reason:
        return options, config
    log.warning("version", why=release.reason)
    drawn = options.version.name.endswith(RANDOM_TIES)
    version = release.version.with_random_ties() if drawn else release.version
    options = attrs.evolve(options, version=version)
    return options, read_config(options, IN_TREE | registry.catalogue())
