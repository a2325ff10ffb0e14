"""ExtendedResourceToleration: a pod that requests `example.com/device` tolerates the taint of that name.

Source: Kubernetes v1.34, plugin/pkg/admission/extendedresourcetoleration/admission.go.
"""

from kschedd.api.selecting.resource_names import is_extended
from kschedd.store.admission_plugins.attributes import Attributes, Classes, Raw


def admit(attributes: Attributes, raw: Raw, classes: Classes) -> Raw:
    if attributes.subresource:
        return raw
    spec = raw["spec"]
    containers = (*(spec.get("containers") or ()), *(spec.get("initContainers") or ()))
    names = {name for c in containers for name in (c.get("resources") or {}).get("requests") or ()}
    tolerations = list(spec.get("tolerations") or ())
    for name in sorted(filter(is_extended, names)):
        wanted = {"key": name, "operator": "Exists", "effect": "NoSchedule"}
        if wanted not in tolerations:
            tolerations.append(wanted)
    if len(tolerations) == len(spec.get("tolerations") or ()):
        return raw
    return {**raw, "spec": {**spec, "tolerations": tolerations}}
