"""TaintNodesByCondition: a new node gets the not-ready taint; a controller removes it when the node is ready.

Source: Kubernetes v1.34, plugin/pkg/admission/nodetaint/admission.go.
"""

from kschedd.api.selecting.terms import NO_SCHEDULE
from kschedd.store.admission_plugins.attributes import Attributes, Classes, Raw
from kschedd.store.admission_plugins.defaulttolerationseconds import NOT_READY


def admit(attributes: Attributes, raw: Raw, classes: Classes) -> Raw:
    if not attributes.creates:
        return raw
    spec = raw.get("spec") or {}
    taints = spec.get("taints") or []
    if any(taint.get("key") == NOT_READY and taint.get("effect") == NO_SCHEDULE for taint in taints):
        return raw
    return {**raw, "spec": {**spec, "taints": [*taints, {"key": NOT_READY, "effect": NO_SCHEDULE}]}}
