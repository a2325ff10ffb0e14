"""Built-in namespaces: a deleted namespace is created again, as by kube-apiserver.

Only kube-node-lease can be deleted at all. Without kube-node-lease no kubelet could renew its Lease, and all nodes
would become Unknown. Source: Kubernetes v1.34, pkg/controlplane/controller/systemnamespaces.

Owns nothing.
"""

from collections.abc import Sequence
from typing import Final

from kschedd.controllers.running.controller import View
from kschedd.object_faults import FaultLedger
from kschedd.store.built_in import BUILT_IN_NAMESPACES
from kschedd.store.errors import ApiError
from kschedd.store.objects.log import WatchEvent
from kschedd.store.writes import Create, Write


class SystemNamespaces:
    name: Final = "system-namespaces"
    kinds: Final = frozenset(("Namespace",))
    next_deadline: Final = None

    def __init__(self) -> None:
        self.faults: FaultLedger[list[Write]] = FaultLedger(self.name)

    def reconcile(self, events: Sequence[WatchEvent], view: View, now: float) -> list[Write]:
        missing = [name for name in BUILT_IN_NAMESPACES if view.find("Namespace", "", name) is None]
        return [Create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}) for name in missing]

    def on_refused(self, write: Write, error: ApiError, view: View, now: float) -> list[Write]:
        """Return no writes, because the namespace already exists."""
        return []
