"""Reviews of the caller's identity, of the caller's permissions, and of other users' permissions.

RBAC objects decide about other users, even where they are not enforced. A SelfSubjectAccessReview and a
SelfSubjectRulesReview report what is enforced for the caller.

Source: Kubernetes v1.37, pkg/registry/authorization, pkg/registry/authentication, pkg/apis/authorization/validation.
Raises: StatusError.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import attrs

from kschedd.access.requests import AccessDecision, AccessRequest
from kschedd.access.users import READ_VERBS, User
from kschedd.api.schemas.fields import FieldError, invalid, required
from kschedd.api.text.times import stamp
from kschedd.apiserver.codec.negotiation import json_response
from kschedd.apiserver.codec.status import bad_request, causes, invalid_options
from kschedd.apiserver.handlers.writing import received
from kschedd.apiserver.requests import ApiCall
from kschedd.apiserver.services import FaceServices
from kschedd.apiserver.tokens import API_AUDIENCES
from kschedd.http.server import HttpResponse

Raw = Mapping[str, Any]
_NOTHING: Final[Raw] = {}
REVIEWS: Final = frozenset(
    (
        "selfsubjectaccessreviews",
        "subjectaccessreviews",
        "localsubjectaccessreviews",
        "selfsubjectrulesreviews",
        "selfsubjectreviews",
        "tokenreviews",
    )
)


async def review(face: FaceServices, call: ApiCall) -> HttpResponse:
    resource = call.target.resource
    raw = await received(face, call)
    meta = {**(raw.get("metadata") or {})}
    meta.pop("creationTimestamp", None)
    answer: dict[str, Any] = {"kind": resource.kind, "apiVersion": resource.api_version, "metadata": meta}
    user: User = call.user
    spec: Raw = raw.get("spec") or {}
    match resource.name:
        case "selfsubjectreviews":
            answer["metadata"] = {"creationTimestamp": stamp(face.now())}
            answer["status"] = {"userInfo": _shown(user)}
        case "selfsubjectrulesreviews":
            if not spec.get("namespace"):
                raise bad_request("no namespace on request")
            answer["spec"] = {}
            answer["status"] = await _rules(face, user, spec["namespace"])
        case "tokenreviews":
            answer["spec"] = spec
            audiences = spec.get("audiences") or API_AUDIENCES
            found = await face.valid_claims(str(spec.get("token") or ""), audiences)
            answer["status"] = (
                {"user": {}, "error": "invalid bearer token"}
                if found is None
                else {
                    "authenticated": True,
                    "user": _shown(found.user),
                    "audiences": [each for each in found.audiences if each in audiences],
                }
            )
        case _:
            answer["spec"] = spec
            answer["status"] = await _allowed(face, call, meta, spec)
    return json_response(answer, 201, request_headers=call.headers)


def _shown(user: User) -> dict[str, Any]:
    shown: dict[str, Any] = {"username": user.name}
    if user.uid:
        shown["uid"] = user.uid
    shown["groups"] = list(user.groups)
    if user.extra:
        shown["extra"] = {key: list(values) for key, values in user.extra}
    return shown


async def _allowed(face: FaceServices, call: ApiCall, meta: Raw, spec: Raw) -> dict[str, Any]:
    """Return the status of an access review. Raises Invalid, StatusError."""
    resource = call.target.resource
    local = resource.name == "localsubjectaccessreviews"
    own = resource.name == "selfsubjectaccessreviews"
    faults = _spec_faults(spec, own=own)
    kept = {field for field, value in meta.items() if value and field != "managedFields"}
    if local:
        if kept - {"namespace"}:
            faults.append(invalid("metadata", meta, "must be empty except for namespace"))
        faults += _local_faults(spec, meta.get("namespace") or "")
    elif kept:
        faults.append(invalid("metadata", meta, "must be empty"))
    if faults:
        refused = invalid_options("", faults, group=resource.group)  # kube-apiserver does not name the kind
        raise attrs.evolve(refused, details={"group": resource.group, "causes": causes(faults)})
    if local and call.target.namespace != (meta.get("namespace") or ""):
        raise bad_request(f"spec.resourceAttributes.namespace must match namespace: {call.target.namespace}")
    user = call.user if own else User(str(spec.get("user") or ""), tuple(spec.get("groups") or ()))
    request = _request_of(user, spec)
    decision = await _own_decision(face, request) if own else await _judged(face, request)
    status: dict[str, Any] = {"allowed": decision.allowed}
    if decision.reason:
        status["reason"] = decision.reason
    return status


def _request_of(user: User, spec: Raw) -> AccessRequest:
    asked: Raw | None = spec.get("resourceAttributes")
    if asked is None:
        path = spec["nonResourceAttributes"]
        return AccessRequest(user, path.get("verb") or "", path=path.get("path") or "/")
    fields = {each: asked.get(each) or "" for each in ("group", "resource", "subresource", "namespace", "name")}
    return AccessRequest(user, asked.get("verb") or "", **fields)


async def _judged(face: FaceServices, request: AccessRequest) -> AccessDecision:
    return await face.cluster.store.do(lambda store: store.rbac.judge(request))


async def _own_decision(face: FaceServices, request: AccessRequest) -> AccessDecision:
    user = request.user
    if user.read_only and request.verb not in READ_VERBS:
        return AccessDecision(False, f"{user.name} is read-only here")
    return await _judged(face, request) if user.judged else AccessDecision(True)


async def _rules(face: FaceServices, user: User, namespace: str) -> dict[str, Any]:
    """Return the status of a SelfSubjectRulesReview."""
    everything = ["*"]
    if not user.judged:
        verbs = sorted(READ_VERBS) if user.read_only else everything
        return {
            "resourceRules": [{"verbs": verbs, "apiGroups": everything, "resources": everything}],
            "nonResourceRules": [{"verbs": verbs, "nonResourceURLs": everything}],
            "incomplete": False,
        }
    rules, missing = await face.cluster.store.do(lambda store: store.rbac.rules_of(user, namespace))
    if user.read_only:
        rules = [{**rule, "verbs": verbs} for rule in rules if (verbs := _reading(rule.get("verbs") or ()))]
    status: dict[str, Any] = {
        "resourceRules": _parts(rules, "resources", ("verbs", "apiGroups", "resources", "resourceNames")),
        "nonResourceRules": _parts(rules, "nonResourceURLs", ("verbs", "nonResourceURLs")),
        "incomplete": False,
    }
    return {**status, "evaluationError": missing} if missing else status


def _reading(verbs: Any) -> list[str]:
    return [verb for verb in sorted(READ_VERBS) if verb in verbs or "*" in verbs]


def _parts(rules: Sequence[Raw], of: str, fields: Sequence[str]) -> list[dict[str, Any]]:
    """Return these fields of the rules that have the field `of`."""
    return [{field: list(rule[field]) for field in fields if rule.get(field)} for rule in rules if rule.get(of)]


# -- validation -------------------------------------------------------------------------------------------------------

_UNION: Final = "exactly one of nonResourceAttributes or resourceAttributes must be specified"


def _spec_faults(spec: Raw, *, own: bool) -> list[FieldError]:
    faults = []
    resource, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    if (resource is None) is (path is None):
        there = None if path is None else {"Path": path.get("path") or "", "Verb": path.get("verb") or ""}
        faults.append(invalid("spec", there, _UNION))
    if not own and not spec.get("user") and not spec.get("groups"):
        faults.append(invalid("spec.user", "", "at least one of user or group must be specified"))
    for field in ("fieldSelector", "labelSelector"):
        selector = (resource or _NOTHING).get(field)
        if selector is None:
            continue
        here, text = f"spec.resourceAttributes.{field}", selector.get("rawSelector") or ""
        if text and selector.get("requirements"):
            faults.append(invalid(f"{here}.rawSelector", text, "may not specified at the same time as requirements"))
        if not text and not selector.get("requirements"):
            why = f"when {here} is specified, requirements or rawSelector is required"
            faults.append(required(f"{here}.requirements", why))
    return faults


def _local_faults(spec: Raw, namespace: str) -> list[FieldError]:
    faults = []
    resource, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    if resource is not None and (resource.get("namespace") or "") != namespace:
        there = resource.get("namespace") or ""
        faults.append(invalid("spec.resourceAttributes.namespace", there, "must match metadata.namespace"))
    if path is not None:
        faults.append(invalid("spec.nonResourceAttributes", path, "disallowed on this kind of request"))
    return faults
