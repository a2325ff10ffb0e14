"""Whether manifests would fit into a cluster as it stands: for pull requests, and in CI.

The cluster comes to rest by itself first; then a fork takes the manifests and comes to rest, and what is different is
told: pods without a place with the least change that was tried and places them, pods that are preempted, evicted or
moved, utilisation before and after.
"""

from typing import Any, Final

from kschedd.api.manifests import ManifestReading
from kschedd.printing.checking import CheckReport, UnplacedPod
from kschedd.rpc.methods import daemon_methods
from kschedd.rpc.virtual import VirtualCluster, VirtualDaemon

_FORK: Final = "check"
_WORKLOADS: Final = ("ReplicaSet", "StatefulSet", "DaemonSet", "Deployment", "Job", "ReplicationController")
_MOST_EXPLAINED: Final = 20
_TROUBLES: Final = ("ReplicaFailure",)

Raw = dict[str, Any]


def check(cluster: VirtualCluster, manifests: ManifestReading, limit_s: float) -> CheckReport:
    """The cluster has its objects already; `limit_s` of virtual time is given to each side."""
    report = CheckReport(errors=[str(error) for error in manifests.errors])
    engine = cluster.engine
    engine.run_to_rest(limit_s)
    daemon = VirtualDaemon(cluster, daemon_methods)
    report.pending_before = sum(engine.queue.counts().values())
    daemon.call("fork.create", name=_FORK)

    def in_fork(method: str, **params: Any) -> Any:
        return daemon.call("fork.call", fork=_FORK, method=method, params=params)

    for manifest in manifests.manifests:
        answer = in_fork("objects.apply", manifests=manifest.raw, source=f"{manifest.source}:{manifest.line}")
        report.errors += [each["message"] for each in answer["errors"]]
        report.warnings += answer["warnings"]
        report.applied += len(answer["results"])
    report.at_rest = daemon.call("fork.advance", fork=_FORK, seconds=None, limit_s=limit_s)["at_rest"]
    diff = daemon.call("fork.diff", fork=_FORK)
    report.pods, report.usage = diff["pods"], diff["usage"]
    for pod in diff["pods"]:
        if pod["change"] == "pending":
            key = f"{pod['namespace']}/{pod['successor'] or pod['name']}"
            told = in_fork("scheduler.explain", pod=key) if len(report.unplaced) < _MOST_EXPLAINED else {}
            report.unplaced.append(_unplaced(key, not pod["node"], pod, told))
    for kind in _WORKLOADS:
        for raw in in_fork("objects.list", kind=kind)["items"]:
            report.refused += _troubles(kind, raw)
    return report


def _unplaced(key: str, new: bool, pod: Raw, told: Raw) -> UnplacedPod:
    best = next(iter(told.get("suggestions") or ()), None)
    why = pod["why"] or told.get("message") or ""
    if best is None:
        return UnplacedPod(key, new, why, "", ())
    displaced = f"; it would displace {', '.join(best['displaced'])}" if best.get("displaced") else ""
    placed = f" (tried: then on {best['placed_on']}{displaced})" if best.get("placed_on") else ""
    return UnplacedPod(key, new, why, f"{best['sentence']}{placed}", [each["command"] for each in best["commands"]])


def _troubles(kind: str, raw: Raw) -> list[str]:
    meta = raw["metadata"]
    name = f"{kind} {meta.get('namespace')}/{meta['name']}"
    conditions = (raw.get("status") or {}).get("conditions") or ()
    return [
        f"{name}: {one.get('message') or one.get('reason')}"
        for one in conditions
        if one.get("type") in _TROUBLES and one.get("status") == "True"
    ]
