"""Request bodies in JSON, YAML or protobuf, decoded into an object of the path's kind.

Source: Kubernetes v1.34, apiserver/pkg/endpoints/handlers (create.go, patch.go, delete.go), apimachinery's serializers.
Raises: StatusError.
"""

import json
import math
import sys
from collections.abc import Sequence
from typing import Any, Final

from kschedd.api.schemas.schema import schema_of
from kschedd.api.schemas.unmarshal_errors import json_kind, unmarshal_error
from kschedd.api.text.json_errors import json_error
from kschedd.api.text.json_text import DEEPEST, too_deep, without_lone_surrogates
from kschedd.apiserver.codec.negotiation import JSON, PROTOBUF, YAML
from kschedd.apiserver.codec.protobuf import ProtobufError, decode_protobuf
from kschedd.apiserver.codec.status import StatusError, bad_request, without_hints

_LONGEST_SUMMARY: Final = 30
UNKNOWN_FORMAT: Final = "the body of the request was in an unknown format - accepted media types include: "
_ACCEPTED: Final = f"{JSON}, {YAML}, {PROTOBUF}"
_YAML: Final = (YAML, "text/yaml", "application/x-yaml")


class Body:
    """A received object, and its bytes.

    `duplicates` contains the paths of repeated fields, of which the last value counts.
    """

    def __init__(self, data: bytes, value: Any, duplicates: tuple[str, ...] = ()) -> None:
        self.data = data
        self.value = value
        self.duplicates = duplicates


def media_type(content_type: str) -> str:
    return content_type.partition(";")[0].strip().lower()


def is_yaml(content_type: str) -> bool:
    return media_type(content_type) in _YAML


def read_body(data: bytes, content_type: str, expected: str) -> Body:
    """Return the value in a body. `expected` is the kind for error messages; "" for the options of a request."""
    media = media_type(content_type) or JSON
    if media == PROTOBUF:
        try:
            return Body(data, decode_protobuf(data))
        except ProtobufError as error:
            raise bad_request(str(error)) from None
    if media != JSON and media not in _YAML:
        raise StatusError(415, "UnsupportedMediaType", UNKNOWN_FORMAT + _ACCEPTED)
    if media == JSON:
        return read_json(data, expected)
    return _read_yaml(data, expected)


def read_json(data: bytes, expected: str | None = None) -> Body:
    """Return the value of a JSON text.

    Raises StatusError; `expected` is as in `read_body`, or None if the value is no object.
    """
    duplicates: list[tuple[int, str]] = []

    def pairs(found: list[tuple[str, Any]]) -> dict[str, Any]:
        made = dict(found)
        if len(made) != len(found):
            seen = set()
            for name, _ in found:
                if name in seen:
                    duplicates.append((id(made), name))
                seen.add(name)
        return made

    try:
        text = without_lone_surrogates(data.decode("utf-8", "replace"))
        value = json.loads(text, object_pairs_hook=pairs, parse_constant=_no_constant, parse_float=_finite)
    except RecursionError:
        raise _too_deep(expected) from None
    except ValueError:
        # The number of digits is the only reason for which Python rejects valid JSON.
        too_long = f"a number has more than {sys.get_int_max_str_digits()} digits"
        why = json_error(data.decode("utf-8", "replace")) or too_long
        raise bad_request(why) if expected is None else _without_kind(data, expected, why) from None
    if data.count(b"{") + data.count(b"[") > DEEPEST and too_deep(value):
        raise _too_deep(expected)
    return Body(data, value, _paths(value, duplicates) if duplicates else ())


def summary(data: bytes) -> str:
    """Return the beginning of an undecodable body for the end of a message.

    Bytes that cannot be JSON are shown in hex.
    """
    if not data:
        return "<empty>"
    begin = data[:_LONGEST_SUMMARY]
    shown = begin.decode("utf-8", "replace") if data[:1] == b"{" else begin.hex()
    return shown if len(data) <= _LONGEST_SUMMARY else f"{shown} ..."


def _unrecognized(expected: str | None) -> str:
    """Return the beginning of a message about an undecodable object."""
    return f"the object provided is unrecognized (must be of type {expected}): " if expected else ""


def _without_kind(data: bytes, expected: str, why: str) -> StatusError:
    """Return the error for a body whose version and kind cannot be read."""
    message = f"{_unrecognized(expected)}couldn't get version/kind; json parse error: {why}"
    return bad_request(f"{message} ({summary(data)})" if expected else message)


