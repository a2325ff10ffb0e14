"""Status conditions: lookup, and updates by the rules of the API's helper functions."""

from collections.abc import Sequence

from kschedd.api.objects import Raw


def condition(status: Raw, type_: str) -> Raw | None:
    for found in status.get("conditions") or ():
        if found.get("type") == type_:
            entry: Raw = found
            return entry
    return None


def is_true(status: Raw, type_: str) -> bool:
    found = condition(status, type_)
    return found is not None and found.get("status") == "True"


def with_condition(conditions: Sequence[Raw] | None, wanted: Raw, at: str) -> list[Raw]:
    """Return the conditions with `wanted` set; lastTransitionTime becomes `at` only if the status changes."""
    replaced: list[Raw] = []
    placed = False
    for found in conditions or ():
        if found.get("type") != wanted["type"]:
            replaced.append(found)
            continue
        same = found.get("status") == wanted["status"]
        since = (found.get("lastTransitionTime") or at) if same else at
        replaced.append({**wanted, "lastTransitionTime": since})
        placed = True
    if not placed:
        replaced.append({**wanted, "lastTransitionTime": at})
    return replaced
