"""LimitRanger: a namespace's LimitRanges set defaults for containers, and limit containers, pods and claims.

Source: Kubernetes v1.34, plugin/pkg/admission/limitranger/admission.go.
"""

from collections.abc import Hashable, Iterator, Mapping
from typing import Any, Final

from kschedd.api.quantity import MAX_INT64, milli_value, value
from kschedd.store.admission_plugins.attributes import Attributes, Classes, Raw
from kschedd.store.admission_plugins.quantities import Part, pod_total
from kschedd.store.errors import Forbidden

ANNOTATION: Final = "kubernetes.io/limit-ranger"
_LARGEST_IN_MILLIS: Final = MAX_INT64 // 1000
_GROUPS: Final = (("containers", "container"), ("initContainers", "init container"))
Quantities = Mapping[str, Any]


def scope(namespace: str, classes: Classes) -> Hashable:
    if not classes.present_in("LimitRange", namespace):
        return None
    return tuple((found.uid, found.resource_version) for found in classes.list("LimitRange", namespace))


def _limits(namespace: str, classes: Classes) -> Iterator[list[Raw]]:
    """Yield the limits in each LimitRange of the namespace."""
    for found in classes.list("LimitRange", namespace):
        yield found.spec.get("limits") or []


def admit(attributes: Attributes, raw: Raw, classes: Classes) -> Raw:
    """Add default requests and limits to the containers of a pod that is created or resized."""
    if not attributes.creates and attributes.subresource != "resize":
        return raw
    for limits in _limits(attributes.namespace, classes):
        containers = [limit for limit in limits if limit.get("type") == "Container"]
        defaults: dict[Part, dict[str, Any]] = {"requests": {}, "limits": {}}
        for limit in containers:
            defaults["requests"].update(limit.get("defaultRequest") or {})
            defaults["limits"].update(limit.get("default") or {})
        if defaults["requests"] or defaults["limits"]:
            raw = _with_defaults(raw, defaults)
    return raw


def _with_defaults(raw: Raw, defaults: Mapping[Part, Quantities]) -> Raw:
    spec, notes = dict(raw["spec"]), []
    for field, called in _GROUPS:
        if field not in spec:
            continue
        merged = []
        for container in spec[field] or ():
            changed, changes = _merged(container, defaults, called)
            merged.append(changed)
            notes += changes
        spec[field] = merged
    if not notes:
        return raw
    meta = dict(raw["metadata"])
    meta["annotations"] = {
        **(meta.get("annotations") or {}),
        ANNOTATION: "LimitRanger plugin set: " + "; ".join(notes),
    }
    return {**raw, "metadata": meta, "spec": spec}


def _merged(container: Raw, defaults: Mapping[Part, Quantities], called: str) -> tuple[Raw, list[str]]:
    resources, notes = dict(container.get("resources") or {}), []
    parts: tuple[tuple[Part, str], ...] = (("requests", "request"), ("limits", "limit"))
    for part, word in parts:
        own = resources.get(part) or {}
        missing = {name: quantity for name, quantity in defaults[part].items() if name not in own}
        if missing:
            resources[part] = {**own, **missing}
            notes.append(f"{', '.join(sorted(missing))} {word} for {called} {container.get('name') or ''}")
    return ({**container, "resources": resources} if notes else container), notes


def validate(attributes: Attributes, raw: Raw, old: Raw | None, classes: Classes) -> None:
    """Reject an object that exceeds a limit."""
    if attributes.kind == "Pod" and not attributes.creates and attributes.subresource != "resize":
        return
    if attributes.subresource not in ("", "resize") or ((old or {}).get("metadata") or {}).get("deletionTimestamp"):
        return
    for limits in _limits(attributes.namespace, classes):
        faults = list(dict.fromkeys(_faults(attributes.kind, raw["spec"], limits)))
        if faults:
            why = faults[0] if len(faults) == 1 else "[" + ", ".join(faults) + "]"
            raise Forbidden(attributes.kind, attributes.name, why)


def _faults(kind: str, spec: Raw, limits: list[Raw]) -> Iterator[str]:
    for limit in limits:
        about = limit.get("type")
        if kind == "PersistentVolumeClaim":
            if about == kind:
                yield from _claim_faults(limit, (spec.get("resources") or {}).get("requests") or {})
        elif about == "Container":
            for field, _ in _GROUPS:
                for container in spec.get(field) or ():
                    resources = container.get("resources") or {}
                    yield from _all_faults(limit, resources.get("requests") or {}, resources.get("limits") or {})
        elif about == "Pod":
            yield from _all_faults(limit, pod_total(spec, "requests"), pod_total(spec, "limits"))


def _all_faults(limit: Raw, requests: Quantities, limits: Quantities) -> Iterator[str]:
    about = limit["type"]
    for name, least in sorted((limit.get("min") or {}).items()):
        yield from _min_fault(about, name, least, requests.get(name), limits.get(name))
    for name, most in sorted((limit.get("max") or {}).items()):
        yield from _max_fault(about, name, most, requests.get(name), limits.get(name))
    for name, ratio in sorted((limit.get("maxLimitRequestRatio") or {}).items()):
        yield from _ratio_fault(about, name, ratio, requests.get(name), limits.get(name))


def _claim_faults(limit: Raw, requests: Quantities) -> Iterator[str]:
    about = limit["type"]
    for name, least in sorted((limit.get("min") or {}).items()):
        yield from _min_fault(about, name, least, requests.get(name), None)
    for name, most in sorted((limit.get("max") or {}).items()):
        bound = f"maximum {name} usage per {about} is {most}"
        if name not in requests:
            yield f"{bound}.  No request is specified"
        elif _greater(requests[name], most):
            yield f"{bound}, but request is {requests[name]}"


def _min_fault(about: str, name: str, least: Any, request: Any, limit: Any) -> Iterator[str]:
    bound = f"minimum {name} usage per {about} is {least}"
    if request is None:
        yield f"{bound}.  No request is specified"
    elif _greater(least, request):
        yield f"{bound}, but request is {request}"
    elif limit is not None and _greater(least, limit):
        yield f"{bound}, but limit is {limit}"


def _max_fault(about: str, name: str, most: Any, request: Any, limit: Any) -> Iterator[str]:
    bound = f"maximum {name} usage per {about} is {most}"
    if limit is None:
        yield f"{bound}.  No limit is specified"
    elif _greater(limit, most):
        yield f"{bound}, but limit is {limit}"
    elif request is not None and _greater(request, most):
        yield f"{bound}, but request is {request}"


def _ratio_fault(about: str, name: str, ratio: Any, request: Any, limit: Any) -> Iterator[str]:
    bound = f"{name} max limit to request ratio per {about} is {ratio}"
    read = _reader(ratio, 0 if request is None else request, 0 if limit is None else limit)
    if request is None or read(request) == 0:
        yield f"{bound}, but no request is specified or request is 0"
    elif limit is None or read(limit) == 0:
        yield f"{bound}, but no limit is specified or limit is 0"
    else:
        observed = read(limit) / read(request)
        exact = value(ratio) <= _LARGEST_IN_MILLIS
        if (observed * 1000 > milli_value(ratio)) if exact else (observed > value(ratio)):
            yield f"{bound}, but provided ratio is {observed:f}"


def _reader(*quantities: Any) -> Any:
    """Return a function that parses these quantities: in thousandths if they fit, otherwise in whole units."""
    return milli_value if all(value(each) <= _LARGEST_IN_MILLIS for each in quantities) else value


def _greater(one: Any, other: Any) -> bool:
    read = _reader(one, other)
    return bool(read(one) > read(other))
