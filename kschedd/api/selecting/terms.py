"""Affinity terms, tolerations, taints and spread constraints of a pod's spec.

All terms are frozen and hashable, so that equal values can share one cached result. Source: Kubernetes v1.34,
api/core/v1/types.go and scheduler/framework/types.go (AffinityTerm).
"""

from collections.abc import Mapping
from typing import Any

import attrs

from kschedd.api.selecting.selectors import LabelSelector, parse_label_selector

Raw = Mapping[str, Any]

NO_SCHEDULE = "NoSchedule"
PREFER_NO_SCHEDULE = "PreferNoSchedule"
NO_EXECUTE = "NoExecute"


@attrs.frozen
class Taint:
    key: str
    value: str
    effect: str

    def __str__(self) -> str:
        return f"{{{self.key}: {self.value}}}"

    @property
    def shown(self) -> str:
        """The taint in kubectl's notation, such as `dedicated=gpu:NoSchedule`."""
        return f"{self.key}{f'={self.value}' if self.value else ''}:{self.effect}"


@attrs.frozen(cache_hash=True)
class Toleration:
    key: str
    operator: str  # "Exists" or "Equal"
    value: str
    effect: str  # "" tolerates every effect
    seconds: int | None

    def tolerates(self, taint: Taint) -> bool:
        if self.effect and self.effect != taint.effect:
            return False
        if self.key and self.key != taint.key:
            return False
        return self.operator == "Exists" or (self.operator == "Equal" and self.value == taint.value)


@attrs.frozen(cache_hash=True)
class PodAffinityTerm:
    """One term of pod affinity or anti-affinity, with the namespaces to which it applies for its pod.

    The term applies to pods in `namespaces`, and to pods in namespaces whose labels `namespace_selector` matches.
    """

    selector: LabelSelector
    topology_key: str
    namespaces: frozenset[str]
    namespace_selector: LabelSelector | None  # None if only `namespaces` apply

    def matches(self, namespace: str, labels: Mapping[str, str], namespace_labels: Mapping[str, str]) -> bool:
        """Return whether the term matches a pod with these labels; `namespace_labels` are those of its namespace."""
        if namespace not in self.namespaces and (
            self.namespace_selector is None or not self.namespace_selector.matches(namespace_labels)
        ):
            return False
        return self.selector.matches(labels)


@attrs.frozen
class WeightedPodAffinityTerm:
    weight: int
    term: PodAffinityTerm


@attrs.frozen
class SpreadConstraint:
    """One topologySpreadConstraint.

    `selector` already includes the requirements that matchLabelKeys add for this pod.
    """

    max_skew: int
    topology_key: str
    when_unsatisfiable: str  # "DoNotSchedule" or "ScheduleAnyway"
    selector: LabelSelector
    min_domains: int
    honor_affinity: bool
    honor_taints: bool


def parse_taint(raw: Raw) -> Taint:
    return Taint(raw.get("key", ""), raw.get("value") or "", raw.get("effect", ""))


def parse_toleration(raw: Raw) -> Toleration:
    return Toleration(
        raw.get("key") or "",
        raw.get("operator") or "Equal",
        raw.get("value") or "",
        raw.get("effect") or "",
        raw.get("tolerationSeconds"),
    )


def parse_pod_affinity_term(raw: Raw, namespace: str) -> PodAffinityTerm:
    """Parse a term for a pod in `namespace`, which is used if the term has neither namespaces nor namespaceSelector."""
    namespaces = frozenset(raw.get("namespaces") or ())
    namespace_selector = raw.get("namespaceSelector")
    if not namespaces and namespace_selector is None:
        namespaces = frozenset((namespace,))
    return PodAffinityTerm(
        parse_label_selector(raw.get("labelSelector")),
        raw.get("topologyKey", ""),
        namespaces,
        None if namespace_selector is None else parse_label_selector(namespace_selector),
    )


def with_label_values(
    selector: Raw | None, keys: list[str] | None, labels: Mapping[str, str]
) -> Mapping[str, Any] | None:
    """Return the raw selector, restricted to the pod's values of `keys` (matchLabelKeys).

    Absent labels are ignored.
    """
    present = [key for key in keys or () if key in labels]
    if not present:
        return selector
    selector = selector or {}
    extra = [{"key": key, "operator": "In", "values": [labels[key]]} for key in present]
    return {**selector, "matchExpressions": [*(selector.get("matchExpressions") or ()), *extra]}


def parse_spread_constraint(raw: Raw, labels: Mapping[str, str]) -> SpreadConstraint:
    selector = with_label_values(raw.get("labelSelector"), raw.get("matchLabelKeys"), labels)
    return SpreadConstraint(
        raw["maxSkew"],
        raw["topologyKey"],
        raw["whenUnsatisfiable"],
        parse_label_selector(selector),
        raw.get("minDomains") or 1,
        (raw.get("nodeAffinityPolicy") or "Honor") == "Honor",
        (raw.get("nodeTaintsPolicy") or "Ignore") == "Honor",
    )
