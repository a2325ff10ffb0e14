"""PodNodeSelector: an annotation of the namespace restricts its pods to nodes with certain labels.

Source: Kubernetes v1.34, plugin/pkg/admission/podnodeselector/admission.go; apimachinery/pkg/labels/labels.go.
"""

from collections.abc import Hashable, Mapping
from typing import Final

from kschedd.api.schemas.fields import invalid
from kschedd.api.selecting.names import label_value, qualified_name
from kschedd.store.admission_plugins.attributes import Attributes, Classes, Raw, annotation_of
from kschedd.store.errors import AdmissionError, Forbidden

SELECTOR: Final = "scheduler.alpha.kubernetes.io/node-selector"


def scope(namespace: str, classes: Classes) -> Hashable:
    return annotation_of(namespace, SELECTOR, classes)


def _selector(text: str | None) -> Mapping[str, str]:
    """Parse a selector such as `env=dev,disk=ssd` into labels."""
    found: dict[str, str] = {}
    for part in (text or "").split(",") if text else ():
        pair = part.split("=")
        if len(pair) != 2:
            raise AdmissionError(f"invalid selector: [{' '.join(pair)}]")
        key, value = pair[0].strip(), pair[1].strip()
        if wrong := qualified_name(key):
            raise AdmissionError(str(invalid("<nil>", key, "; ".join(wrong))))
        if wrong := label_value(value):
            raise AdmissionError(str(invalid(f"[{key}]", value, "; ".join(wrong))))
        found[key] = value
    return found


def admit(attributes: Attributes, raw: Raw, classes: Classes) -> Raw:
    if not attributes.creates:
        return raw
    wanted = _selector(annotation_of(attributes.namespace, SELECTOR, classes))
    if not wanted:
        return raw
    own = raw["spec"].get("nodeSelector") or {}
    if any(own.get(key, value) != value for key, value in wanted.items()):
        why = "pod node label selector conflicts with its namespace node label selector"
        raise Forbidden("Pod", attributes.name, why)
    return {**raw, "spec": {**raw["spec"], "nodeSelector": {**wanted, **own}}}
