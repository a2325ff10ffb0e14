"""RuntimeClass: adds the overhead, node selector and tolerations of the RuntimeClass to the pods that refer to it.

Source: Kubernetes v1.34, plugin/pkg/admission/runtimeclass/admission.go.
"""

from typing import Any

from kschedd.api.objects import Object
from kschedd.api.selecting.names import path_segment
from kschedd.store.admission_plugins.attributes import Attributes, Classes, Raw
from kschedd.store.admission_plugins.tolerations import merge_tolerations
from kschedd.store.errors import AdmissionError, Forbidden


def _class_of(attributes: Attributes, spec: Raw, classes: Classes) -> Object | None:
    name = spec.get("runtimeClassName")
    if name:
        _check_name(name)
    found = classes.find("RuntimeClass", "", name) if name else None
    if name and found is None:
        raise Forbidden("Pod", attributes.name, f'pod rejected: RuntimeClass "{name}" not found')
    return found


def _check_name(name: str) -> None:
    """Raise an error if the class name is invalid in a request path, because upstream reads the class by its path."""
    if wrong := path_segment(name):
        raise AdmissionError(f'invalid resource name "{name}": [{" ".join(wrong)}]')


def _overhead_of(found: Object | None) -> Any:
    return None if found is None else (found.raw.get("overhead") or {}).get("podFixed") or None


def admit(attributes: Attributes, raw: Raw, classes: Classes) -> Raw:
    if not attributes.creates:
        return raw
    spec = raw["spec"]
    found = _class_of(attributes, spec, classes)
    if found is None:
        return raw
    admitted = dict(spec)
    if fixed := _overhead_of(found):
        if spec.get("overhead", fixed) != fixed:
            why = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"
            raise Forbidden("Pod", attributes.name, why)
        admitted["overhead"] = fixed
    scheduling = found.raw.get("scheduling") or {}
    if wanted := scheduling.get("nodeSelector"):
        selector = dict(spec.get("nodeSelector") or {})
        for key, value in wanted.items():
            if selector.get(key, value) != value:
                why = (
                    f"conflict: runtimeClass.scheduling.nodeSelector[{key}] = {value}; "
                    f"pod.spec.nodeSelector[{key}] = {selector[key]}"
                )
                raise Forbidden("Pod", attributes.name, why)
            selector[key] = value
        admitted["nodeSelector"] = selector
    if more := scheduling.get("tolerations"):
        admitted["tolerations"] = merge_tolerations(spec.get("tolerations") or (), more)
    return {**raw, "spec": admitted}


def validate(attributes: Attributes, raw: Raw, old: Raw | None, classes: Classes) -> None:
    """Reject a pod with an overhead that differs from the overhead of its RuntimeClass."""
    if not attributes.creates or "overhead" not in raw["spec"]:
        return
    if not _overhead_of(_class_of(attributes, raw["spec"], classes)):
        why = "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"
        raise Forbidden("Pod", attributes.name, why)
