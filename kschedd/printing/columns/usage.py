"""Output of `top`: resource requests per node and per pod.

Containers do not run, so `top` prints requests instead of usage.
"""

from collections.abc import Mapping, Sequence

from kschedd.api.quantity import QuantityError, milli_value, value
from kschedd.printing.columns.by_kind import Raw, amount_text, meta, spec, status
from kschedd.printing.terminal.tables import NONE, Table

RESOURCES = ("cpu", "memory")


def allocatable(node: Raw) -> dict[str, int]:
    """Return a node's allocatable resources: cpu in millicores, other resources in whole units.

    Invalid quantities are omitted.
    """
    found = {}
    for name, quantity in (status(node).get("allocatable") or {}).items():
        try:
            found[name] = milli_value(quantity) if name == "cpu" else value(quantity)
        except QuantityError:
            continue
    return found


def percentage(amount: int, has: int) -> str:
    return f"{amount * 100 // has}%" if has else NONE


def nodes_table(nodes: Sequence[Raw], requested: Mapping[str, Mapping[str, int]]) -> Table:
    """Return one row per node. `requested` contains the total requests of each node's pods, by the name of the node."""
    rows = []
    for node in nodes:
        has, takes = allocatable(node), requested.get(str(meta(node).get("name")), {})
        row = [str(meta(node).get("name"))]
        for name in RESOURCES:
            amount = takes.get(name, 0)
            row += [
                amount_text(name, amount),
                amount_text(name, has.get(name, 0)),
                percentage(amount, has.get(name, 0)),
            ]
        rows.append((*row, f"{takes.get('pods', 0)}/{has.get('pods', 0)}"))
    titles = ["NAME"]
    for name in RESOURCES:
        titles += [f"{name.upper()}(REQUESTED)", f"{name.upper()}(ALLOCATABLE)", f"{name.upper()}%"]
    return Table((*titles, "PODS"), tuple(rows))


def pods_table(pods: Sequence[Raw], requests: Mapping[str, Mapping[str, int]], *, namespaces: bool) -> Table:
    """Return one row per pod. `requests`: the requests of each pod, by `namespace/name`."""
    rows = []
    for pod in pods:
        asks = requests[pod_name(pod)]
        row = (
            str(meta(pod).get("name")),
            *(amount_text(name, asks.get(name, 0)) for name in RESOURCES),
            str(spec(pod).get("nodeName") or NONE),
        )
        rows.append((str(meta(pod).get("namespace")), *row) if namespaces else row)
    titles = ("NAME", "CPU(REQUESTED)", "MEMORY(REQUESTED)", "NODE")
    return Table(("NAMESPACE", *titles) if namespaces else titles, tuple(rows))


def pod_name(pod: Raw) -> str:
    return f"{meta(pod).get('namespace')}/{meta(pod).get('name')}"
