"""A cluster in this process, in virtual time: API server, controllers, kubelets and kube-scheduler without a daemon.

    cluster = Cluster(nodes=3)
    cluster.apply(pod("a", cpu="500m"))
    cluster.placements()                       # {"a": "node-1"}

No event loop is started, so the cluster works in notebooks, under asyncio and in Trio tests. When a call returns, all
its effects at the present virtual time have happened. Time passes only by `advance` and `run_until`.
"""

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal, get_args

import attrs

from kschedd.answers import read
from kschedd.api.text.similar import did_you_mean
from kschedd.api.text.times import LAST_S
from kschedd.clusters.virtual import VirtualCluster, VirtualDaemon
from kschedd.config.in_tree import IN_TREE
from kschedd.config.loading.load import config_from_raw, load_config
from kschedd.config.model import Config
from kschedd.config.versions.kube_versions import DEFAULT, kube_version
from kschedd.errors import KscheddError
from kschedd.framework.guard import PluginTraceback
from kschedd.framework.guarding.guarded import GuardedRegistry
from kschedd.framework.interface import QUEUE_SORT
from kschedd.framework.registry import Registry
from kschedd.garbage_collection import collection_paused
from kschedd.sdk.handle import ClusterHandle, Commands, Configuration, Raw, checked, seconds
from kschedd.sdk.methods_on_demand import MethodsOnDemand
from kschedd.sdk.objects import node
from kschedd.sdk.records import Records
from kschedd.sdk.shown_answers import PlannedChanges, planned
from kschedd.service.table import Large
from kschedd.simulation.comparing.changes import ForkStart, changes
from kschedd.simulation.engine import EPOCH
from kschedd.values import run_steps

PluginClass = type[Any]
Ties = Literal["release", "random"]

_HEAD: Final = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
_NOTEBOOK: Final = "plugins"  # the source of the plugins that error messages contain


class DumpLoadError(KscheddError):
    """The dump contains no readable object."""


class ClosedClusterError(KscheddError):
    """A method of a cluster was called after `close`."""

    def __str__(self) -> str:
        return "the cluster is closed"


@attrs.frozen(eq=False)
class ClusterState:
    """The state that `Cluster.snapshot` returns and `Cluster.restore` accepts."""

    _cluster: VirtualCluster


@attrs.frozen(eq=False)
class _OpenCluster:
    """A cluster and the client of its methods, until it is closed."""

    cluster: VirtualCluster
    client: VirtualDaemon


