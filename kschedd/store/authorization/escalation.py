"""Escalation checks: a user may write only roles and bindings whose permissions the user has.

The verbs `escalate` on roles and `bind` on the role of a binding permit more. The checks apply to users whose requests
RBAC objects judge.

Source: Kubernetes v1.37, pkg/registry/rbac/{escalation_check,helpers}.go, */policybased/storage.go,
pkg/registry/rbac/validation/rule.go (ConfirmNoEscalation).
Raises: Forbidden, NotFound.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from kschedd.access.requests import AccessRequest
from kschedd.access.users import MASTERS, User
from kschedd.api.schemas.kinds import BY_NAME
from kschedd.store.authorization.bootstrap import RBAC
from kschedd.store.authorization.judge import RbacJudge
from kschedd.store.authorization.rules import missing_rules
from kschedd.store.errors import Forbidden, NotFound

Raw = Mapping[str, Any]
_EVERYTHING: Final = (
    {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]},
    {"verbs": ["*"], "nonResourceURLs": ["*"]},
)
_COLLECTED: Final = ("ownerReferences", "finalizers")


def check_escalation(judge: RbacJudge, user: User, new: Raw, old: Raw | None, name: str) -> None:
    """Raise an error if the user may not write this role or binding; `name` is the name in the request's path."""
    if MASTERS in user.groups or (old is not None and _same_but_owners(old, new)):
        return
    kind, meta = new["kind"], new["metadata"]
    namespace = meta.get("namespace") or ""
    if kind.endswith("Binding"):
        role = new.get("roleRef") or {}
        rules = _bound_rules(judge, user, namespace, role)
        if rules is not None:
            _confirm(judge, user, namespace, rules, kind, meta.get("name") or "")
        return
    plural = BY_NAME[kind].plural
    if judge.judge(AccessRequest(user, "escalate", RBAC, plural, namespace=namespace, name=name)).allowed:
        return
    _confirm(judge, user, namespace, new.get("rules") or (), kind, meta.get("name") or "")
    if _aggregates(new) or (old is not None and _aggregates(old)):
        try:
            _confirm(judge, user, "", _EVERYTHING, kind, meta.get("name") or "")
        except Forbidden as refused:
            why = "must have cluster-admin privileges to use the aggregationRule"
            raise Forbidden(kind, refused.name, why) from None


def _bound_rules(judge: RbacJudge, user: User, namespace: str, role: Raw) -> Sequence[Raw] | None:
    """Return the rules of a binding's role; None if the user may bind any role. Raises NotFound."""
    kind, name = role.get("kind") or "", role.get("name") or ""
    plural = "roles" if kind == "Role" else "clusterroles"
    if judge.judge(AccessRequest(user, "bind", RBAC, plural, namespace=namespace, name=name)).allowed:
        return None
    rules = judge.role_rules(kind, namespace, name)
    if rules is None:
        raise RoleNotFound(kind, name)
    return rules


class RoleNotFound(NotFound):
    """The role of a binding does not exist; the message names its kind, as in kube-apiserver."""

    def __str__(self) -> str:
        return f'{self.kind.lower()}.{RBAC} "{self.name}" not found'


def _confirm(judge: RbacJudge, user: User, namespace: str, rules: Sequence[Raw], kind: str, name: str) -> None:
    held, unresolved = judge.rules_of(user, namespace)
    missing = missing_rules(held, rules)
    if not missing:
        return
    groups = " ".join(json.dumps(group, ensure_ascii=False) for group in user.groups)
    lines = "\n".join(missing)
    why = f'user "{user.name}" (groups=[{groups}]) is attempting to grant RBAC permissions not currently held:\n{lines}'
    if unresolved:
        why += f"; resolution errors: [{unresolved}]"
    raise Forbidden(kind, name, why)


def _aggregates(role: Raw) -> bool:
    return bool((role.get("aggregationRule") or {}).get("clusterRoleSelectors"))


def _same_but_owners(old: Raw, new: Raw) -> bool:
    """Return whether only metadata changes that the garbage collector needs for deletions."""
    return _without_owners(old) == _without_owners(new)


def _without_owners(raw: Raw) -> dict[str, Any]:
    metadata = {field: value for field, value in raw["metadata"].items() if field not in _COLLECTED}
    metadata.pop("managedFields", None)
    return {**raw, "metadata": metadata}
