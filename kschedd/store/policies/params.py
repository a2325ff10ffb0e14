"""Parameters of a policy: the objects that the paramRef of a binding selects.

Source: Kubernetes v1.37, apiserver/pkg/admission/plugin/policy/generic/policy_dispatcher.go (CollectParams).
Errors: ConfigurationError.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import attrs

from kschedd.api.schemas.kinds import Kind
from kschedd.api.schemas.schema import Schema
from kschedd.api.selecting.selectors import parse_label_selector
from kschedd.errors import KscheddError
from kschedd.store.admission_plugins.attributes import Classes
from kschedd.store.authorization.judge import RbacJudge

Raw = Mapping[str, Any]


@attrs.define(eq=False)
class ConfigurationError(KscheddError):
    """A policy or binding that cannot be used as configured."""

    why: str


class PolicyCluster(Classes, Protocol):
    """The part of the store that policies read."""

    @property
    def features(self) -> frozenset[str]: ...
    @property
    def rbac(self) -> RbacJudge: ...
    def count(self, kind: str) -> int: ...
    def merge_schema_of(self, raw: Raw) -> Schema: ...
    def kind_of(self, raw: Raw) -> Kind: ...
    def serves(self, kind: Kind) -> bool: ...


def param_kind(spec: Raw, cluster: PolicyCluster) -> Kind | None:
    """Return the kind of the parameters; None if the policy has none. Raises ConfigurationError."""
    stated = spec.get("paramKind")
    if stated is None:
        return None
    found = cluster.kind_of({"apiVersion": stated.get("apiVersion"), "kind": stated.get("kind")})
    if cluster.serves(found):
        return found
    group, _, version = str(stated.get("apiVersion")).rpartition("/")
    shown = f"{group}/{version}, Kind={stated.get('kind')}"
    raise ConfigurationError(f"failed to find resource referenced by paramKind: '{shown}'")


def collected(kind: Kind | None, reference: Raw | None, namespace: str, cluster: Classes) -> Sequence[Raw | None]:
    """Return the parameters of a binding for a request in this namespace; one None if the binding has none.

    Raises ConfigurationError.
    """
    if kind is None or reference is None:
        return (None,)
    name, stated = reference.get("name") or "", reference.get("namespace") or ""
    space = (stated or namespace) if kind.namespaced else ""
    if kind.namespaced and not space:
        raise ConfigurationError(
            "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources"
        )
    if stated and not kind.namespaced:
        raise ConfigurationError("paramRef.namespace must not be provided for a cluster-scoped `paramKind`")
    if name:
        one = cluster.find(kind.name, space, name)
        found = [] if one is None else [one]
    else:
        selector = parse_label_selector(reference.get("selector"))
        found = [each for each in cluster.list(kind.name, space) if selector.matches(each.labels)]
    if not found and reference.get("parameterNotFoundAction") == "Deny":
        raise ConfigurationError("no params found for policy binding with `Deny` parameterNotFoundAction")
    return [each.raw for each in found]
