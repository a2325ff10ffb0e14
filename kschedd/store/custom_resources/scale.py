"""The scale subresource of custom resources: the definition sets the field paths of replicas and selector.

Source: Kubernetes v1.34, apiextensions-apiserver/pkg/registry/customresource (validator.go, etcd.go).
Raises: ScaleUnreadable; NoScale.
"""

from collections.abc import Mapping
from typing import Any, Final

import attrs

from kschedd.api.schemas.fields import FieldError, invalid
from kschedd.errors import KscheddError
from kschedd.store.patches.strategic_merge import go_text, go_type

Raw = Mapping[str, Any]

MOST_REPLICAS: Final = 2**31 - 1
SCALABLE: Final = ("Deployment", "ReplicaSet", "ReplicationController", "StatefulSet")


@attrs.define(eq=False)
class ScaleUnreadable(KscheddError):
    """The value at a scale path has the wrong type."""

    why: str

    def __str__(self) -> str:
        return self.why


@attrs.define(eq=False)
class NoScale(KscheddError, rpc_code="invalid"):
    """The kind of the object cannot be scaled."""

    kind: str

    def __str__(self) -> str:
        allowed = f"{', '.join(SCALABLE)}, custom resources whose definition has the subresource scale"
        return f"cannot scale a {self.kind}; allowed: {allowed}"


@attrs.frozen
class ScalePaths:
    """The field paths of a scale, such as `.spec.replicas`; `selector` is empty without a selector."""

    replicas: str = ".spec.replicas"
    status_replicas: str = ".status.replicas"
    selector: str = ""


def scale_paths(version: Raw) -> ScalePaths | None:
    """Return the scale paths in a version of a definition (from `version_of`); None if the version has no scale."""
    scale = (version.get("subresources") or {}).get("scale")
    if scale is None:
        return None
    fields = ("specReplicasPath", "statusReplicasPath", "labelSelectorPath")
    replicas, status_replicas, selector = (scale.get(field) or "" for field in fields)
    return ScalePaths(replicas, status_replicas, selector)


def steps_of(path: str) -> list[str]:
    return path.removeprefix(".").split(".")


def integer_at(raw: Raw, path: str) -> int | None:
    """Return the integer at the path; None if it is absent. Raises ScaleUnreadable."""
    found, value = _value_at(raw, path)
    if not found:
        return None
    if type(value) is not int:
        raise _not_a(path, value, "int64")
    return value


def text_at(raw: Raw, path: str) -> str:
    """Return the text at the path; "" if the path is empty or the text is absent or empty. Raises ScaleUnreadable."""
    found, value = _value_at(raw, path) if path else (False, None)
    if not found:
        return ""
    if not isinstance(value, str):
        raise _not_a(path, value, "string")
    return value


def with_integer(path: str, value: int) -> dict[str, Any]:
    """Return the merge patch that sets the value at the path."""
    made: Any = value
    for step in reversed(steps_of(path)):
        made = {step: made}
    return dict(made)


def scale_faults(paths: ScalePaths, raw: Raw, *, spec: bool) -> list[FieldError]:
    """Return the errors in the scale of an object; with `spec`, also check the replicas."""
    numbers = [paths.replicas, paths.status_replicas] if spec else [paths.status_replicas]
    faults = [fault for path in numbers for fault in _number_faults(raw, path)]
    try:
        text_at(raw, paths.selector)
    except ScaleUnreadable as wrong:
        faults.append(invalid(paths.selector, "", wrong.why))
    return faults


def _number_faults(raw: Raw, path: str) -> list[FieldError]:
    try:
        replicas = integer_at(raw, path) or 0
    except ScaleUnreadable as wrong:
        return [invalid(path, 0, wrong.why)]
    if replicas < 0:
        return [invalid(path, replicas, "should be a non-negative integer")]
    if replicas > MOST_REPLICAS:
        return [invalid(path, replicas, f"should be less than or equal to {MOST_REPLICAS}")]
    return []


def _value_at(raw: Raw, path: str) -> tuple[bool, Any]:
    """Return whether there is a value at the path, and the value."""
    value: Any = raw
    steps = steps_of(path)
    for number, step in enumerate(steps):
        if value is None:
            return False, None
        if not isinstance(value, Mapping):
            raise _not_a(".".join(("", *steps[: number + 1])), value, "map[string]interface{}")
        if step not in value:
            return False, None
        value = value[step]
    return True, value


def _not_a(path: str, value: Any, wanted: str) -> ScaleUnreadable:
    return ScaleUnreadable(
        f".{path.removeprefix('.')} accessor error: {go_text(value)} is of the type {go_type(value)}, expected {wanted}"
    )
