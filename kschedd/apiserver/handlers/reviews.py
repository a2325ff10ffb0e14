"""Reviews: the caller's identity and permissions. Every client with access has the rights of system:masters.

Source: Kubernetes v1.34, pkg/registry/authorization, pkg/registry/authentication.
Raises: StatusError.
"""

from collections.abc import Mapping
from typing import Any, Final

from kschedd.access.users import READ_VERBS, User
from kschedd.api.text.times import stamp
from kschedd.apiserver.codec.negotiation import json_response
from kschedd.apiserver.codec.status import StatusError
from kschedd.apiserver.handlers.writing import received
from kschedd.apiserver.requests import ApiCall
from kschedd.apiserver.services import FaceServices
from kschedd.http.server import HttpResponse

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
    spec: Mapping[str, Any] = raw.get("spec") or {}
    match resource.name:
        case "selfsubjectreviews":
            answer["metadata"] = {"creationTimestamp": stamp(face.now())}
            answer["status"] = {"userInfo": {"username": user.name, "groups": list(user.groups)}}
        case "selfsubjectrulesreviews":
            if not spec.get("namespace"):
                raise StatusError(400, "BadRequest", "no namespace on request")
            answer["spec"] = {}
            answer["status"] = _rules(user)
        case "tokenreviews":
            answer["spec"] = spec
            found = face.tokens.user_of(str(spec.get("token") or ""))
            answer["status"] = (
                {"user": {}, "error": "invalid bearer token"}
                if found is None
                else {"authenticated": True, "user": {"username": found}}
            )
        case _:
            answer["spec"] = spec
            answer["status"] = _allowed(spec, resource.name, user)
    return json_response(answer, 201, request_headers=call.headers)


def _allowed(spec: Mapping[str, Any], review: str, user: User) -> dict[str, Any]:
    if review == "selfsubjectaccessreviews":
        attributes = spec.get("resourceAttributes") or spec.get("nonResourceAttributes") or {}
        if user.may_do_everything or (user.read_only and attributes.get("verb") in READ_VERBS):
            return {"allowed": True}
        if user.read_only:
            return {"allowed": False, "reason": f"{user.name} is read-only here"}
    elif "system:masters" in (spec.get("groups") or ()):
        return {"allowed": True}
    return {"allowed": False, "reason": "kschedd has no RBAC: every authenticated client has full access"}


def _rules(user: User) -> dict[str, Any]:
    everything = ["*"]
    verbs = sorted(READ_VERBS) if user.read_only else everything
    return {
        "resourceRules": [{"verbs": verbs, "apiGroups": everything, "resources": everything}],
        "nonResourceRules": [{"verbs": verbs, "nonResourceURLs": everything}],
        "incomplete": False,
    }
