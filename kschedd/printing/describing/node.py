"""Output of `describe node`: conditions, capacity and allocatable, allocated resources, and the pods of the node."""

from collections.abc import Mapping, Sequence

from kschedd.api.quantity import QuantityError
from kschedd.api.resources import pod_requests
from kschedd.printing.columns.ages import age
from kschedd.printing.columns.by_kind import Raw, amount_text, meta, node_roles, node_status, spec, status, taint_text
from kschedd.printing.columns.usage import allocatable
from kschedd.printing.describing.describe import (
    DescribeContext,
    conditions,
    events_text,
    heading,
    line,
    pairs,
    section,
    several,
    since,
)
from kschedd.printing.terminal.style import TerminalStyle
from kschedd.printing.terminal.tables import Table, render


def describe_node(node: Raw, related: DescribeContext) -> str:
    text = heading(node, related)
    text += line("Roles", node_roles(node))
    text += line("Created", since(meta(node).get("creationTimestamp"), related))
    text += several("Taints", map(taint_text, spec(node).get("taints") or ()))
    text += line("Unschedulable", str(bool(spec(node).get("unschedulable"))).lower())
    text += line("Status", node_status(node))
    text += section("Conditions", conditions(node))
    for address in status(node).get("addresses") or ():
        text += line(str(address.get("type", "")), str(address.get("address", "")))
    for label in ("capacity", "allocatable"):
        text += section(label.capitalize(), "".join(f"  {pair}\n" for pair in pairs(status(node).get(label), ": ")))
    info = status(node).get("nodeInfo") or {}
    if info:
        text += section("System Info", "".join(f"  {pair}\n" for pair in pairs(info, ": ")))
    pods = [pod for pod in related.pods if status(pod).get("phase") not in ("Succeeded", "Failed")]
    text += _pods(node, pods, related) + _taken(node, pods)
    return text + events_text(related.events, related)


def requests_of(pod: Raw) -> Mapping[str, int]:
    """Return a pod's resource requests; empty if its manifest is invalid."""
    try:
        return pod_requests(spec(pod), status(pod))
    except (QuantityError, KeyError, TypeError, AttributeError):
        return {}


def limits_of(pod: Raw) -> Mapping[str, int]:
    """Return a pod's resource limits, added up like requests; the overhead is included if a container has a limit.

    Source: Kubernetes v1.34, component-helpers/resource/helpers.go, PodLimits.
    """

    def as_requests(stated: Raw) -> Raw:
        return {**stated, "resources": {"requests": (stated.get("resources") or {}).get("limits") or {}}}

    pod_spec = dict(spec(pod))
    sorts = [sort for sort in ("containers", "initContainers") if pod_spec.get(sort)]
    for sort in sorts:
        pod_spec[sort] = [as_requests(container) for container in pod_spec[sort]]
    if pod_spec.get("resources"):
        pod_spec = dict(as_requests(pod_spec))
    overhead = pod_spec.pop("overhead", None) or {}
    bare = requests_of({"spec": pod_spec})
    return requests_of(
        {"spec": {**pod_spec, "overhead": {name: overhead[name] for name in overhead if bare.get(name)}}}
    )


def requested_by_node(pods: Sequence[Raw]) -> dict[str, dict[str, int]]:
    """Return the total requests of each node's non-terminated pods; the resource `pods` is the number of these pods."""
    totals: dict[str, dict[str, int]] = {}
    for pod in pods:
        node = spec(pod).get("nodeName")
        if node and status(pod).get("phase") not in ("Succeeded", "Failed"):
            total = totals.setdefault(node, {})
            for name, amount in (*requests_of(pod).items(), ("pods", 1)):
                total[name] = total.get(name, 0) + amount
    return totals


def _share(amount: int, has: int) -> str:
    return f"({amount * 100 // has}%)" if has else "(0%)"


def _amount(name: str, amounts: Mapping[str, int], has: Mapping[str, int]) -> str:
    return f"{amount_text(name, amounts.get(name, 0))} {_share(amounts.get(name, 0), has.get(name, 0))}"


def _pods(node: Raw, pods: Sequence[Raw], related: DescribeContext) -> str:
    has = allocatable(node)
    rows = []
    for pod in sorted(pods, key=lambda pod: (meta(pod).get("namespace", ""), meta(pod).get("name", ""))):
        asks = (requests_of(pod), limits_of(pod))
        cells = [meta(pod).get("namespace", ""), meta(pod).get("name", "")]
        cells += [_amount(name, amounts, has) for name in ("cpu", "memory") for amounts in asks]
        rows.append((*cells, age(meta(pod).get("creationTimestamp"), related.now)))
    title = f"Pods ({len(pods)} of at most {has.get('pods', 0)}):\n"
    if not rows:
        return title
    headers = ("NAMESPACE", "NAME", "CPU REQUESTS", "CPU LIMITS", "MEMORY REQUESTS", "MEMORY LIMITS", "AGE")
    table = Table(headers, tuple(rows))
    return title + render(table, related.style, indent="  ")


def _taken(node: Raw, pods: Sequence[Raw]) -> str:
    has = allocatable(node)
    total = requested_by_node(pods).get(meta(node).get("name", ""), {})
    limits: dict[str, int] = {}
    for pod in pods:
        for name, amount in limits_of(pod).items():
            limits[name] = limits.get(name, 0) + amount
    names: list[str] = [name for name in ("cpu", "memory", "ephemeral-storage") if name in has]
    names += sorted(name for name in {*has, *total, *limits} if name not in (*names, "pods"))
    rows = tuple(
        (
            name,
            _amount(name, total, has),
            _amount(name, limits, has),
            amount_text(name, max(0, has.get(name, 0) - total.get(name, 0))),
        )
        for name in names
    )
    return "Allocated resources:\n" + render(
        Table(("RESOURCE", "REQUESTS", "LIMITS", "FREE"), rows), TerminalStyle(), indent="  "
    )
