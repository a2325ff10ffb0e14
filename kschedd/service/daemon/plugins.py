"""Methods over out-of-tree plugins: which there are and where they come from, and reading a changed file again."""

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
        doc="Plugins that are not built in: those of `--plugin` files and of installed packages.",
        answer=Sequence[PluginAnswer],
    )
    async def list(self, call: Call) -> Any:
        return await self._cluster.scheduler.query(_listed)

    @method(
        "plugins.reload",
        (Param("file", "string", doc="a file that the daemon was started with"),),
        outside=True,
        doc="Reads a plugin file again. From the next attempt on profiles have new instances; pods that wait at "
        "Permit or are being bound end with the old ones. If it cannot be used nothing changes. Earlier "
        "changes of the configuration can no longer be undone.",
        returns="the plugins that it defines now",
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
    """The source that is this file. Only what the user who started the daemon named is ever imported."""
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
