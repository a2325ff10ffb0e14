"""DeviceTaintRules: taints that an administrator adds to devices without changing their ResourceSlices.

A rule selects devices by driver, pool and name. An empty selector selects every device; a rule without a selector
selects no devices. The scheduler treats a selected device as if the rule's taint were in the device's slice, after the
taints in the slice.

Source: Kubernetes v1.37, dynamic-resource-allocation/resourceslice/tracker/tracker.go (applyPatches).
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import attrs

from kschedd.api.objects import Object, Raw, with_fields

KIND: Final = "DeviceTaintRule"


@attrs.frozen(eq=False)
class TaintedSlices:
    """ResourceSlices with the taints of rules; the result is the same object while slice and rules are unchanged."""

    _known: dict[str, tuple[Object, tuple[Object, ...], Object]] = attrs.field(factory=dict)  # by slice name

    def of(self, slices: Iterable[Object], rules: Iterable[Object]) -> Iterator[Object]:
        """Yield the slices with the taints of the rules, applied in the order of the rules' names."""
        ordered = sorted(rules, key=lambda rule: rule.name)
        for one in slices:
            concerned = tuple(rule for rule in ordered if _concerns(rule, one))
            if not concerned:
                self._known.pop(one.name, None)
                yield one
                continue
            known = self._known.get(one.name)
            if known is None or known[0] is not one or known[1] != concerned:
                known = self._known[one.name] = one, concerned, _tainted(one, concerned)
            yield known[2]


def changes_taints(slices: Iterable[Object], old: Object | None, new: Object | None) -> bool:
    """Return whether replacing a rule changes the taints of any device; None represents a missing rule."""
    for one in slices:
        before, after = (_rule_for(one, rule) for rule in (old, new))
        if before is None and after is None:
            continue
        for device in one.spec.get("devices") or ():
            if _given(before, device) != _given(after, device):
                return True
    return False


def _rule_for(one: Object, rule: Object | None) -> Object | None:
    return rule if rule is not None and _concerns(rule, one) else None


def _given(rule: Object | None, device: Raw) -> Raw | None:
    """Return the taint that the rule adds to the devices of the slice."""
    if rule is None or rule.spec["deviceSelector"].get("device") not in (None, device.get("name")):
        return None
    taint: Raw | None = rule.spec.get("taint")
    return taint or None


def _concerns(rule: Object, one: Object) -> bool:
    """Return whether the rule may select a device of the slice."""
    selector = rule.spec.get("deviceSelector")
    if selector is None:
        return False
    pool = (one.spec.get("pool") or {}).get("name")
    return selector.get("driver") in (None, one.spec.get("driver")) and selector.get("pool") in (None, pool)


def _tainted(one: Object, rules: Sequence[Object]) -> Object:
    devices = [_device(device, rules) for device in one.spec.get("devices") or ()]
    return Object.from_raw(with_fields(one.raw, "spec", devices=devices))


def _device(device: Raw, rules: Sequence[Object]) -> dict[str, Any]:
    given = [taint for rule in rules if (taint := _given(rule, device)) is not None]
    return {**device, "taints": [*(device.get("taints") or ()), *given]} if given else dict(device)
