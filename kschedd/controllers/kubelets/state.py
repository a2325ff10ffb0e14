"""Whether a node's kubelet runs: the annotation `kschedd.io/kubelet` of the node.

(none)     it runs: it renews its Lease, reports the node's status, starts and ends pods
stopped    it has stopped (`kschedd node stop`): no sign of life, and its pods stay as they are
none       nobody simulates it: no Lease, and the node and its pods are what somebody states
"""

from typing import Final, Literal

from kschedd.api.objects import Object

KUBELET: Final = "kschedd.io/kubelet"
STOPPED: Final = "stopped"
NONE: Final = "none"
KubeletState = Literal["", "stopped", "none"]


def kubelet_state(node: Object) -> KubeletState:
    """ "" where it runs; so does one whose annotation says anything else than the two words."""
    found = (node.metadata.get("annotations") or {}).get(KUBELET)
    return STOPPED if found == STOPPED else NONE if found == NONE else ""


def kubelet_runs(node: Object) -> bool:
    return not kubelet_state(node)
