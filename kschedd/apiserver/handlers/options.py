"""The options of a list or watch in a query, the combinations that are rejected, and continue tokens.

Source: Kubernetes v1.34, apimachinery/pkg/apis/meta/internalversion/validation, apiserver/pkg/storage (continue.go).
Raises: StatusError.
"""

import base64
import json
import re
from typing import Final, Literal

import attrs

from kschedd.api.schemas.fields import FieldError, forbidden, unsupported
from kschedd.api.schemas.unmarshal_errors import json_kind
from kschedd.api.selecting.selector_text import (
    FieldSelector,
    SelectorTextError,
    has_many_terms,
    parse_field_selector,
    parse_selector_text,
)
from kschedd.api.selecting.selectors import LabelSelector
from kschedd.api.text.json_errors import json_error
from kschedd.api.text.json_text import json_value
from kschedd.api.text.numbers import whole_number
from kschedd.apiserver.codec.status import StatusError, bad_request, invalid_options
from kschedd.apiserver.requests import ApiCall, Query
from kschedd.apiserver.services import FaceServices
from kschedd.service.operations.versions import stored_selector
from kschedd.service.request import EXACT, NOT_OLDER, Continue, ReadOptions, Request

_MOST_VERSION: Final = 2**64
_WITH_CONTINUE: Final = "resourceVersionMatch is forbidden when continue is provided"
LATEST: Final = -1
"""The version in a token for a list that continues with the current objects."""


async def reading_request(face: FaceServices, call: ApiCall, verb: Literal["list", "watch"] = "list") -> Request:
    """Return the request for a list or watch in this query. Raises StatusError."""
    resource = call.target.resource
    options = await _options(face, call, watch=verb == "watch", api_version=resource.api_version)
    namespace = call.target.namespace if resource.namespaced else ""
    return Request(verb, resource.stored, namespace, reading=attrs.evolve(options, selected_in=resource.stored_kind))


async def _options(face: FaceServices, call: ApiCall, *, watch: bool, api_version: str) -> ReadOptions:
    """Return the options in the query; selectors with many terms are parsed in a thread."""
    query = call.query
    if not any(map(has_many_terms, (query.text("labelSelector"), query.text("fieldSelector")))):
        return _parsed(query, watch=watch, api_version=api_version)
    return await face.shares.workers.run(
        call.client, lambda given_up: _parsed(query, watch=watch, api_version=api_version)
    )


def _parsed(query: Query, *, watch: bool, api_version: str) -> ReadOptions:
    timeout = query.integer("timeoutSeconds")
    limit = query.integer("limit")
    labels, fields = _selectors(query)
    initial = query.optional_flag("sendInitialEvents")
    match = query.text("resourceVersionMatch")
    _check_combination(query, match, initial, watch)
    version = _version(query.text("resourceVersion"), watch)
    cont = None
    if not watch and query.text("continue"):
        if version:
            raise bad_request("specifying resource version is not allowed when using continue")
        cont = read_continue(query.text("continue"))
    return ReadOptions(
        labels,
        stored_selector(fields, api_version),
        version,
        match,
        max(limit or 0, 0),
        cont,
        timeout,
        query.flag("allowWatchBookmarks"),
        initial,
    )


def _selectors(query: Query) -> tuple[LabelSelector | None, FieldSelector | None]:
    text = query.text("labelSelector")
    try:
        labels = parse_selector_text(text) if text else None
    except SelectorTextError as error:
        raise bad_request(error.why) from None
    text = query.text("fieldSelector")
    try:
        fields = parse_field_selector(text) if text else None
    except SelectorTextError as error:
        raise bad_request(error.why) from None
    return labels, fields


def _version(text: str, watch: bool) -> int | None:
    if not text:
        return None
    number = whole_number(text)
    if number is not None and number < _MOST_VERSION:
        return number
    wrong = "value out of range" if text.isascii() and text.isdigit() else "invalid syntax"
    parsed = f'strconv.ParseUint: parsing "{text[:100]}": {wrong}'
    why = f'resourceVersion: Invalid value: "{text[:100]}": {parsed}'
    if watch:
        raise StatusError(500, "", why)
    raise bad_request(f"invalid resource version: {why}")


def _check_combination(query: Query, match: str, initial: bool | None, watch: bool) -> None:
    version = query.text("resourceVersion")
    where = "resourceVersionMatch"
    faults: list[FieldError] = []
    if watch:
        if initial is None:
            if match:
                why = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
                faults.append(forbidden(where, why))
        elif match != NOT_OLDER:
            faults.append(forbidden(where, f"sendInitialEvents requires setting resourceVersionMatch to {NOT_OLDER}"))
        if match and match != NOT_OLDER:
            faults.append(unsupported(where, match, (NOT_OLDER,)))
        if match and query.text("continue"):
            faults.append(forbidden(where, _WITH_CONTINUE))
    else:
        if match:
            if not version:
                faults.append(forbidden(where, "resourceVersionMatch is forbidden unless resourceVersion is provided"))
            if query.text("continue"):
                faults.append(forbidden(where, _WITH_CONTINUE))
            if match not in (EXACT, NOT_OLDER):
                faults.append(unsupported(where, match, (EXACT, NOT_OLDER, "")))
            if match == EXACT and version == "0":
                faults.append(forbidden(where, 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"'))
        if initial is not None:
            faults.append(forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list"))
    if faults:
        raise invalid_options("ListOptions", faults)


# Continue tokens

_TOKEN_VERSION: Final = "meta.k8s.io/v1"
_UNCLEAN: Final = frozenset(("", ".", ".."))  # path segments that Go's path.Clean removes
_NO_BASE64: Final = re.compile("[^A-Za-z0-9_-]")


def continue_token(version: int, after: tuple[str, str]) -> str:
    namespace, name = after
    start = f"{namespace}/{name}\0" if namespace else f"{name}\0"
    token = json.dumps({"v": _TOKEN_VERSION, "rv": version, "start": start}, separators=(",", ":"))
    return base64.urlsafe_b64encode(token.encode()).decode().rstrip("=")


def read_continue(text: str) -> Continue:
    wrong = _NO_BASE64.search(text)
    if wrong or len(text) % 4 == 1:
        raise _wrong_token(f"illegal base64 data at input byte {wrong.start() if wrong else len(text) - 1}")
    data = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode("utf-8", "surrogateescape")
    try:
        token = json_value(data)
    except ValueError as fault:
        raise _wrong_token(json_error(data) or str(fault)) from None
    if not isinstance(token, dict):
        raise _wrong_token(f"json: cannot unmarshal {json_kind(token)} into Go value of type storage.continueToken")
    if token.get("v") != _TOKEN_VERSION:
        raise _wrong_token(f"server does not recognize this encoded version {str(token.get('v') or '')[:100]}")
    version, start = token.get("rv") or 0, token.get("start") or ""
    if type(version) is not int or version == 0:
        raise _wrong_token(f"incorrect encoded start resourceVersion (version {_TOKEN_VERSION})")
    if not isinstance(start, str) or not start:
        raise _wrong_token(f"encoded start key empty (version {_TOKEN_VERSION})")
    start = start.removeprefix("/")
    if not _UNCLEAN.isdisjoint(start.split("/")):
        raise _wrong_token(start[:100])
    namespace, slash, name = start.rstrip("\0").rpartition("/")
    return Continue(version, (namespace if slash else "", name))


def _wrong_token(why: str) -> StatusError:
    return bad_request(f"invalid continue token: continue key is not valid: {why}")