class Cluster(ClusterHandle):
    """A cluster in this process, in virtual time: API server, controllers, kubelets and kube-scheduler.

    When a call returns, all its effects at the present virtual time have happened. Time passes only by `advance`,
    `run_until` and `run_until_idle`. The cluster starts no event loop and no thread; only one thread at a time may use
    it.

    * `nodes`: their number, or Node manifests.
    * `version`: the Kubernetes release whose rules apply, one of `kschedd.VERSIONS`, such as "1.36"; "" is the newest.
    * `config`: a KubeSchedulerConfiguration as text, path or mapping; None uses the default configuration.
    * `seed`: determines the choice among equally good nodes (with 1.34 or with `ties`), and generated names and UIDs.
      The same seed and the same input result in the same decisions on every machine.
    * `ties`: how the scheduler chooses among equally good nodes. "release": as in the release: at random in 1.34, and
      without randomness since 1.35. "random": at random in every release, so that runs with several seeds differ.
    * `plugins`: classes of out-of-tree plugins, or Python files with such classes. Without `config` they are enabled at
      all their extension points; with `config` its profiles can enable them.
    * `plugin_args`, `plugin_weights`: arguments and score weights by the name of a plugin, which may be in-tree; not
      allowed with `config`. A weight is 1 or more; the default weight of your own plugins is 1. The scores of a plugin,
      from 0 to 100, are multiplied by its weight.
    * `feature_gates`: True or False, for each feature gate of kube-scheduler by name.
    * `plugin_limit`: the time limit for each call of a plugin; calls then run in a thread. With None, plugins are
      called in the caller's thread, so that `breakpoint()` and Ctrl-C work. After you have interrupted a call of a
      plugin, do not use the cluster any longer.
    * `controllers`: False omits controllers and kubelets.
    * `time`: the start of virtual time, in seconds since the epoch; None uses 2025-01-01.

    The attribute `warnings` is a tuple of texts: unreadable parts of the dump in `from_dump`, and assumptions about it.
    Raises ConfigErrors, PluginLoadError, UnknownVersionError, and ApplyError for rejected nodes.
    """

    warnings: tuple[str, ...]
    """What `from_dump` could not read, and what it assumed."""

    def __init__(
        self,
        nodes: int | Raw | Sequence[Raw] = (),
        *,
        version: str = "",
        config: Configuration | None = None,
        seed: int = 0,
        ties: Ties = "release",
        plugins: PluginClass | str | Path | Sequence[PluginClass | str | Path] = (),
        plugin_args: Mapping[str, Raw] | None = None,
        plugin_weights: Mapping[str, int] | None = None,
        feature_gates: Mapping[str, bool] | None = None,
        plugin_limit: str | float | None = None,
        controllers: bool = True,
        time: float | None = None,
    ) -> None:
        if isinstance(nodes, int) and nodes < 0:
            raise ValueError(f"nodes: {nodes}: 0 or more are required")
        checked("seed", seed, int)
        if time is not None and not 0 <= checked("time", time, int, float) <= LAST_S:
            raise ValueError(f"time: {time}: seconds since the epoch are required, up to the year 9999")
        registry = _registry(plugin_limit)
        classes = _added(registry, plugins)
        if config is not None and (plugin_args or plugin_weights):
            raise ValueError("plugin_args and plugin_weights: state them in `config`")
        for argument, named in (("plugin_args", plugin_args), ("plugin_weights", plugin_weights)):
            _check_names(argument, named or {}, IN_TREE | registry.catalogue())
        for name, weight in (plugin_weights or {}).items():
            if checked(f"plugin_weights[{name!r}]", weight, int) < 1:
                raise ValueError(f"plugin_weights[{name!r}]: {weight}: 1 or more is required")
        given = _enabling(classes, plugin_args or {}, plugin_weights or {}) if config is None else config
        read_config = _config(given, version, registry, feature_gates, ties)
        self._stand_on(
            VirtualCluster(
                read_config,
                seed=seed,
                registry=registry,
                start_s=EPOCH if time is None else time,
                controlled=controllers,
                served=True,
            )
        )
        if isinstance(nodes, int):
            nodes = [node(f"node-{number}") for number in range(1, nodes + 1)]
        self.apply(nodes)

    @classmethod
    def from_dump(
        cls,
        path: str | Path,
        *,
        version: str = "",
        config: Configuration | None = None,
        seed: int = 0,
        ties: Ties = "release",
        plugins: PluginClass | str | Path | Sequence[PluginClass | str | Path] = (),
        plugin_limit: str | float | None = None,
        controllers: bool = True,
    ) -> "Cluster":
        """Return a cluster with the objects of a dump; `kubectl get all,nodes -A -o yaml` or `kschedd save` writes one.

        `version`: "" uses the release of the dump's nodes if it is supported. All other options have the same meaning
        as for `Cluster`. The attribute `warnings` then contains the unreadable objects and the assumptions. Raises
        DumpLoadError if the dump has no readable object.
        """
        # imported here, because most clusters are not made from a dump
        from kschedd.dumps.loading import LoadOptions, read_dump, take_dump

        checked("seed", seed, int)
        registry = _registry(plugin_limit)
        classes = _added(registry, plugins)
        given = _enabling(classes, {}, {}) if config is None else config
        read_config = _config(given, version, registry, ties=ties)
        dump = read_dump([str(path)], LoadOptions(profiles=read_config.scheduler_names))
        if not version and dump.release.reason:
            read_config = _config(given, dump.release.version.name, registry, ties=ties)
        cluster = VirtualCluster(
            read_config, seed=seed, registry=registry, start_s=dump.taken_at, controlled=controllers
        )
        with collection_paused():
            taken = run_steps(take_dump(cluster.engine.store, dump))
        if not dump.count:
            raise DumpLoadError("\n".join(taken.errors) or f"{path}: no Kubernetes object")
        cluster.engine.run_until_idle()
        made = cls._of(cluster)
        made.warnings = (*taken.errors, *dump.assumptions.texts())
        return made

    @classmethod
    def _of(cls, cluster: VirtualCluster) -> "Cluster":
        made = cls.__new__(cls)
        made._stand_on(cluster)
        return made

    def _stand_on(self, cluster: VirtualCluster) -> None:
        self._open: _OpenCluster | None = _OpenCluster(cluster, VirtualDaemon(cluster, MethodsOnDemand))
        self.warnings = ()

    @property
    def _now(self) -> "_OpenCluster":
        if self._open is None:
            raise ClosedClusterError
        return self._open

    @property
    def _cluster(self) -> VirtualCluster:
        return self._now.cluster

    def __reduce__(self) -> Any:
        raise TypeError("a Cluster cannot be pickled; pickle a SimulationSpec instead")

    # -- methods ------------------------------------------------------------------------------------------------

    def call(self, method: str, /, **params: Any) -> Any:
        return self._now.client.call(method, **params)

    def _call(self, answer: Any, method: str, /, **params: Any) -> Any:
        found = self._now.client.perform(method, **params)
        if isinstance(found, Large):
            found = {**found.head, found.name: list(found.encoded)}
        return read(answer, found)

    def _list(self, kind: str) -> Sequence[Raw]:
        found = [obj.raw for obj in self._cluster.engine.store.list(kind)]
        return sorted(found, key=lambda raw: (raw["metadata"].get("namespace", ""), raw["metadata"]["name"]))

    def _execute(self, command: str, given: str) -> tuple[str, int]:
        from kschedd.scenarios.commands import ScenarioCluster

        found = ScenarioCluster(Path(), cluster=self._cluster).execute(command, given)
        return found.text, found.status

    @property
    def version(self) -> str:
        """The Kubernetes release whose rules apply; one of `kschedd.VERSIONS`."""
        return self._cluster.engine.machine.config.version.name

    @property
    def plugin_faults(self) -> Records[PluginTraceback]:
        """The latest exceptions of out-of-tree plugins, the newest last; tracebacks show the plugins' own lines."""
        return Records(PluginTraceback, self._cluster.engine.machine.registry.raised or ())

    # -- time ---------------------------------------------------------------------------------------------------

    @property
    def time(self) -> float:
        return self._cluster.engine.now

    @property
    def elapsed(self) -> float:
        return self._cluster.engine.elapsed

    def advance(self, duration: str | float) -> None:
        engine = self._cluster.engine
        engine.advance(engine.now + seconds(duration))

    def _advance_to(self, moment: float) -> None:
        self._cluster.engine.advance(moment)

    def _next_moment(self) -> float | None:
        return self._cluster.engine.next_moment()

    def run_until_idle(self, limit: str | float = "1h") -> bool:
        return self._cluster.engine.run_to_rest(seconds(limit))

    # -- copies -------------------------------------------------------------------------------------------------

    def fork(self) -> "Cluster":
        return Cluster._of(self._copy())

    def _copy(self) -> VirtualCluster:
        return VirtualCluster(resumed=self._cluster.engine.snapshot())

    def snapshot(self) -> ClusterState:
        """Return the present state of the cluster, which `restore` can apply any number of times."""
        return ClusterState(self._copy())

    def restore(self, state: ClusterState) -> None:
        """Restore a state that `snapshot` recorded for this cluster or for another one."""
        old, saved = self._cluster, checked("state", state, ClusterState)._cluster
        self._stand_on(VirtualCluster(resumed=saved.engine.snapshot()))
        old.engine.close()

    def plan(self, change: "Callable[[Cluster], object] | Commands", *, within: str | float = "1h") -> PlannedChanges:
        fork = self._copy()
        start = ForkStart(fork.engine)
        copy = Cluster._of(fork)
        try:
            copy._make(change)
            copy.run_until_idle(within)
            return planned(changes(fork.engine, start, fork.log.owned))
        finally:
            copy.close()

    def close(self) -> None:
        found, self._open = self._open, None
        if found is not None:
            found.cluster.engine.close()

    def __del__(self) -> None:
        # The parts of an engine refer to each other, and the garbage collector runs seldom.
        if getattr(self, "_open", None) is not None:
            self.close()

    def __repr__(self) -> str:
        if self._open is None:
            return "<Cluster: closed>"
        table = self._cluster.engine.machine.cluster
        pending = len(self._cluster.engine.driver.pending.pods)
        return f"<Cluster: {table.table.node_count} nodes, {table.pod_count} pods placed, {pending} pending>"


