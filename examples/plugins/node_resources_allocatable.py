"""NodeResourcesAllocatable: prefer small nodes (mode Least) or large ones (Most), regardless of running pods.

    pluginConfig:
      - name: NodeResourcesAllocatable
        args:
          mode: Least
          resources: [{name: cpu, weight: 1048576}, {name: memory, weight: 1}]

A weight is the value of a millicore or a byte. With the defaults shown here, a core has the value of a gigabyte.
Source: kubernetes-sigs/scheduler-plugins, pkg/noderesources (the rule, not the code).
"""

from typing import Any, ClassVar, Final, Self

import attrs
import numpy as np

from kschedd.plugin import MAX_NODE_SCORE, CycleState, Handle, Ints, NodeTable, Pod, RawArgs, Rows

DEFAULT: Final = {"cpu": 1 << 20, "memory": 1}
MODES: Final = ("Least", "Most")


@attrs.define(eq=False)
class NodeResourcesAllocatable:
    name: ClassVar = "NodeResourcesAllocatable"
    depends_on: ClassVar = frozenset({"node"})
    _sign: int
    _weights: dict[str, int]

    @classmethod
    def from_args(cls, args: RawArgs, handle: Handle) -> Self:
        mode = args.values.get("mode", "Least")
        if mode not in MODES:
            raise ValueError(f"mode: {mode!r}: must be one of {', '.join(MODES)}")
        return cls(1 if mode == "Most" else -1, _weights(args.values.get("resources")))

    def score_rows(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> Ints:
        total = np.zeros(len(rows), dtype=np.float64)
        for name, weight in self._weights.items():
            total += table.allocatable[table.resource(name), rows] * float(weight)
        return np.asarray((self._sign * total / sum(self._weights.values())).astype(np.int64))

    def normalize(self, state: CycleState, pod: Pod, scores: Ints) -> Ints:
        """Map the lowest score to 0 and the highest to 100; if all are equal, map them to 0."""
        if not len(scores) or scores.max() == scores.min():
            return np.zeros_like(scores)
        above = (scores - scores.min()).astype(object)  # of any size
        return np.array([int(each * MAX_NODE_SCORE // above.max()) for each in above], dtype=np.int64)


def _weights(given: Any) -> dict[str, int]:
    if given is None:
        return dict(DEFAULT)
    found = {}
    for number, each in enumerate(given if isinstance(given, list) else [given]):
        name, weight = (each.get("name"), each.get("weight")) if isinstance(each, dict) else (None, None)
        if not isinstance(name, str) or isinstance(weight, bool) or not isinstance(weight, int) or weight < 1:
            raise ValueError(f"resources[{number}]: {each!r}: must have a name, and a weight from 1 up")
        found[name] = weight
    if not found:
        raise ValueError("resources: must name at least one")
    return found
