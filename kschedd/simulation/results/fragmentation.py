"""Fragmentation: the free capacity that the pods of a target set cannot use.

    fragmented   by resource: the expected free amount that a pod of the target set cannot use, over all nodes. A pod
                 uses the free amount of a node if it fits there and requests the resource
    unusable     the share of the nodes on which no pod of the target set fits

Source: See Weng et al., "Beware of Fragmentation", USENIX ATC 2023, section 4; the amounts F_n(M) are summed over the
nodes. A target pod fits on a node if its requests are free there and the node matches its selector and required
affinity. A resource is one pool per node, so unused parts of single GPU cards are not measured. Shapes: M
is the number of targets, N the number of nodes, R the number of resources. Units are those of the columns of
`NodeTable`.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Self

import attrs
import numpy as np
import numpy.typing as npt

from kschedd.api.node_fit import node_matches
from kschedd.api.pods import Pod, PodSpec
from kschedd.cache.table import NodeTable

_ROWS_AT_ONCE: Final = 4096
_NOTHING: Final = -(1 << 62)  # value for a resource that is not requested, below any free amount

Floats = npt.NDArray[np.float64]


@attrs.define(eq=False)
class TargetSet:
    """Target pods by requests and selected nodes, with the number or weight of each group."""

    _weights: Counter[Any] = attrs.field(factory=Counter)
    _specs: dict[Any, PodSpec] = attrs.field(factory=dict)
    # keys by identity of the spec; the value refers to the spec, so that its identity is not reused
    _keys: dict[int, tuple[PodSpec, Any]] = attrs.field(factory=dict)

    @classmethod
    def of(cls, pods: Iterable[tuple[Mapping[str, Any], int]]) -> Self:
        """Return the set of these pod manifests with their weights."""
        targets = cls()
        for manifest, weight in pods:
            targets.add(Pod.from_raw(manifest).pod_spec, weight)
        return targets

    def add(self, spec: PodSpec, weight: int = 1) -> None:
        known = self._keys.get(id(spec))
        if known is None:
            affinity = spec.raw.get("affinity") or {}
            selects = spec.raw.get("nodeSelector"), affinity.get("nodeAffinity")
            key = tuple(sorted(spec.requests.items())), repr(selects) if any(selects) else ""
            known = self._keys[id(spec)] = spec, key
            self._specs.setdefault(key, spec)
        self._weights[known[1]] += weight

    @property
    def pods(self) -> Sequence[tuple[PodSpec, int]]:
        return [(self._specs[key], weight) for key, weight in self._weights.items() if weight > 0]


@attrs.frozen
class Fragmentation:
    """The fragmentation of a cluster, in shares from 0 to 1.

    `fragmented` contains for each resource the share of the capacity that is free but unusable. `unusable` is the share
    of the nodes that no target can use.
    """

    fragmented: Mapping[str, float]
    unusable: float

    @classmethod
    def of(cls, table: NodeTable, targets: TargetSet) -> "Fragmentation":
        """Return the current fragmentation of the nodes. The fragmentation is 0 without targets or nodes."""
        rows = np.flatnonzero(table.alive)
        pods = targets.pods
        names = [name for name, number in table.resources.items() if table.allocatable[number].any()]
        if not len(rows) or not pods:
            return cls(dict.fromkeys(names, 0.0), 0.0)
        numbers = [table.resources[name] for name in names]
        weights = np.array([weight for _, weight in pods], dtype=np.float64)
        weights /= weights.sum()
        requested = np.array([[spec.requests.get(name, 0) or _NOTHING for name in names] for spec, _ in pods])
        # if no node offers a resource, requests for it can never be met
        offered = np.array([all(name in names or name == "pods" for name in spec.requests) for spec, _ in pods])
        lost, unusable = np.zeros(len(names)), 0
        for some in (rows[start : start + _ROWS_AT_ONCE] for start in range(0, len(rows), _ROWS_AT_ONCE)):
            free = table.allocatable[numbers][:, some] - table.requested[numbers][:, some]
            fits = _selected(table, some, [spec for spec, _ in pods]) & offered[:, None]
            fits &= (table.pod_count[some] < table.allowed_pods[some])[None, :]
            for place in range(len(names)):
                fits &= requested[:, place, None] <= free[place][None, :]
            usable = ((requested > 0) * weights[:, None]).T @ fits
            lost += (np.maximum(free, 0) * (1 - usable)).sum(axis=1)
            unusable += int((~fits.any(axis=0)).sum())
        there = table.allocatable[numbers][:, rows].sum(axis=1)
        shares = {name: float(lost[place] / there[place]) for place, name in enumerate(names) if there[place] > 0}
        return cls(shares, unusable / len(rows))


def _selected(table: NodeTable, rows: npt.NDArray[np.int64], specs: Sequence[PodSpec]) -> npt.NDArray[np.bool_]:
    """Return an M by N matrix that is true if the node matches the target's node selector and required affinity."""
    found = np.ones((len(specs), len(rows)), dtype=np.bool_)
    for place, spec in enumerate(specs):
        if spec.node_selector or spec.required_node_affinity is not None:
            found[place] = list(_matches(table, rows, spec))
    return found


def _matches(table: NodeTable, rows: npt.NDArray[np.int64], spec: PodSpec) -> Iterator[bool]:
    for row in rows.tolist():
        node = table.nodes[row]
        assert node is not None, "rows of nodes are expected"
        yield node_matches(spec, node)
