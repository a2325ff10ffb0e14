"""Comparison of an autoscaler's expectations with the scheduler's placements in a fork.

An autoscaler simulates the scheduler when it decides. A disagreement is a pod that the autoscaler expects on a node,
and that the scheduler placed on another node or on none.
"""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from kschedd.verbs.command_line.session import DaemonClient

Raw = Mapping[str, Any]


def compared_with_scheduler(daemon: DaemonClient, plan: Raw, diff: Raw) -> dict[str, Any]:
    """Return the disagreements, the number of pods with an expected node, and the launched nodes without pods.

    Pods on another new node of the expected pool, or in the place of another pod of their workload, are only counted
    (`swapped`).
    `plan` is the answer of `pools.launch`, `diff` that of `fork.diff`.
    """
    expected = {pod: launch["name"] for launch in plan["launches"] for pod in launch["pods"]}
    expected |= {each["pod"]: each["node"] for each in plan["existing"]}
    if not expected:
        return {"expected": 0, "disagreements": [], "swapped": 0, "unused": []}
    pods = {_key(raw): raw for raw in daemon.call("objects.list", kind="Pod")["items"]}
    chosen = {f"{each['namespace']}/{each['name']}": each["placement"] for each in diff["pods"]}
    pool_of = {launch["name"]: launch["pool"] for launch in plan["launches"]}
    actual = {key: str((pods.get(key) or {}).get("spec", {}).get("nodeName") or "") for key in expected}
    # Pods of one workload are interchangeable: their places are compared together.
    wanted: dict[str, Counter[str]] = {}
    for key, node in expected.items():
        wanted.setdefault(_workload(key, pods), Counter())[pool_of.get(node, node)] += 1
    found, swapped = [], 0
    for key, node in expected.items():
        there, of_workload = actual[key], wanted[_workload(key, pods)]
        place = pool_of.get(there, there)
        if there and of_workload[place] > 0:
            of_workload[place] -= 1
            swapped += there != node
            continue
        why = chosen.get(key, "") if there else _why_pending(pods.get(key))
        found.append({"pod": key, "expected": node, "node": there, "why": why})
    used = {raw["spec"].get("nodeName") for raw in pods.values() if not _is_daemon(raw)}
    unused = [launch["name"] for launch in plan["launches"] if launch["name"] not in used]
    return {"expected": len(expected), "disagreements": found, "swapped": swapped, "unused": unused}


def _key(raw: Raw) -> str:
    return f"{raw['metadata']['namespace']}/{raw['metadata']['name']}"


def _workload(key: str, pods: Mapping[str, Raw]) -> str:
    """Return the UID of the pod's controller, or else the pod's own key."""
    owners = (pods.get(key) or {}).get("metadata", {}).get("ownerReferences") or ()
    return next((str(owner["uid"]) for owner in owners if owner.get("controller")), key)


def _is_daemon(raw: Raw) -> bool:
    return any(owner.get("kind") == "DaemonSet" for owner in raw["metadata"].get("ownerReferences") or ())


def _why_pending(raw: Raw | None) -> str:
    if raw is None:
        return "the pod is gone"
    conditions = (raw.get("status") or {}).get("conditions") or ()
    return next((str(each.get("message") or "") for each in conditions if each.get("type") == "PodScheduled"), "")
