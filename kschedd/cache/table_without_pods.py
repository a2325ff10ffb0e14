"""TableWithoutPods: the columns of a node table without the pods and images of its nodes.

kube-scheduler creates new node information, from the Node objects alone, for the nodes in an extender's filter
response. Its score plugins then read this information. Row numbers equal those of the whole table, which must not
change while this object is used.

Source: Kubernetes v1.34, scheduler/extender.go (Filter); kubernetes#141781.
"""

import numpy as np

from kschedd.cache.table import NodeTable


class TableWithoutPods(NodeTable):
    def __init__(self, whole: NodeTable) -> None:
        vars(self).update(vars(whole))
        self.resources = dict(whole.resources)  # a copy, because new columns are added below
        self.requested = np.zeros_like(whole.requested)
        self.nonzero = np.zeros_like(whole.nonzero)
        self.pod_count = np.zeros_like(whole.pod_count)
        self.pods = [[]] * whole.capacity
        self.ports, self.images, self.claims = {}, {}, {}
