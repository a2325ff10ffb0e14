"""The controller of the status of ValidatingAdmissionPolicies: the results of type checking, and observedGeneration.

A policy is checked once for each generation, in steps. Owns nothing. Source: Kubernetes v1.37,
pkg/controller/validatingadmissionpolicystatus/controller.go.
"""

from collections.abc import Sequence
from functools import partial
from typing import Final

from kschedd.api.objects import Object
from kschedd.controllers.running.controller import InSteps, Reconciling, View
from kschedd.object_faults import FaultLedger
from kschedd.store.errors import ApiError
from kschedd.store.objects.log import DELETED, WatchEvent
from kschedd.store.writes import Write, status_of

_POLICY: Final = "ValidatingAdmissionPolicy"


class PolicyStatus(InSteps):
    name: Final = "validatingadmissionpolicy-status"
    field_manager: Final = "validatingadmissionpolicy-status-controller"
    kinds: Final = frozenset((_POLICY,))
    next_deadline: Final = None

    def __init__(self) -> None:
        self.faults: FaultLedger[list[Write]] = FaultLedger(self.name)

    def concerns(self, event: WatchEvent) -> bool:
        return event.type != DELETED and _is_unchecked(event.new)

    def reconciling(self, events: Sequence[WatchEvent], view: View, now: float) -> Reconciling:
        names = dict.fromkeys(("", event.new.name) for event in events if self.concerns(event))
        return (yield from self.faults.each_in_steps(_POLICY, names, partial(_check, view), now))

    def on_refused(self, write: Write, error: ApiError, view: View, now: float) -> list[Write]:
        """Return no writes, because the event of the conflicting change triggers the next reconcile."""
        return []


def _is_unchecked(policy: Object) -> bool:
    return (policy.metadata.get("generation") or 0) > (policy.status.get("observedGeneration") or 0)


def _check(view: View, namespace: str, name: str, now: float) -> Reconciling:
    policy = view.find(_POLICY, namespace, name)
    if policy is None or not _is_unchecked(policy):
        return []
    from kschedd.controllers.policy_types import expression_warnings  # imported here, because this imports CEL

    warnings = yield from expression_warnings(policy.raw, view)
    checking = {"expressionWarnings": warnings or None}  # None removes those of an earlier generation
    return [status_of(policy, {"observedGeneration": policy.metadata["generation"], "typeChecking": checking})]
