"""Parts of the cluster that can be disabled, so that another program can do their work."""

from collections.abc import Collection, Iterable, Mapping
from typing import Final, Literal

from kschedd.controllers.descheduling import Descheduler
from kschedd.controllers.kubelets.heartbeats import Heartbeats
from kschedd.controllers.kubelets.kubelets import Kubelets
from kschedd.controllers.running.controller import Controller
from kschedd.controllers.scaling.node_pools import NodePools

Part = Literal["scheduler", "kubelets", "controllers"]
PARTS: Final[tuple[Part, ...]] = ("scheduler", "kubelets", "controllers")
_WATCHES_NODES: Final[frozenset[Part]] = frozenset(("kubelets", "controllers"))
_OF_KUBELETS: Final = (Kubelets, Heartbeats)


def admission_without(without: Collection[Part]) -> Mapping[str, bool]:
    """Return the admission plugins to enable or disable if these parts are disabled.

    A new node has the taint not-ready until its kubelet reports Ready and a controller removes the taint. If both are
    simulated, the taint would be removed immediately, so it is not added. If another program replaces the kubelets or
    the controller, the taint is added.
    """
    return {"TaintNodesByCondition": True} if not _WATCHES_NODES.isdisjoint(without) else {}


def field_manager(controller: Controller) -> str:
    """Return the field manager of this controller's writes: its own name, or in a real cluster its program's name."""
    own: str | None = getattr(controller, "field_manager", None)
    if own is not None:
        return own
    return "kubelet" if isinstance(controller, _OF_KUBELETS) else "kube-controller-manager"


def without_parts(controllers: Iterable[Controller], without: Collection[str]) -> list[Controller]:
    """Return the controllers that remain if these parts are disabled."""
    return [each for each in controllers if _part_of(each) not in without]


def _part_of(controller: Controller) -> Part | None:
    """Return the part to which the controller belongs; None for the descheduler and the autoscaler."""
    if isinstance(controller, Descheduler | NodePools):
        return None
    return "kubelets" if isinstance(controller, _OF_KUBELETS) else "controllers"
