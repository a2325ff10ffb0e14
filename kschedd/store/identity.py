"""Identity: a write cannot change the identity of its object.

An update or a patch may repeat an object's kind, apiVersion, name, namespace and UID, but may not change them; most of
them may be omitted. There is one exception: an object of a kind with several versions is stored with the version of its
last write.
Source: Kubernetes v1.34, apiserver/pkg/endpoints/handlers/{patch,update}.go, registry/rest/create.go
(EnsureObjectNamespaceMatchesRequestNamespace), apimachinery's ValidateObjectMetaUpdate.
"""

import json
from collections.abc import Mapping
from typing import Any, Final

from kschedd.api.objects import Object, Raw
from kschedd.api.schemas.fields import FieldError, invalid
from kschedd.api.schemas.kinds import BY_NAME
from kschedd.store.errors import BadRequest, Invalid

_LONGEST_SHOWN: Final = 1000


def same_object(old: Object, patched: Raw) -> dict[str, Any]:
    """Return the patched object with the original identity, except the uid. Errors: BadRequest and Invalid."""
    api_version = _api_version(old, patched)
    meta = patched.get("metadata")
    if meta is not None and not isinstance(meta, Mapping):
        raise Invalid(old.kind, old.name, (invalid("metadata", meta, "must be a mapping"),))
    if meta is None or api_version is None or not meta.get("name"):
        # Without an apiVersion, the API server decodes the object into its internal version, which contains no name.
        why = f"the name of the object ({old.name} based on URL) was undeterminable: name must be provided"
        raise BadRequest(old.kind, old.name, why)
    if meta["name"] != old.name:
        why = f"the name of the object ({_shown(meta['name'])}) does not match the name on the URL ({old.name})"
        raise BadRequest(old.kind, old.name, why)
    if old.namespace and (meta.get("namespace") or old.namespace) != old.namespace:
        why = "the namespace of the provided object does not match the namespace sent on the request"
        raise BadRequest(old.kind, old.name, why)
    return {**patched, "kind": old.raw["kind"], "apiVersion": api_version}


def check_path(kind: str, namespace: str, name: str, raw: Raw) -> None:
    """Raise BadRequest if the object created by an apply is not the object in the request's path."""
    meta = raw.get("metadata") or {}
    if (meta.get("namespace") or namespace) != namespace:
        why = "the namespace of the provided object does not match the namespace sent on the request"
        raise BadRequest(kind, name, why)
    if not meta.get("name"):
        why = f"the name of the object ({name} based on URL) was undeterminable: name must be provided"
        raise BadRequest(kind, name, why)
    if meta["name"] != name:
        why = f"the name of the object ({_shown(meta['name'])}) does not match the name on the URL ({name})"
        raise BadRequest(kind, name, why)


def _api_version(old: Object, patched: Raw) -> str | None:
    """Return the apiVersion of the patched object; None if the patch removed it.

    Raises an error if the kind was changed.
    """
    kind, api_version = patched.get("kind") or old.raw["kind"], patched.get("apiVersion")
    if kind == old.raw["kind"] and (not api_version or reads(old, api_version)):
        return api_version or None
    known = BY_NAME.get(old.kind)
    if known is None and kind == old.raw["kind"]:
        raise BadRequest(old.kind, old.name, _other_version(old, api_version))
    why = f'no kind "{_shown(kind)}" is registered for version "{_shown(api_version)}"'
    document = json.dumps(patched, default=str)[:_LONGEST_SHOWN]
    raise Invalid("", "", (FieldError("patch", None, f"Invalid value: {json.dumps(document)}: {why}"),))


def check_version(old: Object, raw: Raw) -> None:
    """Raise BadRequest if an update contains an apiVersion that does not exist for this kind."""
    api_version = raw.get("apiVersion")
    if not api_version or reads(old, api_version):
        return
    if old.kind not in BY_NAME:
        raise BadRequest(old.kind, old.name, _other_version(old, api_version))
    shown, kind = _shown(api_version), old.raw["kind"]
    why = f'no kind "{kind}" is registered for version "{shown}"'
    raise BadRequest(old.kind, old.name, f'{kind} in version "{shown}" cannot be handled as a {kind}: {why}')


def reads(old: Object, api_version: object) -> bool:
    """Return whether this object may be written in this apiVersion."""
    known = BY_NAME.get(old.kind)
    return api_version == old.raw.get("apiVersion") or (known is not None and api_version in known.api_versions)


def _other_version(old: Object, api_version: object) -> str:
    expected = old.raw.get("apiVersion")
    return f"the API version in the data ({_shown(api_version)}) does not match the expected API version ({expected})"


def _shown(value: object) -> str:
    return str(value)[:100]
