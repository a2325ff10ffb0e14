"""kschedd: kube-scheduler as a local process that can be inspected, stepped, changed, forked and replayed.

    from kschedd import Cluster, pod

    cluster = Cluster(nodes=3)
    cluster.apply(pod("a", cpu="500m"))
    print(cluster.placements())

| names | subject |
|---|---|
| Cluster, connect, RemoteCluster | a cluster in this process; a running daemon |
| node, pod, deployment, statefulset, daemonset, job | manifests in one line |
| Records, Explanation | tables that become data frames; the cause that keeps a workload pending |
| simulate, SimulationSpec, SimulationResult | simulations as values |
| sweep, SweepRows | many runs |
| evaluate, PluginEvaluation | the score of a plugin |
| KubeSchedulingEnv, KubeQueueEnv | Gymnasium environments |
| KscheddError, RpcError, ApplyError, CommandFailedError | errors |
| VERSIONS | the supported releases of Kubernetes |

`kschedd.plugin` has the names for plugins, `kschedd.testing.strategies` Hypothesis strategies. The names of `__all__`
are the public interface. Each name is imported on first use.
"""

import gc
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kschedd.config.versions.kube_versions import VERSIONS as VERSIONS
    from kschedd.errors import KscheddError as KscheddError
    from kschedd.sdk.cluster import Cluster as Cluster
    from kschedd.sdk.environment import KubeQueueEnv as KubeQueueEnv
    from kschedd.sdk.environment import KubeSchedulingEnv as KubeSchedulingEnv
    from kschedd.sdk.handle import ApplyError as ApplyError
    from kschedd.sdk.handle import CommandFailedError as CommandFailedError
    from kschedd.sdk.handle import Explanation as Explanation
    from kschedd.sdk.objects import daemonset as daemonset
    from kschedd.sdk.objects import deployment as deployment
    from kschedd.sdk.objects import job as job
    from kschedd.sdk.objects import node as node
    from kschedd.sdk.objects import pod as pod
    from kschedd.sdk.objects import statefulset as statefulset
    from kschedd.sdk.records import Records as Records
    from kschedd.sdk.remote import RemoteCluster as RemoteCluster
    from kschedd.sdk.remote import connect as connect
    from kschedd.sdk.simulation import SimulationResult as SimulationResult
    from kschedd.sdk.simulation import SimulationSpec as SimulationSpec
    from kschedd.sdk.simulation import simulate as simulate
    from kschedd.service.errors import RpcError as RpcError
    from kschedd.studies.rows import SweepRows as SweepRows
    from kschedd.studies.sweep import sweep as sweep
    from kschedd.testing.evaluation import PluginEvaluation as PluginEvaluation
    from kschedd.testing.evaluation import evaluate as evaluate

_MODULES = {
    "ApplyError": "kschedd.sdk.handle",
    "Cluster": "kschedd.sdk.cluster",
    "CommandFailedError": "kschedd.sdk.handle",
    "Explanation": "kschedd.sdk.handle",
    "KscheddError": "kschedd.errors",
    "KubeQueueEnv": "kschedd.sdk.environment",
    "KubeSchedulingEnv": "kschedd.sdk.environment",
    "PluginEvaluation": "kschedd.testing.evaluation",
    "Records": "kschedd.sdk.records",
    "RemoteCluster": "kschedd.sdk.remote",
    "RpcError": "kschedd.service.errors",
    "SimulationResult": "kschedd.sdk.simulation",
    "SimulationSpec": "kschedd.sdk.simulation",
    "SweepRows": "kschedd.studies.rows",
    "VERSIONS": "kschedd.config.versions.kube_versions",
    "connect": "kschedd.sdk.remote",
    "daemonset": "kschedd.sdk.objects",
    "deployment": "kschedd.sdk.objects",
    "evaluate": "kschedd.testing.evaluation",
    "job": "kschedd.sdk.objects",
    "node": "kschedd.sdk.objects",
    "pod": "kschedd.sdk.objects",
    "simulate": "kschedd.sdk.simulation",
    "statefulset": "kschedd.sdk.objects",
    "sweep": "kschedd.studies.sweep",
}

__all__ = [
    "VERSIONS",
    "ApplyError",
    "Cluster",
    "CommandFailedError",
    "Explanation",
    "KscheddError",
    "KubeQueueEnv",
    "KubeSchedulingEnv",
    "PluginEvaluation",
    "Records",
    "RemoteCluster",
    "RpcError",
    "SimulationResult",
    "SimulationSpec",
    "SweepRows",
    "connect",
    "daemonset",
    "deployment",
    "evaluate",
    "job",
    "node",
    "pod",
    "simulate",
    "statefulset",
    "sweep",
]


def __getattr__(name: str) -> Any:
    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    collecting = gc.isenabled()
    # the collector would traverse all imported modules repeatedly, which would take a fifth of the import time
    gc.disable()
    try:
        found = getattr(import_module(module), name)
    finally:
        if not gc.get_freeze_count():
            # together with `unfreeze`, this makes all objects old, and collections of young objects skip old objects
            gc.freeze()
            gc.unfreeze()
        if collecting:
            gc.enable()
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
