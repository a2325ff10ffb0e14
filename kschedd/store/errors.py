"""The store's errors, with the API server's messages.

Each class represents one reason that callers handle differently; `rpc_code` is its code in the socket protocol.
Source: Kubernetes v1.34, apimachinery/pkg/api/errors/errors.go.
"""

from collections.abc import Sequence
from typing import Any, ClassVar, Final

import attrs

from kschedd.access.requests import AccessRequest
from kschedd.api.quantity import quoted
from kschedd.api.schemas.fields import FieldError
from kschedd.api.schemas.kinds import BY_NAME, lookup
from kschedd.errors import KscheddError


def resource_of(kind: str) -> str:
    """Return the kind's resource name in error messages, for example `pods`, `deployments.apps`."""
    known = BY_NAME.get(kind) or lookup(kind)
    return f"{known.plural}.{known.group}" if known.known and known.group else known.plural


def _kind_with_group(kind: str) -> str:
    known = BY_NAME.get(kind)
    return f"{kind}.{known.group}" if known is not None and known.group else kind


class ApiError(KscheddError):
    """A rejected request, with its HTTP status and reason, and its code in the socket protocol."""

    rpc_code: ClassVar[str] = "refused"
    code: ClassVar[int] = 500
    reason: ClassVar[str] = ""

    def __init_subclass__(cls, rpc_code: str = "", code: int = 0, reason: str | None = None) -> None:
        """Set these class attributes; a subclass inherits all others."""
        super().__init_subclass__(rpc_code)
        if code:
            cls.code = code
        if reason is not None:
            cls.reason = reason


@attrs.define(eq=False)
class NotFound(ApiError, rpc_code="not_found", code=404, reason="NotFound"):
    kind: str
    name: str

    def __str__(self) -> str:
        return f'{resource_of(self.kind)} "{self.name}" not found'


@attrs.define(eq=False)
class AlreadyExists(ApiError, rpc_code="already_exists", code=409, reason="AlreadyExists"):
    kind: str
    name: str
    deleting: bool = False
    other: str = ""  # apiVersion of the existing object, if its group differs

    def __str__(self) -> str:
        begin = "object is being deleted: " if self.deleting else ""
        end = f" in {self.other}: object names are shared by all kinds with this name" if self.other else ""
        return f'{begin}{resource_of(self.kind)} "{self.name}" already exists{end}'


MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"


@attrs.define(eq=False)
class Conflict(ApiError, rpc_code="conflict", code=409, reason="Conflict"):
    """The object is not in the state that the request requires; the client must read it again."""

    kind: str
    name: str
    why: str = MODIFIED
    subresource: str = ""

    def __str__(self) -> str:
        resource = resource_of(self.kind) + (f"/{self.subresource}" if self.subresource else "")
        return f'Operation cannot be fulfilled on {resource} "{self.name}": {self.why}'


@attrs.define(eq=False)
class MalformedVersion(ApiError, rpc_code="invalid"):
    """A resourceVersion that is not a number. The response has code 500 and no reason, as in kube-apiserver."""

    version: str

    def __str__(self) -> str:
        return f"strconv.ParseUint: parsing {quoted(self.version[:100])}: invalid syntax"


@attrs.define(eq=False)
class PreconditionFailed(Conflict):
    """A deletion or an eviction whose UID or resourceVersion differs from the object's."""

    def __str__(self) -> str:
        return f'Operation cannot be fulfilled on {_kind_with_group(self.kind)} "{self.name}": {self.why}'


_MOST_FAULTS: Final = 1_000
_LONGEST: Final = 256 << 10  # maximum number of characters of all errors together


def _listed(faults: Sequence[FieldError]) -> tuple[FieldError, ...]:
    """Return the errors that the message contains.

    Their number is limited, because an object can have errors several times its size.
    """
    if len(faults) <= _FEW_FAULTS:
        return tuple(faults)
    length = count = 0
    for fault in faults[:_MOST_FAULTS]:
        length += len(fault.path) + len(fault.why)
        if length > _LONGEST:
            break
        count += 1
    if not (left := len(faults) - count):
        return tuple(faults)
    return (*faults[:count], FieldError("", None, f"Too many: {left} more faults are not listed"))


_FEW_FAULTS: Final = 50


