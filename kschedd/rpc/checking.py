"""Whether manifests would fit into a cluster as it stands: for pull requests, and in CI.

A fork of the cluster takes the manifests and comes to rest, and what is different is told: pods without a place with
the least change that was tried and places them, pods that are preempted, evicted or moved, utilisation before and
after.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from kschedd.api.manifests import ManifestReading
from kschedd.printing.checking import CheckReport, UnplacedPod
from kschedd.values import in_parts

_WORKLOADS: Final = ("ReplicaSet", "StatefulSet", "DaemonSet", "Deployment", "Job", "ReplicationController")
_MOST_EXPLAINED: Final = 20
_AT_ONCE: Final = 5_000  # manifests in one request
_SOURCE: Final = "manifests"
_TROUBLES: Final = ("ReplicaFailure",)

Raw = dict[str, Any]


def check(call: Callable[..., Any], manifests: ManifestReading, limit_s: float) -> CheckReport:
    """`call` calls a method of the daemon, or of a cluster in virtual time; `limit_s` of virtual time is given."""
    report = CheckReport(errors=[str(error) for error in manifests.errors])
    report.pending_before = sum(call("queue.list", limit=0)["counts"].values())
    fork = call("fork.create")["name"]
    try:
        _try(partial(_in_fork, call, fork), report, manifests)
        report.at_rest = call("fork.advance", fork=fork, seconds=None, limit_s=limit_s)["at_rest"]
        _look(partial(_in_fork, call, fork), report, call("fork.diff", fork=fork))
    finally:
        call("fork.discard", fork=fork)
    return report


def _in_fork(call: Callable[..., Any], fork: str, method: str, **params: Any) -> Any:
    return call("fork.call", fork=fork, method=method, params=params)


def _try(in_fork: Callable[..., Any], report: CheckReport, manifests: ManifestReading) -> None:
    """Apply all manifests together, as `kschedd apply` does."""
    for some in in_parts(manifests.manifests, _AT_ONCE):
        answer = in_fork("objects.apply", manifests=[manifest.raw for manifest in some], source=_SOURCE)
        for each in answer["errors"]:
            place, _, rest = each["message"].removeprefix(f"{_SOURCE}[").partition("]")
            manifest = some[int(place)]
            told = f"{manifest.source}:{manifest.line}{rest}"
            (report.refused if each["code"] == "forbidden" else report.errors).append(told)
        report.warnings += answer["warnings"]
        report.applied += len(answer["results"])


def _look(in_fork: Callable[..., Any], report: CheckReport, diff: Raw) -> None:
    """What came of it."""
    report.pods, report.usage = diff["pods"], diff["usage"]
    for pod in diff["pods"]:
        if pod["change"] == "pending":
            key = f"{pod['namespace']}/{pod['successor'] or pod['name']}"
            told = in_fork("scheduler.explain", pod=key) if len(report.unplaced) < _MOST_EXPLAINED else {}
            report.unplaced.append(_unplaced(key, not pod["node"], pod, told))
    for kind in _WORKLOADS:
        for raw in in_fork("objects.list", kind=kind)["items"]:
            report.refused += _troubles(kind, raw)


def _unplaced(key: str, new: bool, pod: Raw, told: Raw) -> UnplacedPod:
    best = next(iter(told.get("suggestions") or ()), None)
    why = pod["why"] or told.get("message") or ""
    if best is None:
        return UnplacedPod(key, new, why, "", ())
    displaced = f"; it would displace {', '.join(best['displaced'])}" if best.get("displaced") else ""
    placed = f" (tried: then on {best['placed_on']}{displaced})" if best.get("placed_on") else ""
    # The pod itself is there on the fork only: what has to change of it stands in the manifest that it is made from.
    name = key.partition("/")[2]
    commands = [each["command"] for each in best["commands"] if f" {name} " not in each["command"]]
    return UnplacedPod(key, new, why, f"{best['sentence']}{placed}", commands)


def _troubles(kind: str, raw: Raw) -> list[str]:
    meta = raw["metadata"]
    name = f"{kind} {meta.get('namespace')}/{meta['name']}"
    conditions = (raw.get("status") or {}).get("conditions") or ()
    return [
        f"{name}: {one.get('message') or one.get('reason')}"
        for one in conditions
        if one.get("type") in _TROUBLES and one.get("status") == "True"
    ]
