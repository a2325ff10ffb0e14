"""DefaultTolerationSeconds: pods stay for 300 s on a node that is not ready or is unreachable.

Source: Kubernetes v1.34, plugin/pkg/admission/defaulttolerationseconds/admission.go.
"""

from typing import Final

from kschedd.api.selecting.terms import NO_EXECUTE
from kschedd.store.admission_plugins.attributes import Attributes, Classes, Raw

NOT_READY: Final = "node.kubernetes.io/not-ready"
UNREACHABLE: Final = "node.kubernetes.io/unreachable"
DEFAULT_TOLERATION_SECONDS: Final = 300


def admit(attributes: Attributes, raw: Raw, classes: Classes) -> Raw:
    """Add a toleration for each of the two NoExecute taints that the pod does not tolerate already."""
    if attributes.subresource:
        return raw
    spec = raw["spec"]
    tolerations = spec.get("tolerations") or ()
    added = [
        {"key": key, "operator": "Exists", "effect": NO_EXECUTE, "tolerationSeconds": DEFAULT_TOLERATION_SECONDS}
        for key in (NOT_READY, UNREACHABLE)
        if not any(t.get("key") in (key, None, "") and t.get("effect") in (NO_EXECUTE, None, "") for t in tolerations)
    ]
    return {**raw, "spec": {**spec, "tolerations": [*tolerations, *added]}} if added else raw