@attrs.define(eq=False)
class Invalid(ApiError, rpc_code="invalid", code=422, reason="Invalid"):
    """An object that fails validation, with the errors and their field paths."""

    kind: str
    name: str
    faults: tuple[FieldError, ...] = attrs.field(converter=_listed)

    def __str__(self) -> str:
        unique = tuple(dict.fromkeys(map(str, self.faults)))
        why = unique[0] if len(unique) == 1 else "[" + ", ".join(unique) + "]"
        return f"{_kind_with_group(self.kind)} {quoted(self.name)} is invalid: {why}"


@attrs.define(eq=False)
class Undecodable(Invalid, code=400, reason="BadRequest"):
    """An object with values of a wrong type, and the field paths of all such values."""


@attrs.define(eq=False)
class InvalidOptions(Invalid):
    """Request options (PatchOptions) that contradict each other or are incomplete."""

    def __str__(self) -> str:
        unique = tuple(dict.fromkeys(map(str, self.faults)))
        why = unique[0] if len(unique) == 1 else "[" + ", ".join(unique) + "]"
        return f'{self.kind}.meta.k8s.io "{self.name}" is invalid: {why}'


@attrs.define(eq=False)
class BadRequest(ApiError, rpc_code="bad_request", code=400, reason="BadRequest"):
    """A request with a body that does not match the object in its path."""

    kind: str
    name: str
    why: str


@attrs.define(eq=False)
class Refused(ApiError, rpc_code="invalid"):
    """A body that upstream rejects with code 500 and without a reason."""

    why: str


@attrs.define(eq=False)
class InvalidScale(Invalid):
    """A Scale that fails validation."""

    kind: str = attrs.field(default="Scale", init=False)
    name: str
    faults: tuple[FieldError, ...] = attrs.field(converter=_listed)

    def __str__(self) -> str:
        return f'Scale.autoscaling "{self.name}" is invalid: {self.faults[0]}'


@attrs.define(eq=False)
class DefinitionTerminating(ApiError, rpc_code="conflict", code=405, reason="MethodNotAllowed"):
    """A new custom resource whose definition is being deleted; `resource` is the plural name of the resource."""

    group: str
    resource: str

    def __str__(self) -> str:
        return "create not allowed while custom resource definition is terminating"


@attrs.define(eq=False)
class NoMatch(ApiError, rpc_code="no_match", code=404, reason="NotFound"):
    """A kind that is not served, or not served in this version."""

    kind: str
    api_version: str
    hint: str = ""

    def __str__(self) -> str:
        return f'no matches for kind "{self.kind[:100]}" in version "{self.api_version[:100]}"{self.hint}'


@attrs.define(eq=False)
class BadPatch(ApiError, rpc_code="invalid", code=400, reason="BadRequest"):
    """A malformed patch, or one that cannot be applied to the object in its current state."""

    why: str


@attrs.define(eq=False)
class PatchFailed(BadPatch, code=500, reason=""):
    """A patch that violates the rules of its patch type, such as a missing merge key: code 500, without a reason."""


@attrs.define(eq=False)
class ApplyConflict(ApiError, rpc_code="conflict", code=409, reason="Conflict"):
    """A server-side apply that would change fields of other managers; `causes` contains each field and its message."""

    why: str
    causes: tuple[tuple[str, str], ...] = ()


@attrs.define(eq=False)
class ApplySchemaError(ApiError, rpc_code="invalid"):
    """A configuration that does not match its kind's schema.

    The response has code 500 and no reason, as in kube-apiserver.
    """

    why: str


@attrs.define(eq=False)
class StrictDecodingError(ApiError, rpc_code="invalid", code=400, reason="BadRequest"):
    """An object with unknown or duplicate fields, which are all listed in `faults`."""

    why: str
    faults: tuple[FieldError, ...] = ()


@attrs.define(eq=False)
class Forbidden(ApiError, rpc_code="forbidden", code=403, reason="Forbidden"):
    """A request that admission rejects."""

    kind: str
    name: str
    why: str

    def __str__(self) -> str:
        return f'{resource_of(self.kind)} "{self.name}" is forbidden: {self.why}'


@attrs.define(eq=False)
class AccessDenied(ApiError, rpc_code="forbidden", code=403, reason="Forbidden"):
    """A request for which the user has no permission; `why` is the reason of the authorizer."""

    request: AccessRequest
    why: str = ""

    def __str__(self) -> str:
        return self.request.refusal_of_object(self.why)


