"""Request info: verb, resource, namespace, name and subresource of a request, read from its method and path.

Source: Kubernetes v1.34, apiserver/pkg/endpoints/request/requestinfo.go.
Raises: StatusError.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import parse_qsl, unquote

import attrs

from kschedd.access.requests import AccessRequest
from kschedd.access.users import User
from kschedd.api.schemas.decoding import FieldValidation
from kschedd.api.schemas.fields import FieldError, unsupported
from kschedd.api.selecting.names import path_segment
from kschedd.api.text.numbers import whole_number
from kschedd.apiserver.catalogue.resources import Catalogue, Resource
from kschedd.apiserver.codec.status import bad_request, invalid_options, method_not_allowed, not_found_path
from kschedd.http.protocol import HttpRequest
from kschedd.http.server import Peer

_BY_METHOD: Final = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_OF_NAMESPACES: Final = frozenset(("status", "finalize"))
CONNECTED: Final = frozenset(("exec", "attach", "portforward", "proxy"))


class Query:
    """The parameters after the question mark. The first of repeated parameters counts."""

    def __init__(self, text: str) -> None:
        self._values: dict[str, str] = {}
        for name, value in parse_qsl(text, keep_blank_values=True, max_num_fields=200):
            self._values.setdefault(name, value)

    def text(self, name: str) -> str:
        return self._values.get(name, "")

    def __contains__(self, name: str) -> bool:
        return name in self._values

    def flag(self, name: str) -> bool:
        """Return a flag. An absent flag is false; an invalid boolean is true, as in kube-apiserver."""
        value = self._values.get(name)
        return value is not None and value != "0" and value.lower() != "false"

    def optional_flag(self, name: str) -> bool | None:
        return self.flag(name) if name in self._values else None

    def integer(self, name: str) -> int | None:
        value = self._values.get(name)
        if value is None:
            return None
        digits = value[1:] if value[:1] in "+-" else value
        if not digits.isascii() or not digits.isdigit():
            raise bad_request(f'strconv.ParseInt: parsing "{value[:100]}": invalid syntax')
        number = whole_number(digits.lstrip("0") or "0")
        if number is not None and value[:1] == "-":
            number = -number
        if number is None or not -(2**63) <= number < 2**63:
            raise bad_request(f'strconv.ParseInt: parsing "{value[:100]}": value out of range')
        return number

    def items(self) -> Sequence[tuple[str, str]]:
        return list(self._values.items())


@attrs.frozen(eq=False)
class RequestInfo:
    """The target of a request, read from its path.

    `namespace` is "" for all namespaces, or for a cluster-scoped resource.
    """

    verb: str
    resource: Resource
    namespace: str
    name: str
    subresource: str


@attrs.frozen(eq=False)
class ApiCall:
    """A request with its target and parameters."""

    http: HttpRequest
    peer: Peer
    target: RequestInfo
    query: Query
    user: Any
    warnings: list[str] = attrs.field(factory=list)
    """Warnings for the client in addition to the answer, whether or not that is an error."""
    annotations: dict[str, str] = attrs.field(factory=dict)
    """Annotations of the audit event."""

    def annotate(self, annotations: Mapping[str, str]) -> None:
        """Add annotations of the audit event. The first value of a key stays."""
        self.annotations.update({**annotations, **self.annotations})

    @property
    def headers(self) -> Mapping[str, str]:
        return self.http.headers

    @property
    def client(self) -> str:
        return f"http {self.peer.number}"

    @property
    def dry_run(self) -> bool:
        """True for a dry run. Raises StatusError if the value is not supported."""
        if faults := self.dry_run_faults:
            raise invalid_options(self.options, faults)
        return self.query.text("dryRun") == "All"

    @property
    def dry_run_faults(self) -> list[FieldError]:
        given = self.query.text("dryRun")
        if given in ("", "All"):
            return []
        return [FieldError("dryRun", given, f'Unsupported value: ["{given[:100]}"]: supported values: "All"')]

    @property
    def options(self) -> str:
        """The kind of the options of a write."""
        kind = {"create": "CreateOptions", "patch": "PatchOptions", "update": "UpdateOptions"}
        return kind.get(self.target.verb, "DeleteOptions")


def field_validation(query: Query) -> FieldValidation:
    """Return how unknown fields are treated; by default they are dropped with a warning."""
    match query.text("fieldValidation"):
        case "Strict":
            return "Strict"
        case "Ignore":
            return "Ignore"
    return "Warn"


def field_validation_faults(query: Query) -> list[FieldError]:
    given = query.text("fieldValidation")
    if given in ("", "Ignore", "Strict", "Warn"):
        return []
    return [unsupported("fieldValidation", given[:100], ("", "Ignore", "Strict", "Warn"))]


def split_target(target: bytes) -> tuple[str, Query]:
    """Return the decoded path and parameters of a request's target."""
    text = target.decode("latin-1")
    path, _, query = text.partition("?")
    if not path.startswith("/"):
        path = "/" + path.partition("://")[2].partition("/")[2]  # an absolute URL, which proxies send
    try:
        return unquote(path, errors="strict"), Query(query)
    except (UnicodeDecodeError, ValueError):
        raise bad_request("the request's target cannot be decoded") from None


