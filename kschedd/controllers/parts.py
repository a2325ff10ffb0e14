"""Parts of the cluster that can be left out, for somebody else to play them."""

from collections.abc import Collection, Iterable
from typing import Final, Literal

from kschedd.controllers.controller import Controller
from kschedd.controllers.kubelets.heartbeats import Heartbeats
from kschedd.controllers.kubelets.kubelets import Kubelets

Part = Literal["scheduler", "kubelets", "controllers"]
PARTS: Final[tuple[Part, ...]] = ("scheduler", "kubelets", "controllers")
_OF_KUBELETS: Final = (Kubelets, Heartbeats)


def without_parts(controllers: Iterable[Controller], without: Collection[Part]) -> list[Controller]:
    """Those of the controllers that are left when these parts are left out."""
    return [
        each for each in controllers if ("kubelets" if isinstance(each, _OF_KUBELETS) else "controllers") not in without
    ]
