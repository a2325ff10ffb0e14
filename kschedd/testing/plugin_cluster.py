"""PluginCluster: a whole cluster in virtual time that schedules with the plugins under test.

    cluster = PluginCluster(OnePerTeam, args={"podsOfATeam": 1})
    cluster.apply(node("n1"), node("n2"), pod("a", labels={"team": "x"}), pod("b", labels={"team": "x"}))
    assert cluster.placements == {"a": "n1", "b": "n2"}

Controllers and kubelets run as in the daemon, and all verbs of the command line work (`run`). Nothing waits: time
passes by `advance` alone.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import attrs

from kschedd.actors.scheduler.plugin_calls import run_async
from kschedd.api.pods import Pod
from kschedd.clusters.virtual import VirtualCluster
from kschedd.config.in_tree import IN_TREE
from kschedd.config.loading.load import config_from_raw
from kschedd.framework.interface import QUEUE_SORT
from kschedd.framework.registry import Registry
from kschedd.scenarios.commands import ScenarioCluster
from kschedd.scenarios.file import differences, read
from kschedd.service.objects.applying import FROM_FILES
from kschedd.service.operations.serving import serve
from kschedd.service.request import DeleteOptions, Request

API: Final = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}


@attrs.define(eq=False)
class UnexpectedOutput(AssertionError):
    """A scenario's commands printed something else."""

    text: str

    def __str__(self) -> str:
        return self.text


class PluginCluster:
    """See the module. The default profile, with the plugin at every point that it has.

    `args`: its arguments, as a profile has them. `weight`: of its score. `profile`: a profile of your own instead, as
    in a configuration file; `more`: further plugin classes that it names.
    """

    def __init__(
        self,
        plugin: type[Any],
        *more: type[Any],
        args: Mapping[str, Any] | None = None,
        weight: int = 0,
        profile: Mapping[str, Any] | None = None,
        seed: int = 0,
    ) -> None:
        registry = Registry(run_async=run_async)
        for cls in (plugin, *more):
            registry.add(cls, "the test")
        ours = {"name": plugin.name, **({"weight": weight} if weight else {})}
        sorts = {"queueSort": {"disabled": [{"name": "*"}], "enabled": [ours]}} if QUEUE_SORT.has(plugin) else {}
        whole: Mapping[str, Any] = profile or {
            "plugins": {"multiPoint": {"enabled": [ours]}, **sorts},
            "pluginConfig": [{"name": plugin.name, "args": dict(args)}] if args else [],
        }
        config = config_from_raw({**API, "profiles": [whole]}, catalogue=IN_TREE | registry.catalogue())
        self._cluster = VirtualCluster(config, seed=seed, registry=registry)
        self._commands = ScenarioCluster(Path(), cluster=self._cluster)

    def apply(self, *manifests: Mapping[str, Any]) -> None:
        """Apply objects as from files, and do all that follows at this time. Raises ApiError where one is refused."""
        for raw in manifests:
            self._serve(Request("apply", body=dict(raw), options=FROM_FILES))

    def delete(self, kind: str, name: str, namespace: str = "default") -> None:
        """At once, without a grace period."""
        self._serve(Request("delete", kind, namespace, name, deletion=DeleteOptions(grace_period_s=0)))

    def _serve(self, request: Request) -> None:
        serve(self._cluster.engine.store, request)
        self._cluster.engine.run_until_idle()

    def advance(self, seconds: float) -> None:
        self._cluster.engine.advance(self._cluster.engine.now + seconds)

    def run(self, command: str) -> str:
        """A verb as on the command line, such as `explain a`; what it printed."""
        return self._commands.do(command, "")

    @property
    def placements(self) -> dict[str, str]:
        """By the pod's name: its node, "" where it has none."""
        return {pod.name: pod.node_name for pod in self._pods()}

    def message(self, name: str) -> str:
        """Why the pod has no node, as its condition PodScheduled says; "" where it says nothing."""
        for pod in self._pods():
            for condition in pod.status.get("conditions") or () if pod.name == name else ():
                if condition.get("type") == "PodScheduled":
                    return str(condition.get("message") or "")
        return ""

    def _pods(self) -> list[Pod]:
        return [found for found in self._cluster.engine.store.list("Pod") if isinstance(found, Pod)]


def check_scenario(path: Path | str) -> None:
    """Run a scenario file, which may name plugin files; raises UnexpectedOutput with what differs."""
    found = "\n".join(map(str, differences(read(Path(path)))))
    if found:
        raise UnexpectedOutput(found)
