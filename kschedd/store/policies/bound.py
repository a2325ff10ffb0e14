"""The policies of a cluster with their bindings, for validating and mutating policies alike."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, Generic, Protocol, TypeVar

import attrs

from kschedd.api.objects import Object
from kschedd.store.awaited import WebhookAnswers, evaluated
from kschedd.store.policies.params import PolicyCluster
from kschedd.store.policies.reviewed import Reviewed

Raw = Mapping[str, Any]


class Compiled(Protocol):
    """A compiled policy."""

    @property
    def source(self) -> Object: ...


P = TypeVar("P", bound=Compiled)


@attrs.define(eq=False)
class _Compilation(Generic[P]):
    """The compilation of a policy. The first call makes it, for all writes that wait for it."""

    source: Object
    _compile: Callable[[], P]
    made: P | None = None

    def __call__(self) -> P:
        if self.made is None:
            self.made = self._compile()
        return self.made


class PolicyCache(Generic[P]):
    """The compiled policies of one kind. Each is cached until its object changes or is deleted."""

    def __init__(self, cluster: PolicyCluster, kind: str, compiled: Callable[[Object, frozenset[str]], P]) -> None:
        self._cluster = cluster
        self._kind = kind
        self._compile = compiled
        self._compiled: dict[str, _Compilation[P]] = {}

    def forget(self) -> None:
        """Drop the compiled policies, because the version of Kubernetes has changed."""
        self._compiled.clear()

    def of(self, policy: Object, answers: WebhookAnswers | None) -> P:
        """Return the compiled policy. Raises WebhooksNeeded if it takes long and `answers` lacks it."""
        known = self._compiled.get(policy.name)
        if known is None or known.source is not policy:
            known = _Compilation(policy, partial(self._compile, policy, self._cluster.features))
            self._compiled[policy.name] = known
            if len(self._compiled) > self._cluster.count(self._kind):
                find = self._cluster.find
                self._compiled = {name: each for name, each in self._compiled.items() if find(self._kind, "", name)}
        what = (self._kind, policy.name, str(policy.resource_version), "compiled")
        return known.made if known.made is not None else evaluated(answers, what, {}, known)


def bound_policies(cluster: PolicyCluster, kind: str, binding_kind: str) -> Iterator[tuple[Object, list[Object]]]:
    """Yield each policy of this kind that has bindings, in the order of the names, with its bindings."""
    bindings: dict[str, list[Object]] = {}
    for binding in cluster.list(binding_kind):
        bindings.setdefault(binding.spec.get("policyName") or "", []).append(binding)
    for name in sorted(bindings):
        policy = cluster.find(kind, "", name)
        if policy is not None:
            yield policy, bindings[name]


def namespace_of(reviewed: Reviewed, cluster: PolicyCluster) -> Raw | None:
    """Return the namespace of the object that is written; None for cluster-scoped objects and namespaces."""
    if not reviewed.namespace or reviewed.kind.name == "Namespace":
        return None
    found = cluster.find("Namespace", "", reviewed.namespace)
    return None if found is None else found.raw
