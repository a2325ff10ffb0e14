"""PodTolerationRestriction: annotations of a namespace contain default tolerations and a whitelist for its pods.

Pods that are not BestEffort also tolerate the memory-pressure taint.
Source: Kubernetes v1.34, plugin/pkg/admission/podtolerationrestriction/admission.go.
"""

from collections.abc import Hashable
from typing import Any, Final

from kschedd.api.qos import qos_of_spec
from kschedd.api.schemas.unmarshal_errors import json_kind
from kschedd.api.selecting.terms import NO_SCHEDULE
from kschedd.api.text.json_errors import json_error
from kschedd.api.text.json_text import json_value
from kschedd.store.admission_plugins.attributes import Attributes, Classes, Raw, annotation_of
from kschedd.store.admission_plugins.tolerations import is_superset, merge_tolerations
from kschedd.store.errors import AdmissionError

MEMORY_PRESSURE: Final = "node.kubernetes.io/memory-pressure"
DEFAULTS: Final = "scheduler.alpha.kubernetes.io/defaultTolerations"
WHITELIST: Final = "scheduler.alpha.kubernetes.io/tolerationsWhitelist"
_CONFLICT: Final = (
    "pod tolerations (possibly merged with namespace default tolerations) conflict with its namespace whitelist"
)


def scope(namespace: str, classes: Classes) -> Hashable:
    texts = annotation_of(namespace, DEFAULTS, classes), annotation_of(namespace, WHITELIST, classes)
    return texts if any(texts) else None


def _listed(namespace: str, key: str, classes: Classes) -> list[Any]:
    text = annotation_of(namespace, key, classes)
    if not text:
        return []
    if wrong := json_error(text):
        raise AdmissionError(wrong)
    try:
        found = json_value(text)
    except ValueError as refusal:  # raised if an integer is too long for Python's parser
        raise AdmissionError(str(refusal)) from None
    if found is None:
        return []
    if not isinstance(found, list):
        raise AdmissionError(f"json: cannot unmarshal {json_kind(found)} into Go value of type []v1.Toleration")
    for each in found:
        if each is not None and not isinstance(each, dict):
            raise AdmissionError(f"json: cannot unmarshal {json_kind(each)} into Go value of type v1.Toleration")
    return [each or {} for each in found]


def admit(attributes: Attributes, raw: Raw, classes: Classes) -> Raw:
    if attributes.subresource:
        return raw
    spec = raw["spec"]
    before = list(spec.get("tolerations") or ())
    added = _listed(attributes.namespace, DEFAULTS, classes) if attributes.creates else []
    if qos_of_spec(spec) != "BestEffort":
        added = [*added, {"key": MEMORY_PRESSURE, "operator": "Exists", "effect": NO_SCHEDULE}]
    tolerations = merge_tolerations(before, added) if added else before
    if tolerations != before:
        raw = {**raw, "spec": {**spec, "tolerations": tolerations}}
    validate(attributes, raw, None, classes)
    return raw


def validate(attributes: Attributes, raw: Raw, old: Raw | None, classes: Classes) -> None:
    tolerations = raw["spec"].get("tolerations")
    if not tolerations or attributes.subresource:
        return
    allowed = _listed(attributes.namespace, WHITELIST, classes)
    if allowed and not all(any(is_superset(each, toleration) for each in allowed) for toleration in tolerations):
        raise AdmissionError(_CONFLICT)
