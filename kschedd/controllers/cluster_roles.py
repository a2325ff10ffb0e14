"""The controller of ClusterRoles with an aggregationRule: it writes the rules of the selected ClusterRoles into them.

If aggregated roles aggregate other aggregated roles, the rules are complete after several reconciles: each write
triggers the next reconcile.

Owns nothing. Source: Kubernetes v1.34, pkg/controller/clusterroleaggregation/clusterroleaggregation_controller.go.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any, Final

from kschedd.api.selecting.selectors import SelectorError, parse_label_selector
from kschedd.controllers.running.controller import View
from kschedd.object_faults import FaultLedger
from kschedd.store.errors import ApiError
from kschedd.store.objects.log import WatchEvent
from kschedd.store.writes import Write, patch_of

_KIND: Final = "ClusterRole"


class ClusterRoleAggregation:
    name: Final = "clusterrole-aggregation"
    field_manager: Final = "clusterrole-aggregation-controller"
    kinds: Final = frozenset((_KIND,))
    next_deadline: Final = None

    def __init__(self) -> None:
        self.faults: FaultLedger[list[Write]] = FaultLedger(self.name)

    def reconcile(self, events: Sequence[WatchEvent], view: View, now: float) -> list[Write]:
        aggregated = [("", role.name) for role in view.list(_KIND) if role.raw.get("aggregationRule")]
        return self.faults.each(_KIND, aggregated, partial(_aggregate, view), now)

    def on_refused(self, write: Write, error: ApiError, view: View, now: float) -> list[Write]:
        """Return no writes, because the event of the conflicting change triggers the next reconcile."""
        return []


def _aggregate(view: View, namespace: str, name: str, now: float) -> list[Write]:
    role = view.find(_KIND, namespace, name)
    if role is None or role.deleting:
        return []
    rules: list[Any] = []
    for selector in (role.raw.get("aggregationRule") or {}).get("clusterRoleSelectors") or ():
        try:
            wanted = parse_label_selector(selector)
        except SelectorError:  # upstream writes nothing if a selector is invalid
            return []
        for other in view.list(_KIND, None, wanted):
            if other.name != name:
                rules += [rule for rule in other.raw.get("rules") or () if rule not in rules]
    return [] if rules == list(role.raw.get("rules") or ()) else [patch_of(role, {"rules": rules}, exactly=True)]
