"""Merging of tolerations. Source: Kubernetes v1.34, pkg/util/tolerations/tolerations.go."""

import math
from collections.abc import Sequence

from kschedd.api.selecting.terms import NO_EXECUTE
from kschedd.store.admission_plugins.attributes import Raw

_Place = tuple[str, str | None, str]  # key, value (None: any), effect


def is_superset(wide: Raw, narrow: Raw) -> bool:
    """Return whether `wide` tolerates every taint that `narrow` tolerates."""
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
    return narrow.get("operator") == "Equal" and same_value  # without an operator, only an equal toleration is covered


class _Covered:
    """An index of tolerations by key, value and effect.

    Tolerations that differ only in tolerationSeconds share one entry, with the longest time.
    """

    def __init__(self) -> None:
        # for each place: the longest time, the toleration with this time, and the second-longest time
        self._longest: dict[_Place, tuple[float, Raw, float]] = {}

    def add(self, wide: Raw) -> None:
        value = None if wide.get("operator") == "Exists" else wide.get("value") or ""
        place = wide.get("key") or "", value, wide.get("effect") or ""
        seconds = wide.get("tolerationSeconds") if wide.get("effect") == NO_EXECUTE else None
        time = math.inf if seconds is None else seconds
        longest, whose, others = self._longest.setdefault(place, (time, wide, -math.inf))
        if wide != whose:
            more = (time, wide, longest) if time > longest else (longest, whose, max(others, time))
            self._longest[place] = more

    def has(self, narrow: Raw) -> bool:
        """Return whether another toleration in the index covers this toleration."""
        key, effect, seconds = narrow.get("key") or "", narrow.get("effect") or "", narrow.get("tolerationSeconds")
        needed = math.inf if seconds is None else seconds
        values: list[tuple[str, str | None]] = [("", None), (key, None)]
        if narrow.get("operator") == "Equal":
            values.append((key, narrow.get("value") or ""))
        for of_key, value in values:
            for of_effect in ("", effect):
                if (found := self._longest.get((of_key, value, of_effect))) is not None:
                    time, whose, others = found
                    if (others if whose == narrow else time) >= needed:
                        return True
        return False


def merge_tolerations(first: Sequence[Raw], second: Sequence[Raw]) -> list[Raw]:
    """Return both lists in order, without tolerations that another toleration covers and without duplicates."""
    later, left = _Covered(), []
    for toleration in (*reversed(second), *reversed(first)):
        if not later.has(toleration):
            left.append(toleration)
        later.add(toleration)
    before, merged = _Covered(), {}
    for toleration in reversed(left):
        same = frozenset(toleration.items())
        if same not in merged and not before.has(toleration):
            merged[same] = toleration
            before.add(toleration)
    return [*merged.values()]