def find_target(method: str, path: str, query: Query, catalogue: Catalogue) -> RequestInfo:
    """Return the target of a request. Raises StatusError if the resource does not exist or does not have the method."""
    parts = [part for part in path.split("/") if part]
    if parts[0] == "api":
        group, rest = "", parts[1:]
    else:
        group, rest = parts[1], parts[2:]
    version, rest = rest[0], rest[1:]
    watched = rest[:1] == ["watch"]
    if watched:
        rest = rest[1:]
    namespace = ""
    if rest[:1] == ["namespaces"] and len(rest) > 2 and rest[2] not in _OF_NAMESPACES:
        namespace, rest = rest[1], rest[2:]
    if not rest or (len(rest) > 3 and rest[2] != "proxy"):
        raise not_found_path()
    resource = catalogue.find(group, version, rest[0])
    if resource is None or (namespace and not resource.namespaced):
        raise not_found_path()
    name = rest[1] if len(rest) > 1 else ""
    subresource = rest[2] if len(rest) > 2 else ""
    if resource.namespaced and not namespace and name:
        raise not_found_path()
    verb = _verb(method, name, watched or (not name and query.flag("watch")))
    return RequestInfo(verb, resource, namespace, name, _checked(resource, verb, name, namespace, subresource))


def access_request(method: str, path: str, query: Query, user: User) -> AccessRequest:
    """Return the request as authorization sees it, read from the path alone: the resource need not exist.

    A list or watch of one object by `fieldSelector=metadata.name=NAME` has this name.
    """
    parts = [part for part in path.split("/") if part]
    start = {"api": 2, "apis": 3}.get(parts[0] if parts else "", len(parts))
    rest = parts[start:]
    if not rest:
        return AccessRequest(user, method.lower(), path=path)
    group = parts[1] if start == 3 else ""
    verb = "get" if method in ("GET", "HEAD") else _BY_METHOD.get(method, "")
    if rest[0] in ("watch", "proxy") and len(rest) > 1:
        verb, rest = rest[0], rest[1:]
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 1:
        namespace = rest[1]
        if len(rest) > 2 and rest[2] not in _OF_NAMESPACES:
            rest = rest[2:]
    name, subresource = rest[1] if len(rest) > 1 else "", rest[2] if len(rest) > 2 and verb != "proxy" else ""
    if verb == "get" and not name:
        verb = "watch" if query.flag("watch") else "list"
        name = _selected_name(query.text("fieldSelector"))
    elif verb == "delete" and not name:
        verb = "deletecollection"
    return AccessRequest(user, verb, group, rest[0], subresource, namespace, name)


def _selected_name(selector: str) -> str:
    """Return the name that a field selector requires; "" if it selects objects of several names."""
    for requirement in selector.split(","):
        field, equals, name = requirement.partition("=")
        if equals and field == "metadata.name":
            name = name.removeprefix("=")
            return "" if path_segment(name) else name
    return ""


def _verb(method: str, name: str, watched: bool) -> str:
    if method in ("GET", "HEAD"):
        return "watch" if watched else "get" if name else "list"
    if method not in _BY_METHOD:
        raise method_not_allowed()
    if method == "DELETE" and not name:
        return "deletecollection"
    return _BY_METHOD[method]


def _checked(resource: Resource, verb: str, name: str, namespace: str, subresource: str) -> str:
    if subresource:
        known = resource.subresources.get(subresource)
        if known is None:
            raise not_found_path()
        if subresource not in CONNECTED and verb not in known.verbs:
            raise method_not_allowed()
        return subresource
    allowed = verb in resource.verbs
    if (verb == "create" and name) or (verb in ("update", "patch") and not name):
        allowed = False
    if verb == "create" and resource.namespaced and not namespace and "namespaces" not in resource.name:
        raise method_not_allowed()
    if not allowed:
        raise method_not_allowed()
    return ""
