"""Custom resources: kinds defined by CustomResourceDefinitions, and errors for kinds that are not served.

A custom object is accepted if a CustomResourceDefinition exists that serves its version; the definition also states
its scope and its names.
Raises: NoMatch.
"""

import difflib
from collections.abc import Iterable, Mapping
from typing import Any, Final

from kschedd.api.kinds import BY_NAME, KINDS, Kind, group_of, kind_of
from kschedd.api.objects import Object
from kschedd.store.errors import NoMatch

Raw = Mapping[str, Any]

DEFINITION: Final = "CustomResourceDefinition"
CLEANUP: Final = "customresourcecleanup.apiextensions.k8s.io"


def defined_kind(definition: Object) -> Kind:
    """The kind that a definition defines; its served versions, with the storage version first."""
    spec = definition.spec
    names, group = spec.get("names") or {}, str(spec.get("group") or "")
    versions = [version for version in spec.get("versions") or () if version.get("served")]
    versions.sort(key=lambda version: not version.get("storage"))
    name = str(names.get("kind") or "")
    singular, plural = str(names.get("singular") or name.lower()), str(names.get("plural") or "")
    return Kind(
        f"{name}.{group}" if name in BY_NAME else name,
        plural,
        f"{singular}.{group}" if name in BY_NAME else singular,
        tuple(names.get("shortNames") or ()),
        tuple(f"{group}/{version.get('name')}" for version in versions) or (f"{group}/-",),
        spec.get("scope") != "Cluster",
        known=False,
    )


def find_definition(definitions: Iterable[Object], kind: str, api_version: str) -> Object | None:
    """The definition of this kind in this API group; None if there is none."""
    group = group_of(api_version)
    for definition in definitions:
        names = definition.spec.get("names") or {}
        if definition.spec.get("group") == group and names.get("kind") == kind:
            return definition
    return None


def served_kind(definitions: Iterable[Object], raw: Raw) -> Kind:
    """The kind of an object to be created. Raises NoMatch if it is not served in the object's version."""
    name, api_version = str(raw.get("kind")), str(raw.get("apiVersion") or "")
    kind = kind_of(raw)
    if kind.known:
        if api_version in kind.api_versions:
            return kind
        raise NoMatch(name, api_version, f"; {name} is served in {_listed(kind.api_versions)}")
    definitions = list(definitions)
    definition = find_definition(definitions, name, api_version)
    if definition is not None:
        found = defined_kind(definition)
        if api_version in found.api_versions:
            return found
        raise NoMatch(name, api_version, f"; {name} is served in {_listed(found.api_versions)}")
    raise NoMatch(name, api_version, _meant(name, definitions))


def _listed(versions: Iterable[str]) -> str:
    return " and ".join(versions)


def _meant(name: str, definitions: Iterable[Object]) -> str:
    """`; did you mean "Deployment" in version "apps/v1"?`, or "" if no kind has a similar name."""
    kinds = {kind.name.casefold(): kind for kind in (*map(defined_kind, definitions), *KINDS)}
    near = difflib.get_close_matches(name.casefold()[:80], kinds, n=1, cutoff=0.6)
    if not near:
        return ""
    kind = kinds[near[0]]
    return f'; did you mean "{kind.name}" in version "{kind.api_version}"?'
