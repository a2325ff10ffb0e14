"""Methods for out-of-tree plugins: list the plugins and their sources, and reload a changed file."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import attrs

from kschedd.framework.interface import extension_points
from kschedd.scheduling.driver import SchedulingDriver
from kschedd.service.cluster import ClusterBackend
from kschedd.service.daemon.answers import PluginAnswer
from kschedd.service.daemon.reloading import reload_file
from kschedd.service.errors import RpcError
from kschedd.service.params import Param
from kschedd.service.table import Call, Methods, method


@attrs.frozen(eq=False)
class PluginMethods(Methods):
    _cluster: ClusterBackend

    @method(
        "plugins.list",
        reads=True,
        doc="Lists the out-of-tree plugins of `--plugin` files and of installed packages.",
        answer=Sequence[PluginAnswer],
    )
    async def list(self, call: Call) -> Any:
        return await self._cluster.scheduler.query(_listed)

    @method(
        "plugins.reload",
        (Param("file", "string", doc="a plugin file that was given when the daemon was started"),),
        outside=True,
        doc="Reloads a plugin file. From the next attempt on, profiles use new instances; pods that wait at Permit or "
        "are being bound keep the old instances. If the file is invalid, no plugin is replaced. Earlier changes of "
        "the configuration can no longer be undone.",
        returns="the plugins that the file now defines",
        answer=Sequence[PluginAnswer],
    )
    async def reload(self, call: Call) -> Any:
        sources = await self._cluster.scheduler.query(_sources)
        source, workers = _one_of(sources, call["file"]), call.services.workers
        await reload_file(self._cluster, source, lambda work: workers.run(call.client, lambda given_up: work()))
        listed = await self._cluster.scheduler.query(_listed)
        return [one for one in listed if one.source == source]


def _sources(owner: SchedulingDriver) -> frozenset[str]:
    registry = owner.machine.registry
    return frozenset((*registry.sources.values(), *registry.validating_sources.values()))


def _one_of(sources: frozenset[str], file: str) -> str:
    """Return the plugin source with this file.

    Only files that were given at the start of the daemon are ever imported.
    """
    files = sorted(source for source in sources if not source.startswith("entry point "))
    for source in files:
        if Path(source).resolve() == Path(file).resolve():
            return source
    there = f"those are {', '.join(files)}" if files else "it was started without --plugin"
    raise RpcError("not_found", f"{file}: is no plugin file of this daemon; {there}")


def _listed(owner: SchedulingDriver) -> list[PluginAnswer]:
    machine = owner.machine
    return [
        PluginAnswer(
            name,
            machine.registry.sources.get(name, ""),
            sorted(extension_points(cls)),
            [one.scheduler_name for one in machine.config.profiles if name in one.names()],
        )
        for name, cls in sorted(machine.registry.added.items())
    ]
