"""Each node's utilization with the pod on it, by resource: the input of both resource scores.

Source: Kubernetes v1.34, plugins/noderesources/resource_allocation.go.
Units: CPU in millicores, other resources in whole units. Shapes: one int64 a row and resource.
"""

from collections.abc import Sequence

import attrs
import numpy as np

from kschedd.api.resource_names import is_scalar
from kschedd.api.resources import PLAIN_AMOUNT, Resources
from kschedd.cache.table import CPU, MEMORY, Ints, NodeTable, Rows


@attrs.frozen(eq=False)
class Fractions:
    """`columns`: (index of the resource in the requested list, requested with the pod, allocatable).

    `wraps`: amounts may be negative, and results may overflow int64: they must wrap around as upstream's do.
    """

    rows: int
    columns: list[tuple[int, Ints, Ints]]
    wraps: bool


def scoring_resources(
    requests: Resources, table: NodeTable, rows: Rows, names: Sequence[str], *, nonzero: bool
) -> Fractions:
    """`requests` is what the pod requests; with `nonzero`, existing pods without a cpu or memory request count with
    upstream's default request.

    Extended resources that the pod does not request are left out, and so are names of no resource.
    """
    columns = []
    wraps = table.wraps
    for place, name in enumerate(names):
        asked = requests.get(name, 0)
        wraps = wraps or not 0 <= asked <= PLAIN_AMOUNT
        if name == "cpu":
            used = table.nonzero[0] if nonzero else table.requested[CPU]
            columns.append((place, used[rows] + asked, table.allocatable[CPU][rows]))
        elif name == "memory":
            used = table.nonzero[1] if nonzero else table.requested[MEMORY]
            columns.append((place, used[rows] + asked, table.allocatable[MEMORY][rows]))
        elif name == "ephemeral-storage" or (asked and is_scalar(name)):
            number = table.resource(name)
            columns.append((place, table.requested[number][rows] + asked, table.allocatable[number][rows]))
    return Fractions(len(rows), columns, wraps)


def truncated(dividend: Ints, divisor: Ints) -> Ints:
    """Division towards zero, as Go divides; by zero it is 0."""
    by = np.where(divisor == 0, 1, divisor)
    with np.errstate(over="ignore"):  # the least int64 divided by -1
        quotient = dividend // by
        inexact = (quotient * by != dividend) & ((dividend < 0) != (by < 0))
    towards_zero: Ints = np.where(divisor == 0, 0, quotient + inexact)
    return towards_zero
