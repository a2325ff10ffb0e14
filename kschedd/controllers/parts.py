"""Parts of the cluster that can be left out, for somebody else to play them."""

from collections.abc import Collection, Iterable, Mapping
from typing import Final, Literal

from kschedd.controllers.kubelets.heartbeats import Heartbeats
from kschedd.controllers.kubelets.kubelets import Kubelets
from kschedd.controllers.running.controller import Controller

Part = Literal["scheduler", "kubelets", "controllers"]
PARTS: Final[tuple[Part, ...]] = ("scheduler", "kubelets", "controllers")
_TELLS_OF_NODES: Final[frozenset[Part]] = frozenset(("kubelets", "controllers"))
_OF_KUBELETS: Final = (Kubelets, Heartbeats)


def admission_without(without: Collection[Part]) -> Mapping[str, bool]:
    """The admission plugins that are switched otherwise where these parts are left out.

    A new node bears the taint not-ready until its kubelet says that it is ready and a controller takes the taint away.
    Where both are simulated here that would be at once, so nobody is shown the taint; whoever plays either part is.
    """
    return {"TaintNodesByCondition": True} if not _TELLS_OF_NODES.isdisjoint(without) else {}


def without_parts(controllers: Iterable[Controller], without: Collection[str]) -> list[Controller]:
    """Those of the controllers that are left when these parts are left out."""
    return [
        each for each in controllers if ("kubelets" if isinstance(each, _OF_KUBELETS) else "controllers") not in without
    ]
