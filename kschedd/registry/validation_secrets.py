"""Validation of Secrets: the required contents of each type.

Source: Kubernetes v1.34, pkg/apis/core/validation/validation.go (ValidateSecret).
The functions require objects that match the schema and have their defaults, and append errors to `faults`.
"""

import base64
from collections.abc import Mapping
from typing import Any, Final

from kschedd.api.schemas.fields import FieldError, invalid, required
from kschedd.api.text.json_errors import json_error
from kschedd.registry.pods.containers import config_key_faults

Raw = dict[str, Any]
Faults = list[FieldError]

_MOST: Final = 1 << 20  # bytes
_ACCOUNT: Final = "kubernetes.io/service-account.name"
_DOCKER: Final[Mapping[str, str]] = {
    "kubernetes.io/dockercfg": ".dockercfg",
    "kubernetes.io/dockerconfigjson": ".dockerconfigjson",
}
_LOGIN: Final = ("username", "password")
_HIDDEN: Final = "<secret contents redacted>"
_SHAPES: Final[Mapping[str, str]] = {"{": "", "n": "", "[": "array", '"': "string", "t": "bool", "f": "bool"}
"""The type of a JSON value by its first character; "" if it may be decoded into a map, as null may."""


def validate_secret(item: Raw, faults: Faults) -> None:
    data = item.get("data") or {}
    for key in data:
        faults += [invalid(f"data[{key}]", key, why) for why in config_key_faults(key)]
    if sum(len(value) * 3 // 4 - value.count("=") for value in data.values()) > _MOST:
        faults.append(FieldError("data", None, f"Too long: may not be more than {_MOST} bytes"))
    kind = item.get("type")
    if kind == "kubernetes.io/service-account-token":
        if not ((item.get("metadata") or {}).get("annotations") or {}).get(_ACCOUNT):
            faults.append(required(f"metadata.annotations[{_ACCOUNT}]"))
    elif (key := _DOCKER.get(kind or "")) is not None:
        _validate_docker(data, key, faults)
    elif kind == "kubernetes.io/basic-auth":
        if not any(key in data for key in _LOGIN):
            faults += [required(f"data[{key}]") for key in _LOGIN]
    elif kind == "kubernetes.io/ssh-auth":
        if not data.get("ssh-privatekey"):
            faults.append(required("data[ssh-privatekey]"))
    elif kind == "kubernetes.io/tls":
        faults += [required(f"data[{key}]") for key in ("tls.crt", "tls.key") if key not in data]


def _validate_docker(data: Raw, key: str, faults: Faults) -> None:
    """Validate registry credentials, which are a map in JSON."""
    if key not in data:
        faults.append(required(f"data[{key}]"))
        return
    text = base64.b64decode(data[key]).decode(errors="replace")
    if why := json_error(text):
        faults.append(invalid(f"data[{key}]", _HIDDEN, why))
        return
    shape = _SHAPES.get(text.lstrip()[0], "number")
    if shape:
        why = f"json: cannot unmarshal {shape} into Go value of type map[string]interface {{}}"
        faults.append(invalid(f"data[{key}]", _HIDDEN, why))
