"""The limits of a HorizontalPodAutoscaler: stabilization windows, scaling policies, and the range of replicas.

Owns the recent recommendations and changes of one autoscaler. Source: Kubernetes v1.37,
controller/podautoscaler/horizontal.go (normalizeDesiredReplicas and the functions that it calls).
"""

import math
from collections.abc import Mapping
from typing import Any, Final

import attrs

Raw = Mapping[str, Any]
_WINDOW_S: Final = 300.0
_WITHIN: Final = ("DesiredWithinRange", "the desired count is within the acceptable range")
_TOO_MANY: Final = ("TooManyReplicas", "the desired replica count is more than the maximum replica count")
_TOO_FEW: Final = ("TooFewReplicas", "the desired replica count is less than the minimum replica count")
_TOO_FAST_UP: Final = ("ScaleUpLimit", "the desired replica count is increasing faster than the maximum scale rate")
_TOO_FAST_DOWN: Final = ("ScaleDownLimit", "the desired replica count is decreasing faster than the maximum scale rate")
_READY: Final = ("ReadyForNewScale", "recommended size matches current size")
_UP: Final = (
    "ScaleUpStabilized",
    "recent recommendations were lower than current one, applying the lowest recent recommendation",
)
_DOWN: Final = (
    "ScaleDownStabilized",
    "recent recommendations were higher than current one, applying the highest recent recommendation",
)


@attrs.frozen
class Limited:
    """The number of replicas after all limits, with the conditions AbleToScale and ScalingLimited."""

    replicas: int
    able: tuple[str, str]  # reason and message
    limited: bool
    why: tuple[str, str]


@attrs.define(eq=False)
class History:
    recommendations: tuple[tuple[float, int], ...] = ()  # times and replicas
    changes: tuple[tuple[float, int], ...] = ()  # times and differences; negative: scaled down

    def note_change(self, before: int, after: int, behavior: Raw, now: float) -> None:
        rules = (behavior.get("scaleUp") or {}, behavior.get("scaleDown") or {})
        periods = [each.get("periodSeconds") or 0 for rule in rules for each in rule.get("policies") or ()]
        oldest = now - max(periods, default=0)
        self.changes = (*((at, change) for at, change in self.changes if at > oldest), (now, after - before))

    def limit(self, current: int, desired: int, least: int, most: int, behavior: Raw | None, now: float) -> Limited:
        """Return the number of replicas to set, and remember the recommendation."""
        if not self.recommendations:
            self.recommendations = ((now, current),)
        up_s, down_s = 0.0, _WINDOW_S
        if behavior is not None:
            up_s = (behavior.get("scaleUp") or {}).get("stabilizationWindowSeconds") or 0
            stated = (behavior.get("scaleDown") or {}).get("stabilizationWindowSeconds")
            down_s = _WINDOW_S if stated is None else stated
        lowest = min([desired, *(number for at, number in self.recommendations if at > now - up_s)])
        highest = max([desired, *(number for at, number in self.recommendations if at > now - down_s)])
        stable = highest if behavior is None else min(max(current, lowest), highest)
        longest = max(up_s, down_s)
        recent = ((at, number) for at, number in self.recommendations if at > now - longest)
        self.recommendations = (*recent, (now, desired))
        able = _READY if stable == desired else _UP if behavior is not None and desired >= current else _DOWN
        if behavior is None:
            replicas, why = _ranged(current, stable, least, most)
        else:
            replicas, why = self._within_rates(current, stable, least, most, behavior, now)
        return Limited(replicas, able, replicas != stable, why)

    def _within_rates(
        self, current: int, desired: int, least: int, most: int, behavior: Raw, now: float
    ) -> tuple[int, tuple[str, str]]:
        if desired > current:
            rate = max(current, self._rate(current, behavior.get("scaleUp") or {}, 1, now))
            allowed, why = (rate, _TOO_FAST_UP) if most > rate else (most, _TOO_MANY)
            if desired > allowed:
                return allowed, why
        elif desired < current:
            rate = min(current, self._rate(current, behavior.get("scaleDown") or {}, -1, now))
            allowed, why = (rate, _TOO_FAST_DOWN) if least < rate else (least, _TOO_FEW)
            if desired < allowed:
                return allowed, why
        return desired, _WITHIN

    def _rate(self, current: int, rules: Raw, sign: int, now: float) -> int:
        """Return the number of replicas that the policies of one direction (sign 1: up, -1: down) allow now."""
        if rules.get("selectPolicy") == "Disabled":
            return current
        proposed = []
        for policy in rules.get("policies") or ():
            oldest = now - (policy.get("periodSeconds") or 0)
            start = current - sum(change for at, change in self.changes if at > oldest)
            value = int(policy.get("value") or 0)
            if policy.get("type") == "Pods":
                proposed.append(start + sign * value)
            elif sign > 0:
                proposed.append(math.ceil(start * (100 + value) / 100))
            else:
                proposed.append(int(start * (100 - value) / 100))
        if not proposed:
            return current
        farthest = (rules.get("selectPolicy") or "Max") == "Max"
        return max(proposed) if farthest == (sign > 0) else min(proposed)


def _ranged(current: int, desired: int, least: int, most: int) -> tuple[int, tuple[str, str]]:
    rate = max(2 * current, 4)
    allowed, why = (rate, _TOO_FAST_UP) if most > rate else (most, _TOO_MANY)
    if desired < least:
        return least, _TOO_FEW
    return (allowed, why) if desired > allowed else (desired, _WITHIN)
