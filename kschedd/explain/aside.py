"""Judging a pod that already has a node as if it were not there.

The pod is taken off its node for the moment and put back before anything else looks: same row, same place among the
node's pods, still only assumed if it was. Counts and columns are then what they were; what was remembered of that row
is looked at once more the next time, which changes nothing but time. What the pod holds besides its place on the node
stays held: its volumes and claims remain bound and allocated.

To be used between two attempts only, by the owner of the cluster.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import attrs

from kschedd.api.pods import Pod
from kschedd.cache.cluster import Cluster
from kschedd.framework.handle import Handle


def without_node(pod: Pod) -> Pod:
    """The pod as the scheduler would meet it: neither on a node nor nominated to one."""
    return attrs.evolve(pod, node_name="", nominated_node_name="") if pod.node_name else pod


@contextmanager
def set_aside(cluster: Cluster, pod: Pod) -> Iterator[bool]:
    """While this lasts the cluster does not count the pod; says whether it did before."""
    known = cluster.pod(pod.uid) if pod.uid else None
    if known is None:
        yield False
        return
    assumed = cluster.is_assumed(known)
    row = cluster.table.row_of.get(known.node_name)
    order = [] if row is None else [other.uid for other in cluster.table.pods[row]]
    cluster.remove_pod(known)
    try:
        yield True
    finally:
        if assumed:
            cluster.assume(known, known.node_name)
        else:
            cluster.put_pod(known)
        if row is not None:
            place = {uid: number for number, uid in enumerate(order)}
            cluster.table.pods[row].sort(key=lambda other: place[other.uid])


@contextmanager
def standing_in(handle: Handle, pod: Pod) -> Iterator[None]:
    """While this lasts plugins that look up the stored pod of this name meet this one, stored or not."""
    real = handle.current_pod
    handle.current_pod = lambda key: pod if key == pod.key or real is None else real(key)
    try:
        yield
    finally:
        handle.current_pod = real
