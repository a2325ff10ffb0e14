"""The releases of kube-scheduler that decisions can be made by: `--kube-version`.

A release is data: its feature gates, and the rules (`rules`) in which it differs from 1.34.1. Default plugins and their
weights follow from the rules (`in_tree`).
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Final

import attrs

from kschedd.config.versions.feature_gates import Gates, defaults
from kschedd.config.versions.gate_history import gates_of
from kschedd.config.versions.kube_releases import Release
from kschedd.config.versions.rules import RULES, Rules
from kschedd.errors import KscheddError

RANDOM_TIES: Final = " with random ties"
"""The end of the name of a version that draws among equally good nodes though its release does not."""


@attrs.frozen(eq=False, repr=False)
class KubernetesVersion:
    """`name`: as the flag has it. `patch`: the very release. `rules`: those it has, were all their gates on."""

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
        """Its rules with every feature gate at its default."""
        return self.rules.under(defaults(self.gates))

    def with_gates(self, states: Mapping[str, bool]) -> KubernetesVersion:
        """This version, with these states of its feature gates as their defaults."""
        if not states:
            return self
        gates = {name: attrs.evolve(gate, default=states.get(name, gate.default)) for name, gate in self.gates.items()}
        return KubernetesVersion(self.name, self.patch, gates, self.rules)

    def with_random_ties(self) -> KubernetesVersion:
        """Return this version, but ties are drawn as until 1.35; this very one if they are drawn anyway."""
        if not self.rules.ties_in_order:
            return self
        rules = attrs.evolve(self.rules, ties_in_order=False)
        return KubernetesVersion(f"{self.name}{RANDOM_TIES}", self.patch, self.gates, rules)

    def with_ties_of(self, other: KubernetesVersion) -> KubernetesVersion:
        """Return this version with ties broken as by the other: of two that are compared the difference is no luck."""
        rules = attrs.evolve(self.rules, ties_in_order=other.rules.ties_in_order)
        return KubernetesVersion(self.name, self.patch, self.gates, rules)

    def with_rule(self, name: str, other: KubernetesVersion) -> KubernetesVersion:
        """This version, but for one rule, and the gate that it takes, as in the other."""
        own = [gate for gate in RULES[name].gates if gate in other.gates]
        taken = [one for gate in own for one in (gate, *other.gates[gate].needs)]
        gates = {**self.gates, **{one: other.gates[one] for one in taken}}
        rules = attrs.evolve(self.rules, **{name: getattr(other.rules, name)})
        return KubernetesVersion(f"{self.name} with {name}", self.patch, gates, rules)


def _version(name: str, patch: str) -> KubernetesVersion:
    """Return the version of a name that stands for this very release."""
    release = Release.of(patch)
    return KubernetesVersion(name, patch, gates_of(release), Rules.of(release))


V1_34_1: Final = _version("1.34.1", "1.34.1")
V1_34: Final = _version("1.34", "1.34.9")
V1_35: Final = _version("1.35", "1.35.6")
V1_36: Final = _version("1.36", "1.36.3")
V1_37: Final = _version("1.37", "1.37.2")

DEFAULT: Final = V1_37
KUBE_VERSIONS: Final[Mapping[str, KubernetesVersion]] = {one.name: one for one in (V1_34_1, V1_34, V1_35, V1_36, V1_37)}


@attrs.define(eq=False)
class UnknownVersionError(KscheddError, rpc_code="invalid"):
    given: str

    def __str__(self) -> str:
        close = difflib.get_close_matches(self.given.removeprefix("v"), KUBE_VERSIONS, n=1)
        hint = f"; did you mean {close[0]}?" if close else ""
        return f"{self.given[:40]!r} is no version of Kubernetes that there is here: {', '.join(KUBE_VERSIONS)}{hint}"


def kube_version(text: str) -> KubernetesVersion:
    """The version of this name, or of the very release that a name stands for. Raises UnknownVersionError."""
    asked = text.strip().removeprefix("v")
    if asked.endswith(RANDOM_TIES):
        return kube_version(asked.removesuffix(RANDOM_TIES)).with_random_ties()
    for one in KUBE_VERSIONS.values():
        if asked in (one.name, one.patch):
            return one
    raise UnknownVersionError(text)