def _too_deep(expected: str | None) -> StatusError:
    return bad_request(f"{_unrecognized(expected)}nested more than {DEEPEST} levels deep")


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise bad_request(f"json: cannot unmarshal number {text[:100]} into Go value of type float64")
    return number


def _no_constant(text: str) -> Any:
    raise ValueError(f"{text} is no JSON")


def _paths(value: Any, duplicates: list[tuple[int, str]]) -> tuple[str, ...]:
    wanted: dict[int, list[str]] = {}
    for number, name in duplicates:
        wanted.setdefault(number, []).append(name)
    found: list[str] = []
    waiting: list[tuple[Any, str]] = [(value, "")]
    while waiting:
        here, path = waiting.pop()
        if isinstance(here, dict):
            for name in wanted.get(id(here), ()):
                found.append(f"{path}.{name}" if path else name)
            waiting += [(each, f"{path}.{name}" if path else name) for name, each in here.items()]
        elif isinstance(here, list):
            waiting += [(each, f"{path}[{place}]") for place, each in enumerate(here)]
    return tuple(found)


def _read_yaml(data: bytes, expected: str) -> Body:
    from kschedd.api.text.documents import read_documents

    try:
        documents = read_documents(data.decode("utf-8"))
        first = next(iter(documents), None)
    except UnicodeDecodeError:
        raise bad_request("the body is not UTF-8 text") from None
    if first is None:
        return Body(data, None)
    if first.faults:
        fault = first.faults[0]
        raise bad_request(f"{_unrecognized(expected)}yaml: line {fault.line}: {fault.why}")
    return Body(data, first.value)


def checked_kind(body: Body, api_version: str, kind: str, group: str) -> dict[str, Any]:
    """Return the object with the kind and version of the path. Reject an object of another kind or version."""
    value = _with_kind(body, kind)
    given_kind, given_version = value.get("kind") or kind, value.get("apiVersion") or api_version
    if given_version != api_version or given_kind != kind:
        version = given_version.rpartition("/")[2]
        begin = f'{given_kind} in version "{version}" cannot be handled as a {kind}: '
        if _registered(given_version, given_kind):
            internal = group.partition(".")[0] or "core"
            raise bad_request(f"{begin}converting ({version}.{given_kind}) to ({internal}.{kind}): unknown conversion")
        scheme = 'in scheme "pkg/runtime/scheme.go:110"'
        raise bad_request(f'{begin}no kind "{given_kind}" is registered for version "{given_version}" {scheme}')
    if value.get("kind") and value.get("apiVersion"):
        return value
    return {**value, "apiVersion": api_version, "kind": kind}


def read_delete_options(data: bytes, content_type: str) -> dict[str, Any]:
    """Return the DeleteOptions in a body, of any group and version; every field must have its type."""
    value = _with_kind(read_body(data, content_type, ""), "")
    if (kind := value.get("kind") or "DeleteOptions") != "DeleteOptions":
        version = value.get("apiVersion") or "meta.k8s.io/v1"
        scheme = 'in scheme "pkg/apis/meta/internalversion/scheme/register.go:27"'
        raise bad_request(f'no kind "{kind}" is registered for version "{version}" {scheme}')
    if why := unmarshal_error({**value, "apiVersion": "v1", "kind": "DeleteOptions"}):
        raise bad_request(why)
    return value


def _with_kind(body: Body, expected: str) -> dict[str, Any]:
    """Return the map in a body, or an empty map for an empty body.

    `apiVersion` and `kind` must be strings if present.
    """
    value = body.value
    if value is None:
        return {}
    if not isinstance(value, dict):
        struct = (
            'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'
        )
        why = f"json: cannot unmarshal {json_kind(value)} into Go value of type {struct}"
        raise _without_kind(body.data, expected, why)
    for field in ("apiVersion", "kind"):
        if value.get(field) is not None and not isinstance(value[field], str):
            why = f"json: cannot unmarshal {json_kind(value[field])} into Go struct field .{field} of type string"
            raise _without_kind(body.data, expected, why)
    return value


def _registered(api_version: str, kind: str) -> bool:
    """Return whether a built-in kind or its list has this name."""
    return schema_of(api_version, kind) is not None or (
        kind.endswith("List") and schema_of(api_version, kind.removesuffix("List")) is not None
    )


def warning_headers(warnings: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Return `Warning` header fields, with each text in quotes."""
    return tuple(
        ("Warning", '299 - "' + without_hints(text).replace("\\", "\\\\").replace('"', '\\"') + '"')
        for text in warnings
    )
