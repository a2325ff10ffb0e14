"""CEL environment of admission: the variables of policies and match conditions, with their types and values.

Source: Kubernetes v1.37, apiserver/pkg/admission/plugin/cel/{compile,activation,composition}.go.
"""

from collections.abc import Mapping
from typing import Any, Final

import attrs

from kschedd.cel.environment import BASE, CelEnvironment
from kschedd.cel.functions.authorizer import AUTHORIZER, RESOURCE_CHECK, CheckedRequest
from kschedd.cel.types import DYN, Type, type_of
from kschedd.store.authorization.judge import RbacJudge
from kschedd.store.policies.authorizing import RequestAuthorizer
from kschedd.store.policies.reviewed import Reviewed, ReviewedResource

Raw = Mapping[str, Any]
_VARIABLES: Final = "kubernetes.variables"
_STRUCTS: Final[Mapping[str, Mapping[str, str]]] = {
    "kubernetes.AdmissionRequest": {
        "kind": "kubernetes.GroupVersionKind",
        "resource": "kubernetes.GroupVersionResource",
        "subResource": "string",
        "requestKind": "kubernetes.GroupVersionKind",
        "requestResource": "kubernetes.GroupVersionResource",
        "requestSubResource": "string",
        "name": "string",
        "namespace": "string",
        "operation": "string",
        "userInfo": "kubernetes.UserInfo",
        "dryRun": "bool",
        "options": "dyn",
    },
    "kubernetes.GroupVersionKind": dict.fromkeys(("group", "version", "kind"), "string"),
    "kubernetes.GroupVersionResource": dict.fromkeys(("group", "version", "resource"), "string"),
    "kubernetes.UserInfo": {
        "username": "string",
        "uid": "string",
        "groups": "list(string)",
        "extra": "map(string,list(string))",
    },
    "kubernetes.Namespace": {
        "metadata": "kubernetes.NamespaceMetadata",
        "spec": "kubernetes.NamespaceSpec",
        "status": "kubernetes.NamespaceStatus",
    },
    "kubernetes.NamespaceMetadata": {
        **dict.fromkeys(("name", "generateName", "namespace", "UID", "resourceVersion"), "string"),
        **dict.fromkeys(("labels", "annotations"), "map(string,string)"),
        **dict.fromkeys(("creationTimestamp", "deletionTimestamp"), "timestamp"),
        **dict.fromkeys(("deletionGracePeriodSeconds", "generation"), "int"),
        "finalizers": "list(string)",
    },
    "kubernetes.NamespaceSpec": {"finalizers": "list(string)"},
    "kubernetes.NamespaceStatus": {"conditions": "list(kubernetes.NamespaceCondition)", "phase": "string"},
    "kubernetes.NamespaceCondition": {
        **dict.fromkeys(("status", "type", "message", "reason"), "string"),
        "lastTransitionTime": "timestamp",
    },
    "JSONPatch": {**dict.fromkeys(("op", "path", "from"), "string"), "value": "dyn"},
}
_REQUEST: Final = {
    "object": "dyn",
    "oldObject": "dyn",
    "namespaceObject": "kubernetes.Namespace",
    "request": "kubernetes.AdmissionRequest",
}
_AUTHORIZER: Final = {"authorizer": AUTHORIZER, "authorizer.requestResource": RESOURCE_CHECK}
_NAMESPACE_FIELDS: Final = frozenset(_STRUCTS["kubernetes.NamespaceMetadata"]) | {"uid"}
BUDGET: Final = 10_000_000
"""The cost limit of all validations of one policy and binding."""
CONDITIONS_BUDGET: Final = 2_500_000


@attrs.frozen
class ObjectTypes:
    """The types of the objects that expressions see, with the fields of the structs in them, for type checking."""

    object: str
    params: str | None
    structs: Mapping[str, Mapping[str, str]]


def _patch_type(name: str) -> Type | None:
    """Return the types that mutations build: `JSONPatch`, `Object`, and `Object.spec` for each field path."""
    return Type(name) if name in ("JSONPatch", "Object") or name.startswith("Object.") else None


def _patch_field(of_type: Type, field: str) -> Type | None:
    return DYN if of_type.name == "Object" or of_type.name.startswith("Object.") else None


def policy_environment(
    variables: Mapping[str, str] | None,
    features: frozenset[str],
    *,
    params: bool,
    authorizer: bool = True,
    patches: bool = False,
    types: ObjectTypes | None = None,
) -> CelEnvironment:
    """Return the environment.

    `variables` are the types of the policy's own variables, to which types may be added; None: there can be none.
    """
    names = {**_REQUEST, **({"params": "dyn"} if params else {}), **(_AUTHORIZER if authorizer else {})}
    structs = dict(_STRUCTS)
    if types is not None:
        names |= {"object": types.object, "oldObject": types.object}
        names |= {"params": types.params} if types.params else {}
        del names["authorizer.requestResource"]  # which kube-controller-manager does not declare
        structs |= types.structs
    if variables is not None:
        names["variables"] = _VARIABLES
        structs[_VARIABLES] = variables
    libraries = BASE if "fields_of_1_35" in features else BASE - {"lists"}
    made = CelEnvironment.of(names, structs, libraries | ({"patches"} if patches else frozenset()))
    return attrs.evolve(made, open_type=_patch_type, field_in_open=_patch_field) if patches else made


def declared(text: str) -> str:
    """Return the type of a variable as later expressions see it."""
    return str(_declared(type_of(text)))


def _declared(of_type: Type) -> Type:
    """Return the type of a variable as later expressions see it: structs and optional values have any type."""
    if of_type.name in ("list", "map"):
        return Type(of_type.name, tuple(map(_declared, of_type.params)))
    return DYN if of_type.params or of_type.is_struct else type_of(of_type.name)


def request_names(
    reviewed: Reviewed, matched: ReviewedResource, params: Raw | None, namespace: Raw | None, rbac: RbacJudge
) -> dict[str, Any]:
    """Return the values of the variables for a request."""
    seen = reviewed.in_version(matched)
    names: dict[str, Any] = {
        "object": seen.new,
        "oldObject": seen.old,
        "params": params,
        "request": reviewed.request(matched),
        "namespaceObject": None if namespace is None else _namespace_object(namespace),
    }
    judge, user = RequestAuthorizer(rbac), reviewed.user.user
    names["authorizer"] = CheckedRequest(AUTHORIZER, judge, user)
    names["authorizer.requestResource"] = CheckedRequest(
        RESOURCE_CHECK,
        judge,
        user,
        group=reviewed.resource.group,
        resource=reviewed.resource.plural,
        subresource=reviewed.subresource,
        namespace=reviewed.namespace,
        name=reviewed.name,
    )
    return names


def _namespace_object(namespace: Raw) -> dict[str, Any]:
    metadata = namespace.get("metadata") or {}
    kept = {field: value for field, value in metadata.items() if field in _NAMESPACE_FIELDS}
    return {**{field: namespace[field] for field in ("spec", "status") if field in namespace}, "metadata": kept}
