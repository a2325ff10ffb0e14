"""Reload of the daemon's inputs: plugin files, configuration, tokens and certificates.

Each input is replaced as a whole or not at all, and an invalid input does not prevent the reload of the others. Plugins
are reloaded first, because the configuration may contain arguments for them. The new configuration is a change that can
be undone; it replaces the changes made at run time.
"""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import attrs
import trio

from kschedd.access.credentials import Credentials
from kschedd.config.in_tree import IN_TREE, Catalogue
from kschedd.config.model import Config
from kschedd.errors import KscheddError
from kschedd.framework.registry import PluginLoadError, Registry
from kschedd.scheduling.driver import SchedulingDriver
from kschedd.scheduling.inputs import ChangeConfig
from kschedd.scheduling.plugin_reload import reload_plugins
from kschedd.service.cluster import ClusterBackend


@attrs.frozen(eq=False)
class Reloading:
    """A reload of all inputs.

    `read_config` reads the configuration file and applies the flags; None if there is no file.
    """

    cluster: ClusterBackend
    plugin_files: Sequence[Path]
    read_config: Callable[[Catalogue], Config] | None
    doors: Sequence[Credentials]
    log: Any

    async def run(self) -> bool:
        """Reload all inputs; return whether all were valid."""
        whole = True
        for file in self.plugin_files:
            whole &= await self._tried(f"plugins {file}", partial(self._plugins, file))
        if self.read_config is not None:
            whole &= await self._tried("configuration", partial(self._config, self.read_config))
        for door in self.doors:
            what = f"credentials of {door.settings.flags.listen}"
            whole &= await self._tried(what, partial(trio.to_thread.run_sync, door.reload, abandon_on_cancel=True))
        self.log.info("reloaded" if whole else "reloaded_in_part")
        return whole

    async def _tried(self, what: str, work: Callable[[], Awaitable[None]]) -> bool:
        try:
            await work()
        except KscheddError as error:
            self.log.error("not_reloaded", what=what, why=str(error), now="it stays as it was")
            return False
        return True

    async def _plugins(self, file: Path) -> None:
        await reload_file(self.cluster, str(file), trio.to_thread.run_sync)

    async def _config(self, read: Callable[[Catalogue], Config]) -> None:
        cluster = self.cluster
        catalogue = await cluster.scheduler.query(lambda owner: IN_TREE | owner.machine.registry.catalogue())
        config = await trio.to_thread.run_sync(read, catalogue, abandon_on_cancel=True)
        now = cluster.clock.now()

        def change(owner: SchedulingDriver) -> None:
            if config != owner.machine.config:
                owner.step(ChangeConfig(config, "read again"), now)

        await cluster.scheduler.query(change, long=True)


async def reload_file(
    cluster: ClusterBackend, source: str, run: Callable[[Callable[[], object]], Awaitable[object]]
) -> None:
    """Reload a plugin file: `run` executes the reload in a thread.

    If PluginLoadError is raised, nothing was changed.
    """
    limit_s = await cluster.scheduler.query(lambda owner: owner.machine.registry.start_limit_s)
    fresh = Registry(start_limit_s=limit_s)
    await run(partial(fresh.add_file, Path(source)))
    if not fresh.added:
        names = ", ".join(fresh.validating)
        raise PluginLoadError(source, f"defines admission plugins alone ({names}), which are read at the start only")
    await cluster.scheduler.query(lambda owner: reload_plugins(owner, fresh.added, source))
