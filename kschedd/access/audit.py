"""Audit events of writes, as audit.k8s.io/v1 events of level Metadata in the format of kube-apiserver.

An event contains the user (on a Unix socket also the peer's process), the verb, the object, the small parameters, the
time, the address and the result. For a method of the socket, the verb is the method name, and the requestURI is
`/rpc/METHOD`. Bodies are not included. All functions are pure: times and ids are parameters.
"""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

import attrs

from kschedd.access.users import Caller, User

_PREFIX: Final = "kschedd.io/"
_LONGEST: Final = 1024
# Parameters that contain objects, which may be large or secret.
_BODIES: Final = frozenset(("manifest", "manifests", "patch", "text", "configs", "params", "token"))
# HTTP status for error codes of the socket; all other codes mean 400.
_STATUS: Final = {
    "already_exists": 409,
    "cancelled": 499,
    "conflict": 409,
    "forbidden": 403,
    "gone": 410,
    "internal": 500,
    "invalid": 422,
    "journal": 503,
    "no_match": 404,
    "not_found": 404,
    "shutting_down": 503,
    "timeout": 504,
    "too_large": 413,
    "too_many": 429,
    "too_many_requests": 429,
}


@attrs.frozen
class AuditOutcome:
    """The outcome of a call; `reason` and `message` describe an error, and are "" after success."""

    code: int = 200
    reason: str = ""
    message: str = ""

    @classmethod
    def of_error(cls, code: str, message: str) -> "AuditOutcome":
        """Return the outcome that an error code of the socket represents."""
        return cls(_STATUS.get(code, 400), code, message)


@attrs.frozen(eq=False)
class AuditedCall:
    """A write, described before it is performed. `received_s` is the time of receipt in seconds since the epoch."""

    caller: Caller
    verb: str
    uri: str
    received_s: float
    object_ref: Mapping[str, str] = attrs.field(factory=dict)
    annotations: Mapping[str, str] = attrs.field(factory=dict)
    user_agent: str = ""

    @classmethod
    def of_method(cls, caller: Caller, method: str, args: Mapping[str, Any], received_s: float) -> "AuditedCall":
        """Return the record of a call to a socket method with its parameters."""
        given = {name: value for name, value in args.items() if value is not None and name not in _BODIES}
        noted = {f"{_PREFIX}params": shortened(json.dumps(given, default=str, ensure_ascii=False))} if given else {}
        return cls(caller, method, f"/rpc/{method}", received_s, _ref_of(method, args), noted)


def _ref_of(method: str, args: Mapping[str, Any]) -> dict[str, str]:
    found = dict(args)
    manifest = args.get("manifest")
    if isinstance(manifest, Mapping):
        metadata = manifest.get("metadata")
        found.update(metadata if isinstance(metadata, Mapping) else {}, kind=manifest.get("kind"))
    kind = found.get("kind") or {"nodes": "Node", "pods": "Pod"}.get(method.partition(".")[0])
    named = {"resource": kind, "namespace": found.get("namespace"), "name": found.get("name")}
    return {field: shortened(value) for field, value in named.items() if kind and isinstance(value, str) and value}


def ref_of_path(path: str) -> dict[str, str]:
    """Return the object that a path of the Kubernetes REST API names."""
    parts = [part for part in path.split("/") if part]
    if parts[:1] == ["api"]:
        group, version, rest = "", parts[1:2], parts[2:]
    elif parts[:1] == ["apis"]:
        group, version, rest = "".join(parts[1:2]), parts[2:3], parts[3:]
    else:
        return {}
    namespace = ""
    if rest[:1] == ["namespaces"] and len(rest) > 2 and rest[2] not in ("status", "finalize"):
        namespace, rest = rest[1], rest[2:]
    named = {
        "resource": "".join(rest[:1]),
        "namespace": namespace,
        "name": "".join(rest[1:2]),
        "apiGroup": group,
        "apiVersion": "".join(version),
        "subresource": "/".join(rest[2:]),
    }
    return {field: shortened(value) for field, value in named.items() if value}


def shortened(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}... ({len(text)} characters)"


def audit_event(call: AuditedCall, outcome: AuditOutcome, ended_s: float, audit_id: str) -> dict[str, Any]:
    """Return the Event at stage ResponseComplete."""
    status: dict[str, Any] = {"metadata": {}, "code": outcome.code}
    if outcome.reason:
        status |= {"status": "Failure", "reason": outcome.reason, "message": shortened(outcome.message)}
    asking, acting = call.caller.user, None
    if asking.impersonated:
        asking, acting = User(asking.by, asking.by_groups), asking
    event: dict[str, Any] = {
        "kind": "Event",
        "apiVersion": "audit.k8s.io/v1",
        "level": "Metadata",
        "auditID": audit_id,
        "stage": "ResponseComplete",
        "requestURI": shortened(call.uri),
        "verb": call.verb,
        "user": _user(asking, call.caller),
    }
    if acting is not None:
        event["impersonatedUser"] = _user(acting, None)
    event["sourceIPs"] = [call.caller.address] if call.caller.address else []
    for field, value in (("userAgent", call.user_agent), ("objectRef", dict(call.object_ref))):
        if value:
            event[field] = value
    return event | {
        "responseStatus": status,
        "requestReceivedTimestamp": _micro_time(call.received_s),
        "stageTimestamp": _micro_time(ended_s),
        "annotations": dict(call.annotations),
    }


def _user(user: User, caller: Caller | None) -> dict[str, Any]:
    identity: dict[str, Any] = {"username": user.name}
    if user.uid:
        identity["uid"] = user.uid
    identity["groups"] = list(user.groups)
    if caller is not None and caller.process:
        identity["extra"] = {f"{_PREFIX}pid": [str(caller.process)], f"{_PREFIX}uid": [str(caller.uid)]}
    return identity


def _micro_time(seconds: float) -> str:
    """Return the time in the format of metav1.MicroTime."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
