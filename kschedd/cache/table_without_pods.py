"""TableWithoutPods: the columns of a node table as if no node had pods or images.

kube-scheduler makes node information of its own for the nodes in the answer of an extender's filter: the Node objects
alone. Its score plugins read that information. Rows are those of the whole table, which must not change meanwhile.
Source: Kubernetes v1.34, scheduler/extender.go (Filter); kubernetes#141781.
"""

import numpy as np

from kschedd.cache.table import NodeTable


class TableWithoutPods(NodeTable):
    def __init__(self, whole: NodeTable) -> None:
        vars(self).update(vars(whole))
        self.resources = dict(whole.resources)  # a column that is made here is made of the arrays below
        self.requested = np.zeros_like(whole.requested)
        self.nonzero = np.zeros_like(whole.nonzero)
        self.pod_count = np.zeros_like(whole.pod_count)
        self.pods = [[]] * whole.capacity
        self.ports, self.images, self.claims = {}, {}, {}
