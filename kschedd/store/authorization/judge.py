"""RbacJudge: decides requests by the Roles, ClusterRoles and bindings of a cluster.

A cluster without the ClusterRole cluster-admin is judged as if it had the default policy of its release. A ClusterRole
with an aggregationRule has the rules of the roles that it selects, as if kube-controller-manager had written them.

Owns: an index of the bindings by namespace and subject, built at the first request, and updated with each binding.
Source: Kubernetes v1.37, pkg/registry/rbac/validation/rule.go, plugin/pkg/auth/authorizer/rbac/rbac.go,
pkg/controller/clusterroleaggregation.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Final, Protocol

import attrs

from kschedd.access.requests import AccessDecision, AccessRequest
from kschedd.access.users import MASTERS, SERVICE_ACCOUNT, User
from kschedd.api.objects import Object
from kschedd.api.selecting.selectors import SelectorError, parse_label_selector
from kschedd.store.authorization.bootstrap import ADMIN, bootstrap_policy
from kschedd.store.authorization.rules import rule_allows

Raw = Mapping[str, Any]
_ROLE, _CLUSTER_ROLE, _BINDING, _CLUSTER_BINDING = "Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding"
RBAC_KINDS: Final = frozenset((_ROLE, _CLUSTER_ROLE, _BINDING, _CLUSTER_BINDING))
_ALLOWED: Final = AccessDecision(True)
_REFUSED: Final = AccessDecision(False)
_Key = tuple[str, str, str]


class RbacObjects(Protocol):
    """The objects of the store that the judge reads."""

    @property
    def features(self) -> frozenset[str]: ...
    def find(self, kind: str, namespace: str, name: str) -> Object | None: ...
    def present(self, kind: str, namespace: str | None = None) -> Sequence[Sequence[Object]]: ...


@attrs.frozen
class Grant:
    """The role that a binding gives to one of its subjects. `namespace` is "" for a ClusterRoleBinding."""

    namespace: str
    binding: str
    place: int  # of the subject in the binding
    kind: str
    role: str
    subject: str

    @property
    def reason(self) -> str:
        kind = _BINDING if self.namespace else _CLUSTER_BINDING
        name = f"{self.binding}/{self.namespace}" if self.namespace else self.binding
        return f'RBAC: allowed by {kind} "{name}" of {self.kind} "{self.role}" to {self.subject}'


class GrantIndex:
    """The grants by namespace and subject."""

    def __init__(self, bindings: Iterable[Raw]) -> None:
        # (namespace, kind of subject) -> name of subject -> name of binding -> grant
        self._grants: dict[tuple[str, str], dict[str, dict[str, Grant]]] = {}
        for binding in bindings:
            self.add(binding)

    def add(self, binding: Raw) -> None:
        for kind, name, grant in _grants_of(binding):
            subjects = self._grants.setdefault((grant.namespace, kind), {})
            subjects.setdefault(name, {}).setdefault(grant.binding, grant)

    def remove(self, binding: Raw) -> None:
        for kind, name, grant in _grants_of(binding):
            subjects = self._grants.get((grant.namespace, kind), {})
            if (known := subjects.get(name)) is not None:
                known.pop(grant.binding, None)
                if not known:
                    del subjects[name]
                if not subjects:
                    del self._grants[grant.namespace, kind]

    def of(self, user: User, namespace: str) -> list[Grant]:
        """Return the grants of a user in a namespace ("": in the whole cluster), by the names of the bindings.

        Only groups with grants are examined one by one, because a review may name many thousands of groups.
        """
        groups = self._grants.get((namespace, "Group"), {})
        subjects = [self._grants.get((namespace, "User"), {}).get(user.name, {})]
        subjects += [groups[name] for name in groups.keys() & frozenset(user.groups)]
        found: dict[str, Grant] = {}
        for grants in subjects:
            for binding, grant in grants.items():
                known = found.get(binding)
                if known is None or grant.place < known.place:
                    found[binding] = grant
        return [found[name] for name in sorted(found)]


def _grants_of(binding: Raw) -> Iterator[tuple[str, str, Grant]]:
    """Yield the grants with kind and name of their subject."""
    meta, role = binding["metadata"], binding.get("roleRef") or {}
    namespace = meta.get("namespace") or ""
    for place, subject in enumerate(binding.get("subjects") or ()):
        kind, name = subject.get("kind") or "", subject.get("name") or ""
        shown = f'{kind} "{name}"'
        if kind == "ServiceAccount":
            of_account = subject.get("namespace") or namespace
            if not of_account:
                continue
            kind, shown = "User", f'{kind} "{name}/{of_account}"'
            name = f"{SERVICE_ACCOUNT}{of_account}:{name}"
        grant = Grant(namespace, meta["name"], place, role.get("kind") or "", role.get("name") or "", shown)
        yield kind, name, grant


@attrs.frozen(eq=False)
class _DefaultPolicy:
    """The default policy of a release, for clusters that have none."""

    roles: Mapping[tuple[str, str], Raw]
    index: GrantIndex

    @classmethod
    def of(cls, features: frozenset[str]) -> "_DefaultPolicy":
        policy = bootstrap_policy(features)
        roles = {_named(raw): raw for raw in policy if not raw["kind"].endswith("Binding")}
        return cls(roles, GrantIndex(raw for raw in policy if raw["kind"].endswith("Binding")))


_default_policy = cache(_DefaultPolicy.of)


def _named(raw: Raw) -> tuple[str, str]:
    return raw["metadata"].get("namespace") or "", raw["metadata"]["name"]


class _Frozen:
    """The RBAC objects at one moment."""

    def __init__(self, features: frozenset[str], spaces: Mapping[str, Sequence[Sequence[Object]]]) -> None:
        self.features = features
        self._spaces = spaces
        self._named: dict[_Key, Object] | None = None

    def find(self, kind: str, namespace: str, name: str) -> Object | None:
        if self._named is None:
            spaces = (space for spaces in self._spaces.values() for space in spaces)
            self._named = {(each.kind, each.namespace, each.name): each for space in spaces for each in space}
        return self._named.get((kind, namespace, name))

    def present(self, kind: str, namespace: str | None = None) -> Sequence[Sequence[Object]]:
        return [space for space in self._spaces[kind] if namespace in (None, space[0].namespace)]


class RbacJudge:
    def __init__(self, objects: RbacObjects) -> None:
        self._objects = objects
        self._index: GrantIndex | None = None
        self._aggregated: dict[str, Sequence[Raw]] = {}

    def note(self, old: Object | None, new: Object | None) -> None:
        """Update the index after a change to an RBAC object."""
        if self._index is None:
            return
        changed = new or old
        assert changed is not None, "a change has an old or a new object"
        if changed.kind == _CLUSTER_ROLE:
            self._aggregated.clear()
        elif changed.kind != _ROLE:
            if old is not None:
                self._index.remove(old.raw)
            if new is not None:
                self._index.add(new.raw)

    def forget(self) -> None:
        """Drop the index, because the objects or the release were replaced."""
        self._index = None
        self._aggregated.clear()

    def frozen(self) -> "RbacJudge":
        """Return a judge of the present objects, which another thread may use; it sees no later changes."""
        objects = self._objects
        return RbacJudge(_Frozen(objects.features, {kind: objects.present(kind) for kind in RBAC_KINDS}))

    def judge(self, request: AccessRequest) -> AccessDecision:
        """Return whether the user may make the request."""
        if MASTERS in request.user.groups:
            return _ALLOWED
        missing: list[str] = []
        for grant, rules in self._granted(request.user, request.namespace, missing):
            if any(rule_allows(rule, request) for rule in rules):
                return AccessDecision(True, grant.reason)
        if not missing:
            return _REFUSED
        authorizer = "rbac: " if "fields_of_1_37" in self._objects.features else ""  # 1.37 names the authorizer
        return AccessDecision(False, f"{authorizer}RBAC: {aggregate(missing)}")

    def rules_of(self, user: User, namespace: str) -> tuple[list[Raw], str]:
        """Return the rules that apply to a user in a namespace, and the roles that do not exist as a message."""
        missing: list[str] = []
        found = [rule for _, rules in self._granted(user, namespace, missing) for rule in rules]
        return found, aggregate(missing)

    def role_rules(self, kind: str, namespace: str, name: str) -> Sequence[Raw] | None:
        """Return the rules of a role; None if it does not exist."""
        if kind == _CLUSTER_ROLE:
            return self._cluster_role_rules(name, frozenset())
        role = self._role(_ROLE, namespace, name)
        return None if role is None else role.get("rules") or ()

    def _granted(self, user: User, namespace: str, missing: list[str]) -> Iterator[tuple[Grant, Sequence[Raw]]]:
        """Yield the grants of a user with their rules; append the roles that do not exist to `missing`."""
        index = self._index
        if index is None:
            bindings = (each for kind in (_CLUSTER_BINDING, _BINDING) for each in self._objects.present(kind))
            index = self._index = GrantIndex(binding.raw for some in bindings for binding in some)
        default = self._default
        for where in dict.fromkeys(("", namespace)):
            grants = index.of(user, where)
            if default is not None:
                own = {grant.binding for grant in grants}
                grants += [grant for grant in default.index.of(user, where) if grant.binding not in own]
            for grant in grants:
                rules = self.role_rules(grant.kind, where, grant.role)
                if rules is None:
                    missing.append(f'{grant.kind.lower()}.rbac.authorization.k8s.io "{grant.role}" not found')
                else:
                    yield grant, rules

    @property
    def _default(self) -> _DefaultPolicy | None:
        if self._objects.find(_CLUSTER_ROLE, "", ADMIN) is not None:
            return None
        return _default_policy(self._objects.features)

    def _role(self, kind: str, namespace: str, name: str) -> Raw | None:
        found = self._objects.find(kind, namespace, name)
        if found is not None:
            return found.raw
        default = self._default
        return None if default is None else default.roles.get((namespace, name))

    def _cluster_role_rules(self, name: str, within: frozenset[str]) -> Sequence[Raw] | None:
        """Return the rules; `within` are the roles whose aggregation includes this role."""
        if not within and name in self._aggregated:
            return self._aggregated[name]
        role = self._role(_CLUSTER_ROLE, "", name)
        if role is None:
            return None
        selectors = (role.get("aggregationRule") or {}).get("clusterRoleSelectors") or ()
        if not selectors:
            return role.get("rules") or ()
        found: list[Raw] = []
        for selector in selectors:
            for selected in self._selected(selector):
                if selected != name and selected not in within:
                    rules = self._cluster_role_rules(selected, within | {name}) or ()
                    found += [rule for rule in rules if rule not in found]
        if not within:
            self._aggregated[name] = found
        return found

    def _selected(self, selector: Raw) -> list[str]:
        """Return the names of the ClusterRoles that a selector of an aggregation selects, sorted."""
        try:
            wanted = parse_label_selector(selector)
        except SelectorError:
            return []
        labels = {role.name: role.labels for some in self._objects.present(_CLUSTER_ROLE) for role in some}
        if (default := self._default) is not None:
            own = {name: raw["metadata"]["labels"] for (space, name), raw in default.roles.items() if not space}
            labels = {**own, **labels}
        return sorted(name for name in labels if wanted.matches(labels[name]))


def aggregate(errors: Sequence[str]) -> str:
    """Return several errors as one message, in the form of kube-apiserver."""
    unique = list(dict.fromkeys(errors))
    return unique[0] if len(unique) == 1 else f"[{', '.join(unique)}]" if unique else ""
