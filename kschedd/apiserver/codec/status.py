"""Status: kube-apiserver's object for the result of a request, with the reason of an error.

Every error of the store and of this package (`StatusError`) becomes an HTTP status and a Status object with its reason,
details and causes.

Source: Kubernetes v1.34, apimachinery/pkg/api/errors/errors.go.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import attrs

from kschedd.api.schemas.field_labels import FieldLabelError
from kschedd.api.schemas.fields import FieldError
from kschedd.api.schemas.kinds import BY_NAME, lookup
from kschedd.api.selecting.selector_text import SelectorTextError
from kschedd.errors import KscheddError
from kschedd.store import errors as store
from kschedd.store.custom_resources.scale import ScaleUnreadable
from kschedd.store.journal.format import JournalError

Raw = Mapping[str, Any]

_CAUSES: Final = (
    ("Required value", "FieldValueRequired"),
    ("Invalid value", "FieldValueInvalid"),
    ("Duplicate value", "FieldValueDuplicate"),
    ("Unsupported value", "FieldValueNotSupported"),
    ("Forbidden", "FieldValueForbidden"),
    ("Not found", "FieldValueNotFound"),
    ("Too long", "FieldValueTooLong"),
    ("Too many", "FieldValueTooMany"),
    ("Internal error", "InternalError"),
)


_WRONG_TYPE: Final = " in body must be of type "  # a value that the schema of a custom resource rejects
_BAD_OPERATION: Final = "the server rejected our request due to an error in our request"
_VERSION_NEEDED: Final = "Invalid value: 0: must be specified for an update"
_HINT: Final = re.compile(r'; did you mean "[^"]*"\?')


@attrs.define(eq=False)
class StatusError(KscheddError):
    """A rejected request. The reason "" represents upstream's Unknown, which is omitted from the Status."""

    code: int
    reason: str
    message: str
    details: Raw | None = None
    headers: tuple[tuple[str, str], ...] = ()
    metadata: Raw | None = None  # of the Status

    def __str__(self) -> str:
        return self.message


def bad_request(message: str) -> StatusError:
    return StatusError(400, "BadRequest", message)


def not_found_path() -> StatusError:
    """Return the error for a path that names no resource."""
    return StatusError(404, "NotFound", "the server could not find the requested resource", {})


def method_not_allowed() -> StatusError:
    return StatusError(405, "MethodNotAllowed", "the server does not allow this method on the requested resource", {})


def internal_error(why: str) -> StatusError:
    return StatusError(500, "InternalError", f"Internal error occurred: {why}", {"causes": [{"message": why}]})


def invalid_options(kind: str, faults: Sequence[FieldError], name: str = "", group: str = "meta.k8s.io") -> StatusError:
    """Return the error for invalid or contradictory options of a request (ListOptions, DeleteOptions, TokenRequest)."""
    unique = list(dict.fromkeys(map(str, faults)))
    why = unique[0] if len(unique) == 1 else "[" + ", ".join(unique) + "]"
    named = {field: value for field, value in (("name", name), ("group", group)) if value}
    details: dict[str, Any] = {**named, "kind": kind, "causes": causes(faults)}
    return StatusError(422, "Invalid", f'{kind}{group and "."}{group} "{name}" is invalid: {why}', details)


def causes(faults: Sequence[FieldError]) -> list[dict[str, Any]]:
    return [
        {"reason": _cause(fault.why), "message": without_hints(fault.why), "field": fault.path or "<nil>"}
        for fault in faults
    ]


def _cause(why: str) -> str:
    if _WRONG_TYPE in why:
        return "FieldValueTypeInvalid"
    return next((reason for start, reason in _CAUSES if why.startswith(start)), "FieldValueInvalid")


def failure(
    code: int, reason: str, message: str, details: Raw | None = None, metadata: Raw | None = None
) -> dict[str, Any]:
    status: dict[str, Any] = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {} if metadata is None else metadata,
        "status": "Failure",
        "message": message,
    }
    if reason:
        status["reason"] = reason
    if details is not None:
        status["details"] = details
    status["code"] = code
    return status


def success(code: int = 0, details: Raw | None = None) -> dict[str, Any]:
    status: dict[str, Any] = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
    if details is not None:
        status["details"] = details
    if code:
        status["code"] = code
    return status


def refusal_of(error: KscheddError) -> StatusError:
    """Convert any error to a StatusError, with upstream's HTTP status and reason."""
    match error:
        case StatusError():
            return error
        case store.InvalidOptions(kind=kind, faults=faults):
            return invalid_options(kind, faults)
        case store.Invalid(kind=kind, name=name, faults=(FieldError(why=why) as fault,)) if why == _VERSION_NEEDED:
            # The error is raised before the object is read, so it names the resource instead of the kind.
            details = {**_named(kind, name), "causes": causes((fault,))}
            return StatusError(422, "Invalid", f'{store.resource_of(kind)} "{name}" is invalid: {fault}', details)
        case store.TooManyRequests():
            return _too_many(error)
        case store.StillToCome():
            return _too_large_version(error)
        case store.NoMatch():
            return not_found_path()
        case store.BadPatch(why=why) if why.startswith(_BAD_OPERATION):
            return StatusError(422, "Invalid", _BAD_OPERATION, {})
        case store.PolicyDenied(kind=kind, name=name, policy_reason=reason, policy_code=code, causes=found):
            listed = {"causes": [{"message": each} for each in found]} if found else {}
            return StatusError(code, reason, str(error), {**_named(kind, name), **listed})
        case store.WebhookDenied(webhook_code=code, webhook_reason=reason, why=why, details=details):
            return StatusError(code, reason, why, details)
        case store.WebhookFailed(why=why):
            return internal_error(why)
        case store.TooLarge():
            return StatusError(error.code, error.reason, f"HttpRequest entity too large: {error}")
        case store.ApiError():
            return StatusError(error.code, error.reason, without_hints(str(error)), _details(error))
        case ScaleUnreadable():
            return StatusError(500, "", str(error))
        case FieldLabelError(upstream=why) | SelectorTextError(why=why):
            return bad_request(why)
    if isinstance(error, JournalError) or getattr(error, "rpc_code", "") == "shutting_down":
        return StatusError(503, "ServiceUnavailable", str(error), None, (("Retry-After", "1"),))
    return bad_request(str(error))


