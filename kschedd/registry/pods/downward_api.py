"""Validation of the downward API: the fields and resources of a pod that its containers can read.

Source: Kubernetes v1.34, pkg/apis/core/validation/validation.go (validateObjectFieldSelector,
validateContainerResourceFieldSelector), pkg/apis/core/pods/helpers.go (ConvertDownwardAPIFieldLabel).
"""

import re
from collections.abc import Sequence
from typing import Any, Final

from kschedd.api.quantity import as_stored, nanos
from kschedd.api.schemas.fields import FieldError, invalid, required, unsupported
from kschedd.api.selecting.names import qualified_name

Raw = dict[str, Any]
Faults = list[FieldError]

_SUBSCRIPTED: Final = re.compile(r"(.*)\['([^']*)'\]", re.ASCII)
_KNOWN: Final = frozenset(
    "metadata.annotations metadata.labels metadata.name metadata.namespace metadata.uid spec.nodeName"
    " spec.restartPolicy spec.serviceAccountName spec.schedulerName status.phase status.hostIP status.hostIPs"
    " status.podIP status.podIPs".split()
)
_RESOURCES: Final = (
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
)
_HUGE: Final = ("limits.hugepages-", "requests.hugepages-")
_BYTES: Final = ("1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei")


def validate_field_ref(source: Raw, path: str, supported: Sequence[str], faults: Faults) -> None:
    version, field = source.get("apiVersion") or "", source.get("fieldPath") or ""
    if not version or not field:
        faults.append(required(f"{path}.{'fieldPath' if version else 'apiVersion'}"))
        return
    subscripted = _SUBSCRIPTED.fullmatch(field)
    name = subscripted.group(1) if subscripted else field
    if version != "v1":
        faults.append(_unconverted(path, field, f"unsupported pod version: {version}"))
    elif name not in _KNOWN and field != "spec.host":
        faults.append(_unconverted(path, field, f"field label not supported: {field}"))
    elif subscripted and name in ("metadata.annotations", "metadata.labels"):
        key = subscripted.group(2)
        checked = key.lower() if name == "metadata.annotations" else key
        faults += [invalid(path, key, why) for why in qualified_name(checked)]
    elif subscripted:
        faults.append(invalid(path, name, "does not support subscript"))
    elif field not in supported:
        faults.append(unsupported(f"{path}.fieldPath", field, supported))


def _unconverted(path: str, field: str, why: str) -> FieldError:
    return invalid(f"{path}.fieldPath", field, f"error converting fieldPath: {why}")


def validate_resource_ref(source: Raw, path: str, faults: Faults, *, volume: bool) -> None:
    name = source.get("resource") or ""
    if volume and not source.get("containerName"):
        faults.append(required(f"{path}.containerName"))
    elif not name:
        faults.append(required(f"{path}.resource"))
    elif name not in _RESOURCES and not name.startswith(_HUGE):
        faults.append(unsupported(f"{path}.resource", name, _RESOURCES))
    divisor = source.get("divisor")
    if divisor is None or not nanos(divisor):
        return
    text = as_stored(divisor)
    kind = name.partition(".")[2]
    if kind == "cpu" and text not in ("1m", "1"):
        why = "only divisor's values 1m and 1 are supported with the cpu resource"
        faults.append(invalid(f"{path}.divisor", name, why))
    elif (kind in ("memory", "ephemeral-storage") or name.startswith(_HUGE)) and text not in _BYTES:
        of = {"memory": "memory", "ephemeral-storage": "local ephemeral storage"}.get(kind, "hugepages")
        why = f"only divisor's values {', '.join(_BYTES)} are supported with the {of} resource"
        faults.append(invalid(f"{path}.divisor", name, why))
