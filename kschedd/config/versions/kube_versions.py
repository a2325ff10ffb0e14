"""The supported releases of kube-scheduler: `--kube-version`.

A release is described by data: its feature gates, and the rules (`rules`) in which it differs from 1.34.1. `in_tree`
derives the default plugins and their weights from the rules.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

import attrs

from kschedd.config.versions.feature_gates import Gates, defaults
from kschedd.config.versions.gate_history import gates_of
from kschedd.config.versions.kube_releases import Release
from kschedd.config.versions.rules import RULES, Rules
from kschedd.errors import KscheddError

RANDOM_TIES: Final = " with random ties"
"""The suffix of a version that draws among equally good nodes although its release does not."""


@attrs.frozen(eq=False, repr=False)
class KubernetesVersion:
    """A release of Kubernetes whose decisions kschedd reproduces.

    `name` is the release as in the flag. `patch` is the exact release. `rules` are the rules of the release with all
    their gates on.
    """

    name: str
    patch: str
    gates: Gates
    rules: Rules

    def __repr__(self) -> str:
        return f"KubernetesVersion({self.name})"

    @property
    def release(self) -> str:
        return f"v{self.name.split()[0]}"

    @property
    def default_rules(self) -> Rules:
        """The rules of the version with every feature gate at its default."""
        return self.rules.under(defaults(self.gates))

    def with_gates(self, states: Mapping[str, bool]) -> KubernetesVersion:
        """Return this version with these states as its feature gates' defaults."""
        if not states:
            return self
        gates = {name: attrs.evolve(gate, default=states.get(name, gate.default)) for name, gate in self.gates.items()}
        return KubernetesVersion(self.name, self.patch, gates, self.rules)

    def with_random_ties(self) -> KubernetesVersion:
        """Return this version with random tie breaks, as in releases up to 1.34."""
        if not self.rules.ties_in_order:
            return self
        rules = attrs.evolve(self.rules, ties_in_order=False)
        return KubernetesVersion(f"{self.name}{RANDOM_TIES}", self.patch, self.gates, rules)

    def with_ties_of(self, other: KubernetesVersion) -> KubernetesVersion:
        """Return this version with the other's tie breaking, so that a comparison shows no random differences."""
        rules = attrs.evolve(self.rules, ties_in_order=other.rules.ties_in_order)
        return KubernetesVersion(self.name, self.patch, self.gates, rules)

    def with_rule(self, name: str, other: KubernetesVersion) -> KubernetesVersion:
        """Return this version with one rule of the other version, and the gates that the rule requires."""
        own = [gate for gate in RULES[name].gates if gate in other.gates]
        taken = [one for gate in own for one in (gate, *other.gates[gate].needs)]
        gates = _without_dependents_of_disabled({**self.gates, **{one: other.gates[one] for one in taken}})
        rules = attrs.evolve(self.rules, **{name: getattr(other.rules, name)})
        return KubernetesVersion(f"{self.name} with {name}", self.patch, gates, rules)


def _without_dependents_of_disabled(gates: Gates) -> Gates:
    """Turn off each gate that requires a gate that is off by default. Return the gates."""
    off = [name for name, gate in gates.items() if gate.default and not all(gates[need].default for need in gate.needs)]
    if not off:
        return gates
    return _without_dependents_of_disabled({**gates, **{one: attrs.evolve(gates[one], default=False) for one in off}})


def _version(name: str, patch: str) -> KubernetesVersion:
    """Return the version whose name represents this exact release."""
    release = Release.of(patch)
    return KubernetesVersion(name, patch, gates_of(release), Rules.of(release))


V1_34_1: Final = _version("1.34.1", "1.34.1")
V1_34: Final = _version("1.34", "1.34.9")
V1_35: Final = _version("1.35", "1.35.6")
V1_36: Final = _version("1.36", "1.36.3")
V1_37: Final = _version("1.37", "1.37.2")

DEFAULT: Final = V1_37
KUBE_VERSIONS: Final[Mapping[str, KubernetesVersion]] = {one.name: one for one in (V1_34_1, V1_34, V1_35, V1_36, V1_37)}
VERSIONS: Final[tuple[str, ...]] = tuple(KUBE_VERSIONS)
"""The names of the supported releases, the oldest first; "1.34" means the latest patch of 1.34."""
_OF_MINOR: Final = {int(one.name.partition(".")[2]): one for one in KUBE_VERSIONS.values() if one.name.count(".") == 1}
_OLDER: Final[tuple[tuple[int, str], ...]] = (
    (34, "before 1.34, kube-scheduler ignores device claims and pod-level resources by default"),
    (32, "before 1.32, more events requeue unschedulable pods"),
)
"""The most visible differences between the oldest supported release and those before the listed one."""
_MINOR: Final = re.compile(r"v?1\.(\d+)(?:\D|$)")


def minor_of(text: str) -> int | None:
    """Return 36 for a text such as v1.36.3-gke.100; None if the text does not begin with a version."""
    found = _MINOR.match(text)
    return None if found is None else int(found[1])


def nearest_version(minor: int) -> KubernetesVersion:
    """Return the supported version that is closest to the release 1.`minor`."""
    return _OF_MINOR[min(max(minor, min(_OF_MINOR)), max(_OF_MINOR))]


def difference_from(minor: int) -> str:
    """Return the version used for the release 1.`minor`, and the differences between the two; "" if it is supported."""
    if minor in _OF_MINOR:
        return ""
    name = nearest_version(minor).name
    if minor > max(_OF_MINOR):
        return f"{name} is the newest supported release"
    differs = "; ".join(what for release, what in _OLDER if minor < release)
    return f"{name} is the closest: {differs}"


@attrs.define(eq=False)
class UnknownVersionError(KscheddError, rpc_code="invalid"):
    """The error for a release of Kubernetes that is not supported: `given`.

    The message names the supported releases.
    """

    given: str

    def __str__(self) -> str:
        why = f'Kubernetes "{self.given[:40]}" is not supported (supported: {", ".join(KUBE_VERSIONS)})'
        minor = minor_of(self.given)
        if minor is None:
            return why
        nearest = nearest_version(minor)
        differs = difference_from(minor) or f"{nearest.name} stands for {nearest.patch}"
        return f"{why}; {differs}; use {nearest.name}"


def kube_version(text: str) -> KubernetesVersion:
    """Return the version with this name or exact release. Raises UnknownVersionError."""
    requested = text.strip().removeprefix("v")
    if requested.endswith(RANDOM_TIES):
        return kube_version(requested.removesuffix(RANDOM_TIES)).with_random_ties()
    for one in KUBE_VERSIONS.values():
        if requested in (one.name, one.patch):
            return one
    raise UnknownVersionError(text)
