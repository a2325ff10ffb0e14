"""check: whether manifests fit into a cluster, for pull requests and CI.

The manifests are applied to a fork of the cluster, which then runs until no work is pending. The report compares the
cluster before and after: pods without a node (with the cause and the first remedy), pods that are preempted, evicted or
moved, workloads that lack more pods than before, and utilization.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

import attrs

from kschedd.api.manifests import ManifestReading
from kschedd.printing.reports.checking import CheckReport, UnplacedPod
from kschedd.values import in_parts

_WORKLOADS: Final = ("ReplicaSet", "StatefulSet", "DaemonSet", "Deployment", "Job", "ReplicationController")
_MOST_EXPLAINED: Final = 20
_AT_ONCE: Final = 5_000  # manifests in one request
_SOURCE: Final = "manifests"
_ENDED: Final = frozenset(("Complete", "Failed"))

Raw = dict[str, Any]
Key = tuple[str, str, str]  # kind, namespace, name


def check(
    call: Callable[..., Any],
    manifests: ManifestReading,
    limit_s: float,
    progress: Callable[[str], None] = lambda _: None,
    program: str = "kschedd",
) -> CheckReport:
    """Return the report. `call` calls a method of the daemon or of a cluster in virtual time.

    `limit_s` is the limit of virtual time in seconds. `progress` is called with a text before each step.
    `program` is the program in the commands of remedies.
    """
    report = CheckReport(errors=[str(error) for error in manifests.errors])
    report.pending_before = sum(call("queue.list", limit=0)["counts"].values())
    fork = call("fork.create", what_if=True)["name"]
    in_fork = partial(_in_fork, call, fork)
    explain = partial(in_fork, "causes.explain", program=program)
    try:
        before = _shortages(in_fork)
        progress(f"Applying {len(manifests.manifests):,} objects ...")
        _try(in_fork, report, manifests)
        progress("Scheduling on a copy of the cluster ...")
        report.at_rest = call("fork.advance", fork=fork, seconds=None, limit_s=limit_s)["at_rest"]
        _look(explain, report, call("fork.diff", fork=fork), progress)
        report.refused += _new_shortages(in_fork, explain, before, progress)
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
            where = f"{manifest.source}:{manifest.line}"
            if each["code"] == "forbidden":
                named = f"{each['kind']} {each['namespace'] or 'default'}/{each['name']}"
                report.forbidden.append(f"{named}: {each['why']} ({where})")
            else:
                report.errors.append(f"{where}{rest}")
        report.warnings += answer["warnings"]
        report.applied += len(answer["results"])


def _look(explain: Callable[..., Any], report: CheckReport, diff: Raw, progress: Callable[[str], None]) -> None:
    """Add the placements in the fork to the report."""
    report.pods, report.usage, report.summary = diff["pods"], diff["usage"], diff["summary"]
    known: list[Raw] = []  # at most _MOST_EXPLAINED diagnoses, one per workload
    for pod in diff["pods"]:
        if pod["change"] == "pending":
            namespace, name = pod["namespace"], pod["successor"] or pod["name"]
            diagnosis = next((each for each in known if _is_of(name, namespace, each)), None)
            if diagnosis is None and len(known) < _MOST_EXPLAINED:
                progress(f"Looking for the cause and a remedy: pod {namespace}/{name} ...")
                diagnosis = explain(kind="Pod", name=name, namespace=namespace)
                known.append(diagnosis)
            report.unplaced.append(_unplaced(f"{namespace}/{name}", not pod["node"], pod, diagnosis))


def _is_of(name: str, namespace: str, diagnosis: Raw) -> bool:
    """Return whether the pod belongs to the examined workload."""
    workload = diagnosis["workload"]
    if workload["namespace"] != namespace:
        return False
    own = str(workload["name"])
    return name == own if workload["kind"] == "Pod" else name.startswith(f"{own}-")


def _unplaced(key: str, new: bool, pod: Raw, diagnosis: Raw | None) -> UnplacedPod:
    if diagnosis is None:
        return UnplacedPod(key, new, pod["why"] or "")
    return _with_cause(key, new, pod["why"] or "", diagnosis)


def _with_cause(key: str, new: bool, why: str, diagnosis: Raw) -> UnplacedPod:
    cause = diagnosis["cause"]
    causes = "; ".join(each["message"] for each in (cause, *diagnosis["also"]))
    best = next(iter(diagnosis["remedies"]), None)
    if best is None:
        return UnplacedPod(key, new, why, cause["code"], causes)
    return UnplacedPod(key, new, why, cause["code"], causes, best["summary"], best["commands"], best["manifest_diff"])


# -- workloads whose controllers cannot create their pods ---------------------------------------------------------


@attrs.frozen
class _Shortage:
    """A workload whose controller could not create all its pods. `why` is "" if the status contains no reason."""

    key: Key
    owner: Key | None
    missing: int
    why: str


def _shortages(in_fork: Callable[..., Any]) -> dict[Key, _Shortage]:
    found = (_shortage(kind, raw) for kind in _WORKLOADS for raw in in_fork("objects.list", kind=kind)["items"])
    return {one.key: one for one in found if one is not None}


def _new_shortages(
    in_fork: Callable[..., Any],
    explain: Callable[..., Any],
    before: Mapping[Key, _Shortage],
    progress: Callable[[str], None],
) -> list[UnplacedPod]:
    """Return the workloads that lack more pods than before. A ReplicaSet of a Deployment is omitted."""
    now = _shortages(in_fork)
    found: list[UnplacedPod] = []
    for key, one in now.items():
        had = before[key].missing if key in before else 0
        if one.missing > had and one.owner not in now:
            kind, namespace, name = key
            why = one.why or _latest_failure(in_fork, key) or f"pods that were not created: {one.missing}"
            label = f"{kind} {namespace}/{name}"
            if len(found) >= _MOST_EXPLAINED:
                found.append(UnplacedPod(label, True, why))
                continue
            progress(f"Looking for the cause and a remedy: {label} ...")
            diagnosis = explain(kind=kind, name=name, namespace=namespace)
            found.append(_with_cause(label, True, why, diagnosis))
    return found


def _shortage(kind: str, raw: Raw) -> _Shortage | None:
    meta, spec, status = raw["metadata"], raw.get("spec") or {}, raw.get("status") or {}
    conditions = {one.get("type"): one for one in status.get("conditions") or () if one.get("status") == "True"}
    failure = conditions.get("ReplicaFailure")
    wanted, there = spec.get("replicas", 1) or 0, status.get("replicas") or 0
    match kind:
        case "StatefulSet":
            missing = wanted - there if status.get("readyReplicas", 0) == there else 0  # else it waits for these
        case "DaemonSet":
            missing = (status.get("desiredNumberScheduled") or 0) - (status.get("currentNumberScheduled") or 0)
        case "Job":
            began = any(status.get(field) for field in ("active", "succeeded", "failed"))
            wanted = min(spec.get("parallelism", 1), spec.get("completions") or spec.get("parallelism", 1))
            missing = 0 if began or spec.get("suspend") or conditions.keys() & _ENDED else wanted
        case _:
            missing = max(1, wanted - there) if failure else 0
    if missing <= 0:
        return None
    owner = next((one for one in meta.get("ownerReferences") or () if one.get("controller")), None)
    namespace = meta.get("namespace") or ""
    above = None if owner is None else (owner["kind"], namespace, owner["name"])
    why = "" if failure is None else str(failure.get("message") or failure.get("reason") or "")
    return _Shortage((kind, namespace, meta["name"]), above, missing, why)


def _latest_failure(in_fork: Callable[..., Any], key: Key) -> str:
    """Return the message of the workload's latest FailedCreate event, or ""."""
    kind, namespace, name = key
    selector = f"involvedObject.kind={kind},involvedObject.name={name},reason=FailedCreate"
    events = in_fork("objects.list", kind="Event", namespace=namespace, field_selector=selector)["items"]
    return str(events[-1].get("message") or "") if events else ""