def scheduler_config(given: Configuration | None, version: str) -> Config:
    """Return a configuration of in-tree plugins; None returns the default configuration.

    Raises ConfigErrors and UnknownVersionError.
    """
    return _config(given, version, Registry())


def _config(
    given: Configuration | None,
    version: str,
    registry: Registry,
    feature_gates: Mapping[str, bool] | None = None,
    ties: Ties = "release",
) -> Config:
    """Return the configuration; None returns the default configuration. Raises ConfigErrors and UnknownVersionError."""
    catalogue = IN_TREE | registry.catalogue()
    if ties not in get_args(Ties):
        raise ValueError(f"ties: {ties!r}: one of {', '.join(get_args(Ties))} is required")
    release = kube_version(checked("version", version, str)) if version else DEFAULT
    release = release.with_random_ties() if ties == "random" else release
    if isinstance(given, Path):
        given = given.read_text(encoding="utf-8")
    if isinstance(given, str):
        if given.strip() and ":" not in given and "\n" not in given.strip():
            raise ValueError(f"{given[:100]!r} is not a configuration; for a file, pass Path({given[:100]!r})")
        return load_config(given, "config", catalogue=catalogue, version=release, feature_gates=feature_gates)
    return config_from_raw(given, catalogue=catalogue, version=release, feature_gates=feature_gates)


