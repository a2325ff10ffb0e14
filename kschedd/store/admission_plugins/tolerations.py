"""Merging of tolerations. Source: Kubernetes v1.34, pkg/util/tolerations/tolerations.go."""

from collections.abc import Sequence

from kschedd.api.selecting.terms import NO_EXECUTE
from kschedd.store.admission_plugins.attributes import Raw


def is_superset(wide: Raw, narrow: Raw) -> bool:
    """Whether `wide` tolerates all that `narrow` does."""
    if wide == narrow:
        return True
    exists = wide.get("operator") == "Exists"
    if (wide.get("key") or "") != (narrow.get("key") or "") and not (exists and not wide.get("key")):
        return False
    if wide.get("effect") and wide.get("effect") != narrow.get("effect"):
        return False
    if wide.get("effect") == NO_EXECUTE and wide.get("tolerationSeconds") is not None:
        seconds = narrow.get("tolerationSeconds")
        if seconds is None or seconds > wide["tolerationSeconds"]:
            return False
    if exists:
        return True
    same_value = (wide.get("value") or "") == (narrow.get("value") or "")
    return narrow.get("operator") == "Equal" and same_value  # one that leaves the operator open is covered by none


def merge_tolerations(first: Sequence[Raw], second: Sequence[Raw]) -> list[Raw]:
    """Both lists in order, without tolerations that another one covers; of equal ones the first stays."""
    together = [*first, *second]
    merged: list[Raw] = []
    for place, toleration in enumerate(together):
        if any(is_superset(kept, toleration) for kept in merged):
            continue
        if any(later != toleration and is_superset(later, toleration) for later in together[place + 1 :]):
            continue
        merged.append(toleration)
    return merged
