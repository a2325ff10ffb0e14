"""Validation of file paths within volumes.

Source: Kubernetes v1.34, pkg/apis/core/validation/validation.go (validateLocalDescendingPath, validatePathNoBacksteps,
validateLocalNonReservedPath).
"""

from kschedd.api.schemas.fields import FieldError, invalid

Faults = list[FieldError]


def with_backsteps(path: str) -> bool:
    return ".." in path.split("/")


def validate_no_backsteps(path: str, where: str, faults: Faults) -> None:
    if with_backsteps(path):
        faults.append(invalid(where, path, "must not contain '..'"))


def validate_descending(path: str, where: str, faults: Faults) -> None:
    if path.startswith("/"):
        faults.append(invalid(where, path, "must be a relative path"))
    validate_no_backsteps(path, where, faults)


def validate_not_reserved(path: str, where: str, faults: Faults) -> None:
    """A relative path that does not begin with two dots, which the kubelet uses for its own files."""
    validate_descending(path, where, faults)
    if path.startswith("..") and not path.startswith("../"):
        faults.append(invalid(where, path, "must not start with '..'"))