def _registry(limit: str | float | None) -> GuardedRegistry:
    """Return a registry whose plugins have this time limit for each call."""
    if limit is None:
        return GuardedRegistry(limit_s=math.inf, start_limit_s=math.inf, run_async=_run_async)
    return GuardedRegistry(limit_s=seconds(limit), run_async=_run_async)


def _run_async(method: Callable[..., Any], args: Sequence[Any], limit_s: float) -> Any:
    """Run the `async def` function of a plugin."""
    from kschedd.actors.scheduler.plugin_calls import run_async  # few plugins have one

    return run_async(method, args, limit_s)


def _added(
    registry: Registry, plugins: PluginClass | str | Path | Sequence[PluginClass | str | Path]
) -> list[PluginClass]:
    """Add plugins, or the plugins in files, to the registry and return their classes. Raises PluginLoadError."""
    found: list[PluginClass] = []
    for plugin in [plugins] if isinstance(plugins, type | str | Path) else plugins:
        if isinstance(plugin, str | Path):
            names = registry.add_file(Path(plugin))
            found += [registry.added[name] for name in names if name in registry.added]
        elif isinstance(plugin, type):
            registry.add(plugin, _NOTEBOOK)
            found.append(plugin)
        else:
            raise TypeError(f"plugins: classes or paths of Python files are required, not {plugin!r:.100}")
    return found


def _check_names(argument: str, named: Iterable[str], known: Collection[str]) -> None:
    """Raise ValueError for a name that belongs to no plugin."""
    for name in named:
        if name not in known:
            raise ValueError(f"{argument}: no plugin is named {name!r}{did_you_mean(name, known, 1)}")


def _enabling(plugins: Sequence[PluginClass], args: Mapping[str, Raw], weights: Mapping[str, int]) -> Raw | None:
    """Return the default configuration with these plugins at all their extension points; None if there are no plugins.

    `args` and `weights` may also contain names of in-tree plugins.
    """
    if not (plugins or args or weights):
        return None
    own = {cls.name for cls in plugins}
    in_tree = [{"name": name, "weight": weight} for name, weight in weights.items() if name not in own]
    scores = (
        {"score": {"disabled": [{"name": each["name"]} for each in in_tree], "enabled": in_tree}} if in_tree else {}
    )
    enabled = [{"name": cls.name, **({"weight": weights[cls.name]} if cls.name in weights else {})} for cls in plugins]
    sorting = [each for each, cls in zip(enabled, plugins, strict=True) if QUEUE_SORT.has(cls)]
    sorts = {"queueSort": {"disabled": [{"name": "*"}], "enabled": sorting}} if sorting else {}
    profile = {
        "plugins": {"multiPoint": {"enabled": enabled}, **sorts, **scores},
        "pluginConfig": [{"name": name, "args": dict(given)} for name, given in args.items()],
    }
    return {**_HEAD, "profiles": [profile]}
