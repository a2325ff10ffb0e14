"""Arguments of PodTopologySpread: default constraints for pods without constraints of their own.

Source: Kubernetes v1.34, validation_pluginargs.go (ValidatePodTopologySpreadArgs), apis/config/v1/defaults.go; v1.22,
apis/config/v1beta1/defaults.go (SetDefaults_PodTopologySpreadArgs).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal, Self

import attrs

from kschedd.config.args import ArgsContext, arg, read_mapping
from kschedd.config.parsing.reading import INT32, ConfigFields, ConfigValue
from kschedd.config.scoring_args import check_name

DefaultingType = Literal["System", "List"]
WhenUnsatisfiable = Literal["DoNotSchedule", "ScheduleAnyway"]
InclusionPolicy = Literal["Honor", "Ignore"]


def _topology_key(place: ConfigValue, context: ArgsContext) -> str | None:
    key = place.text()
    if key == "":
        place.wrong("must not be empty")
    elif key is not None:
        check_name(place, key)
    return key


def _no_selector(place: ConfigValue, context: ArgsContext) -> None:
    place.wrong("a default constraint has no selector; each pod's Services and owners give it")


@attrs.frozen
class DefaultConstraint:
    """A topology spread constraint without a selector; the selector is derived from the pod's Services and owners."""

    max_skew: int = arg(needed=True, bounds=(1, INT32[1]))
    topology_key: str = arg(needed=True, read=_topology_key)
    when_unsatisfiable: WhenUnsatisfiable = arg(needed=True)
    min_domains: int | None = arg(None, bounds=(1, INT32[1]))
    node_affinity_policy: InclusionPolicy = "Honor"
    node_taints_policy: InclusionPolicy = "Ignore"
    match_label_keys: tuple[str, ...] = ()
    label_selector: None = arg(None, read=_no_selector)

    @property
    def raw(self) -> dict[str, Any]:
        """The constraint in the format of a pod spec."""
        raw: dict[str, Any] = {
            "maxSkew": self.max_skew,
            "topologyKey": self.topology_key,
            "whenUnsatisfiable": self.when_unsatisfiable,
            "nodeAffinityPolicy": self.node_affinity_policy,
            "nodeTaintsPolicy": self.node_taints_policy,
        }
        if self.min_domains is not None:
            raw["minDomains"] = self.min_domains
        if self.match_label_keys:
            raw["matchLabelKeys"] = list(self.match_label_keys)
        return raw


SYSTEM_CONSTRAINTS: Final = (
    DefaultConstraint(3, "kubernetes.io/hostname", "ScheduleAnyway"),
    DefaultConstraint(5, "topology.kubernetes.io/zone", "ScheduleAnyway"),
)


def _constraints(place: ConfigValue, context: ArgsContext) -> tuple[DefaultConstraint, ...]:
    constraints: list[DefaultConstraint] = []
    for item in place.items():
        constraint = read_mapping(DefaultConstraint, item, context)
        if constraint is None:
            continue
        pair = (constraint.topology_key, constraint.when_unsatisfiable)
        if pair in ((one.topology_key, one.when_unsatisfiable) for one in constraints):
            item.wrong("the same topologyKey and whenUnsatisfiable as a constraint before it")
        constraints.append(constraint)
    return tuple(constraints)


@attrs.frozen
class PodTopologySpreadArgs:
    default_constraints: tuple[DefaultConstraint, ...] = arg((), read=_constraints)
    """As configured; empty for System."""
    defaulting_type: DefaultingType = "System"

    @property
    def constraints(self) -> tuple[DefaultConstraint, ...]:
        """The constraints for a pod without constraints of its own."""
        return SYSTEM_CONSTRAINTS if self.defaulting_type == "System" else self.default_constraints

    @classmethod
    def defaults(cls, context: ArgsContext, given: Mapping[str, Any]) -> Self:
        """Return the arguments with the version's default for `defaultingType`.

        Before v1beta2, user-defined constraints did not require `defaultingType`; before v1.20, no other type existed.
        """
        if context.version in ("v1alpha1", "v1alpha2", "Policy"):
            return cls((), "List")
        return cls((), "List" if context.version == "v1beta1" and given.get("defaultConstraints") else "System")

    @classmethod
    def check(cls, fields: ConfigFields, context: ArgsContext) -> None:
        given = fields.place.value
        kind = given.get("defaultingType") or cls.defaults(context, given).defaulting_type
        if given.get("defaultConstraints") and kind == "System":
            why = "constraints of one's own need the defaultingType List"
            fields.place.reading.report(fields.path("defaultingType"), kind, why, "List")