@attrs.define(eq=False)
class Mirrored(ApiError, rpc_code="forbidden", code=403, reason="Forbidden"):
    """A write to a mirrored object, which can be changed only in its original cluster."""

    server: str

    def __str__(self) -> str:
        return (
            f"objects mirrored from {self.server} can only be changed there; "
            "use `kschedd fork` to try changes on a copy"
        )


@attrs.define(eq=False)
class PolicyDenied(Forbidden):
    """A write that an admission policy or webhook rejects, with the reason and the HTTP status that it states."""

    policy_reason: str
    policy_code: int
    causes: tuple[str, ...] = ()
    whole: bool = False  # `why` is the whole message

    def __str__(self) -> str:
        return self.why if self.whole else Forbidden.__str__(self)


@attrs.define(eq=False)
class WebhookDenied(ApiError, rpc_code="forbidden"):
    """A write that an admission webhook rejects, with the status that the webhook returned."""

    webhook_code: int
    webhook_reason: str
    why: str
    details: Any = None


@attrs.define(eq=False)
class WebhookFailed(ApiError, rpc_code="webhook", reason="InternalError"):
    """A write for which an admission webhook could not be called, or returned an invalid response."""

    why: str

    def __str__(self) -> str:
        return f"Internal error occurred: {self.why}"


class Unadmitted(Forbidden):
    """A request that mutating admission rejects before a name is generated."""


@attrs.define(eq=False)
class AdmissionError(ApiError):
    """An error of an admission plugin that cannot decide, or that has its own message: code 500, without a reason."""

    why: str


@attrs.define(eq=False)
class AdmissionPluginFailed(ApiError, rpc_code="plugin", reason="InternalError"):
    """An admission plugin from a plugin file that raised or returned an invalid value. Nothing is written."""

    plugin: str
    why: str
    method: str = "validate"

    def __str__(self) -> str:
        return f'Internal error occurred: failed calling admission plugin "{self.plugin}": {self.why}'


@attrs.define(eq=False)
class TooManyRequests(ApiError, rpc_code="too_many_requests", code=429, reason="TooManyRequests"):
    """An eviction that a disruption budget does not allow now.

    `why` is the message of the status cause `DisruptionBudget`. `retry_after_s` is the delay that kube-apiserver
    suggests (0 means none).
    """

    budget: str
    why: str
    retry_after_s: int = 0

    def __str__(self) -> str:
        return "Cannot evict pod as it would violate the pod's disruption budget."


@attrs.define(eq=False)
class MultipleBudgets(ApiError):
    """An eviction of a pod that several disruption budgets cover: code 500, without a reason."""

    budgets: tuple[str, ...]

    def __str__(self) -> str:
        return "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."


@attrs.define(eq=False)
class RangeFull(ApiError, reason="InternalError"):
    """No cluster IP or node port is left for a Service."""

    what: str

    def __str__(self) -> str:
        return f"Internal error occurred: failed to allocate a {self.what}: range is full"


@attrs.define(eq=False)
class Gone(ApiError, rpc_code="gone", code=410, reason="Expired"):
    """The events after this version have been compacted.

    The client must list again, and watch from the version of the list.
    """

    version: int
    oldest: int

    def __str__(self) -> str:
        return f"too old resource version: {self.version} ({self.oldest})"


@attrs.define(eq=False)
class OtherEpoch(ApiError, rpc_code="gone", code=410, reason="Expired"):
    """A version from another epoch than the store's epoch. The client must list the objects again."""

    version: int
    epoch: str

    def __str__(self) -> str:
        return f"resource version {self.version} belongs to another history of this cluster: list again"


@attrs.define(eq=False)
class StillToCome(ApiError, rpc_code="gone", code=504, reason="Timeout"):
    """A version that the store has not reached yet; it is invalid or from another epoch.

    `awaited`: the client may retry, because kube-apiserver waits some seconds for this version.
    """

    version: int
    latest: int
    awaited: bool = True

    def __str__(self) -> str:
        return f"Too large resource version: {self.version}, current: {self.latest}"


@attrs.define(eq=False)
class TooLarge(ApiError, rpc_code="too_large", code=413, reason="RequestEntityTooLarge"):
    """An object that exceeds the maximum size, with the message of etcd."""

    kind: str
    name: str
    size: int
    limit: int

    def __str__(self) -> str:
        return "etcdserver: request is too large"