def _too_large_version(error: store.StillToCome) -> StatusError:
    details: dict[str, Any] = {
        "causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}],
    }
    text = f"Timeout: {error}"
    if not error.awaited:
        return StatusError(504, "Timeout", text, details)
    return StatusError(504, "Timeout", text, {**details, "retryAfterSeconds": 1}, (("Retry-After", "1"),))


def _details(error: store.ApiError) -> Raw | None:
    """Return the details of a Status: the object that the error concerns, and its causes."""
    match error:
        case store.PreconditionFailed(kind=kind, name=name):
            return {"name": name, "kind": kind}
        case store.Conflict(kind=kind, name=name, subresource=subresource):
            return _named(kind, name, subresource)
        case store.NotFound(kind=kind, name=name) | store.AlreadyExists(kind=kind, name=name):
            return _named(kind, name)
        case store.ApplyConflict(causes=found):
            conflicts = [{"reason": "FieldManagerConflict", "message": why, "field": field} for field, why in found]
            return {"causes": conflicts}
        case store.DefinitionTerminating(group=group, resource=resource):
            return {"group": group, "kind": resource}
        case store.InvalidScale(name=name, faults=faults):
            return {"name": name, "group": "autoscaling", "kind": "Scale", "causes": causes(faults)}
        case store.Undecodable():
            return None
        case store.Invalid(kind=kind, name=name, faults=faults):
            return _invalid(kind, name, faults)
        case store.Forbidden(kind=kind, name=name):
            return _forbidden(kind, name, str(error))
    return None


def of_events_group(refusal: StatusError) -> StatusError:
    """Return an error about an Event with the group events.k8s.io instead of the core group, which the store names."""
    details = refusal.details
    if details is None or details.get("kind") != "events":
        return refusal
    named = {"name": details.get("name"), "group": "events.k8s.io", "kind": "events"}
    message = refusal.message.replace("events ", "events.events.k8s.io ", 1)
    return attrs.evolve(refusal, message=message, details={**details, **named})


def of_resource(refusal: StatusError, resource: str, group: str) -> StatusError:
    """Return the error about an object of this resource, with the API group, which the store omits for some kinds."""
    details = refusal.details
    if not group or details is None or "group" in details or details.get("kind") != resource:
        return refusal
    named = {"name": details.get("name"), "group": group, **details}
    message = refusal.message.replace(f"{resource} ", f"{resource}.{group} ", 1)
    return attrs.evolve(refusal, message=message, details=named)


def of_storage(refusal: StatusError, path: str, *, dry_run: bool = False) -> StatusError:
    """Return the error about a wrong uid or version, with the message of upstream's storage layer."""
    before, mark, why = refusal.message.partition(": Precondition failed: ")
    details = refusal.details
    if not mark or details is None or "AdditionalErrorMsg" in before:
        return refusal
    parts = path.split("/")
    space = f"{parts[parts.index('namespaces') + 1]}/" if "namespaces" in parts[:-2] else ""
    root = "" if dry_run else "/registry"
    key = f"{root}/{details.get('kind')}/{space}{details.get('name')}"
    error = f"StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg"
    return attrs.evolve(refusal, message=f"{before}: {error}{mark}{why}")


def without_hints(text: str) -> str:
    """Return a message about unknown fields in upstream's wording, without the suggestions that the store adds."""
    return _HINT.sub("", text)


def _named(kind: str, name: str, subresource: str = "") -> dict[str, Any]:
    known = BY_NAME.get(kind) or lookup(kind)
    details = {"name": name}
    if known.known and known.group:
        details["group"] = known.group
    details["kind"] = known.plural + (f"/{subresource}" if subresource else "")
    return details


def _invalid(kind: str, name: str, faults: Sequence[FieldError]) -> dict[str, Any]:
    details: dict[str, Any] = {"name": name} if name else {}
    known = BY_NAME.get(kind)
    of_definition, _, group = kind.partition(".")
    if known is not None and known.group:
        details["group"] = known.group
    elif known is None and group:
        kind, details["group"] = of_definition, group
    if kind:
        details["kind"] = kind
    return {**details, "causes": causes(faults)}


def _forbidden(kind: str, name: str, message: str) -> dict[str, Any]:
    details: dict[str, Any] = _named(kind, name)
    if "being terminated" in message:
        namespace = message.partition("in namespace ")[2].partition(" ")[0]
        why = f"namespace {namespace} is being terminated"
        details["causes"] = [{"reason": "NamespaceTerminating", "message": why, "field": "metadata.namespace"}]
    return details


def _too_many(error: store.TooManyRequests) -> StatusError:
    """Return the error for an eviction that a budget does not allow.

    The error contains a retry time only while the budget is being computed.
    """
    details: dict[str, Any] = {"causes": [{"reason": "DisruptionBudget", "message": error.why}]}
    headers: tuple[tuple[str, str], ...] = ()
    if error.retry_after_s:
        details["retryAfterSeconds"] = error.retry_after_s
        headers = (("Retry-After", str(error.retry_after_s)),)
    return StatusError(error.code, error.reason, str(error), details, headers)
