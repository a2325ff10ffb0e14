"""Custom resources: kinds defined by CustomResourceDefinitions, and errors for kinds that are not served.

A custom object is accepted if a CustomResourceDefinition serves the version in its manifest. The definition also sets
the scope and the names of the kind. The definition's structural schema defines the fields, their types and their
defaults. Raises: NoMatch, Invalid, Forbidden.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final, Protocol

from kschedd.api.objects import Object
from kschedd.api.schemas.fields import FieldError, invalid
from kschedd.api.schemas.kinds import KINDS, Kind, group_of, kind_of, name_in_group
from kschedd.api.schemas.schema import NO_RULES
from kschedd.api.text.similar import similar_names
from kschedd.store.awaited import WebhookAnswers, checked, evaluated
from kschedd.store.custom_resources.definition_names import is_established
from kschedd.store.custom_resources.rule_kinds import definitions_by, spec_faults
from kschedd.store.custom_resources.scale import scale_faults, scale_paths
from kschedd.store.custom_resources.structural_schema import defaulted, pruned, structural_faults, value_faults
from kschedd.store.custom_resources.validation_rules import definition_rule_faults, has_rules, judged_rules
from kschedd.store.errors import Forbidden, Invalid, NoMatch

Raw = Mapping[str, Any]

DEFINITION: Final = "CustomResourceDefinition"
CLEANUP: Final = "customresourcecleanup.apiextensions.k8s.io"


class DefiningCluster(Protocol):
    """The parts of a cluster that are needed to find custom kinds."""

    @property
    def features(self) -> frozenset[str]: ...
    def list(self, kind: str) -> Sequence[Object]: ...


def definitions(cluster: DefiningCluster) -> list[Object]:
    """Return the established definitions, and the definitions of built-in kinds in this Kubernetes version."""
    made = [each for each in cluster.list(DEFINITION) if is_established(each)]
    return [*definitions_by(cluster.features), *made]


def defined_kind(definition: Object) -> Kind:
    """Return the kind of a definition, with its served versions, the storage version first."""
    spec = definition.spec
    names, group = spec.get("names") or {}, str(spec.get("group") or "")
    versions = [version for version in spec.get("versions") or () if version.get("served")]
    versions.sort(key=lambda version: not version.get("storage"))
    name = str(names.get("kind") or "")
    singular, plural = str(names.get("singular") or name.lower()), str(names.get("plural") or "")
    known_as = name_in_group(name, group)
    return Kind(
        known_as,
        plural,
        singular if known_as == name else f"{singular}.{group}",
        tuple(names.get("shortNames") or ()),
        tuple(f"{group}/{version.get('name')}" for version in versions) or (f"{group}/-",),
        spec.get("scope") != "Cluster",
        known=False,
        selectable=tuple(dict.fromkeys(_selectable(versions))),
    )


def _selectable(versions: Iterable[Raw]) -> Iterator[str]:
    for version in versions:
        for field in version.get("selectableFields") or ():
            yield str(field.get("jsonPath") or "").removeprefix(".")


def served_versions(cluster: DefiningCluster, name: str) -> list[str]:
    """Return the versions in which the kind of this name is served; empty without a definition."""
    kinds = map(defined_kind, definitions(cluster))
    return [version for kind in kinds if kind.name == name for version in kind.api_versions]


def version_of(definition: Object, api_version: str) -> Raw:
    """Return this version's entry in a definition; empty if the version is missing."""
    for version in definition.spec.get("versions") or ():
        if f"{definition.spec.get('group')}/{version.get('name')}" == api_version:
            found: Raw = version
            return found
    return {}


def schema_of(version: Raw) -> Raw | None:
    """Return the schema of a version, or None if the version has no schema."""
    found = (version.get("schema") or {}).get("openAPIV3Schema")
    return found if isinstance(found, Mapping) else None


def has_status(version: Raw) -> bool:
    """Return whether this version has a status subresource, so that only writes to `/status` change the status."""
    return (version.get("subresources") or {}).get("status") is not None


def with_cleanup(definition: Raw, at: str) -> dict[str, Any]:
    """Return the deleted definition with a finalizer, so that it stays until all its objects are deleted."""
    meta = {"deletionTimestamp": at, **definition["metadata"]}
    meta["finalizers"] = [*_but_cleanup(meta), CLEANUP]
    return {**definition, "metadata": meta}


def without_cleanup(definition: Raw) -> dict[str, Any]:
    """Return the definition without the cleanup finalizer."""
    meta = definition["metadata"]
    return {**definition, "metadata": {**meta, "finalizers": _but_cleanup(meta)}}


def _but_cleanup(meta: Raw) -> list[str]:
    return [each for each in meta.get("finalizers") or () if each != CLEANUP]


def check_definition(kind: str, raw: Raw, old: Raw | None, answers: WebhookAnswers | None) -> None:
    """Reject a definition with schemas that are not structural, or rules with errors. Raises Invalid.

    `old` is the previous definition. Raises WebhooksNeeded if checking takes long and `answers` lacks the result.
    """
    if kind != DEFINITION:
        return
    if faults := checked(answers, kind, raw, old, partial(definition_faults, raw, old)):
        raise Invalid(kind, raw["metadata"].get("name") or "", tuple(faults))


def definition_faults(raw: Raw, old: Raw | None = None) -> list[FieldError]:
    """Return the errors in a definition: schemas that are not structural, and rules with errors."""
    schemas, before = _schemas(raw), {} if old is None else dict(_schemas(old))
    unchanged = [name in before and before[name] == schema for name, schema in schemas]
    if schemas and all(schema == schemas[0][1] for _, schema in schemas):  # upstream merges equal schemas
        return _schema_faults(schemas[0][1], "spec.validation.openAPIV3Schema", all(unchanged))
    return [
        fault
        for index, (_, schema) in enumerate(schemas)
        for fault in _schema_faults(schema, f"spec.versions[{index}].schema.openAPIV3Schema", unchanged[index])
    ]


def _schemas(definition: Raw) -> list[tuple[Any, Any]]:
    """Return the names and schemas of a definition's versions."""
    versions = (definition.get("spec") or {}).get("versions") or ()
    return [
        (each.get("name"), (each.get("schema") or {}).get("openAPIV3Schema"))
        for each in versions
        if isinstance(each, Mapping)
    ]


def _schema_faults(schema: Any, path: str, unchanged: bool) -> list[FieldError]:
    if not schema:
        return []
    return structural_faults(schema, path) or list(definition_rule_faults(schema, path, unchanged=unchanged))


_UNCHECKED: Final = invalid(
    "<nil>",
    None,
    "some validation rules were not checked because the object was invalid; correct the existing errors to complete "
    "validation",
)
_BLOCKING: Final = ("Unsupported value", "Required value", "Too long", "Too many")


def _blocks_rules(fault: FieldError) -> bool:
    """Return whether rules are not evaluated because of this violation of the schema."""
    return fault.why.startswith(_BLOCKING) or " in body must be of type " in fault.why


def by_schema(
    definition: Object,
    raw: Raw,
    old: Object | None = None,
    subresource: str = "",
    features: frozenset[str] = NO_RULES,
    answers: WebhookAnswers | None = None,
    warn: Callable[[str], None] = lambda text: None,
) -> dict[str, Any]:
    """Return a custom object with defaults and without unknown fields, according to its schema. Raises Invalid.

    `old` is the previous object, for transition rules. A wrong value that `old` also contains is accepted, and `warn`
    is called with a message. Raises WebhooksNeeded if `answers` lacks the result of expensive rules.
    """
    version = version_of(definition, str(raw.get("apiVersion") or ""))
    schema, scale = schema_of(version), scale_paths(version)
    made: dict[str, Any] = dict(raw) if schema is None else defaulted(schema, pruned(schema, raw))
    before = () if old is None else (old.raw,)
    faults = [] if schema is None else value_faults(schema, made, "", *before)
    if schema is not None and not faults and subresource != "status":
        previous = None if old is None else old.raw
        faults = checked(answers, definition.name, made, previous, partial(spec_faults, definition, made, previous))
    if scale is not None:
        faults = [*faults, *scale_faults(scale, made, spec=subresource != "status")]
    if schema is not None and definition.uid and any(map(_blocks_rules, faults)) and has_rules(schema):
        faults = [*faults, _UNCHECKED]
    is_checked = _UNCHECKED not in faults if definition.uid else not faults  # without uid: a kind of the release itself
    if schema is not None and is_checked:
        judged = partial(judged_rules, schema, made, *before, shows_values="fields_of_1_35" in features)
        what = (DEFINITION, definition.name, str(definition.resource_version), subresource)
        names = {"object": made, "oldObject": None if old is None else old.raw}
        violations, warnings = evaluated(answers, what, names, judged)
        faults = [*faults, *violations]
        for warning in warnings:
            warn(warning)
    if faults:
        kind = str(raw.get("kind") or "")
        name = str((raw.get("metadata") or {}).get("name") or "")
        raise Invalid(f"{kind}.{definition.spec.get('group')}", name, tuple(faults))
    return made


def find_definition(definitions: Iterable[Object], kind: str, api_version: str) -> Object | None:
    """Return the definition of this kind in this API group, or None."""
    group = group_of(api_version)
    for definition in definitions:
        names = definition.spec.get("names") or {}
        if definition.spec.get("group") == group and names.get("kind") == kind:
            return definition
    return None


def served_kind(definitions: Iterable[Object], raw: Raw) -> Kind:
    """Return the kind of an object to be created. Raises NoMatch if the version is not served."""
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


def definition_of(cluster: DefiningCluster, raw: Raw) -> Object | None:
    """Return the definition of an object's kind and group, whatever its version, or None."""
    return find_definition(definitions(cluster), str(raw.get("kind")), str(raw.get("apiVersion")))


def creatable_kind(cluster: DefiningCluster, raw: Raw) -> Kind:
    """Return the kind of an object to be created.

    Raises NoMatch if the kind is not served, and Forbidden if its definition is being deleted.
    """
    found = served_kind(definitions(cluster), raw)
    if not found.known:
        definition = definition_of(cluster, raw)
        if definition is not None and definition.deleting:
            why = "create not allowed while custom resource definition is terminating"
            raise Forbidden(found.name, "", why)
    return found


def as_defined(
    cluster: DefiningCluster,
    raw: Raw,
    old: Object | None,
    subresource: str,
    answers: WebhookAnswers | None = None,
    warn: Callable[[str], None] = lambda text: None,
) -> Raw:
    """Return the result of `by_schema`, or the object unchanged if its kind has no definition.

    If the kind has a status subresource, only a write to this subresource changes the status.
    """
    definition = definition_of(cluster, raw)
    if definition is None:
        return raw
    made = by_schema(definition, raw, old, subresource, cluster.features, answers, warn)
    if not subresource and has_status(version_of(definition, str(raw.get("apiVersion") or ""))):
        made.pop("status", None)
        if old is not None and "status" in old.raw:
            made["status"] = old.raw["status"]
    return made


def _listed(versions: Iterable[str]) -> str:
    return " and ".join(versions)


def _meant(name: str, definitions: Iterable[Object]) -> str:
    """Return `; did you mean "Deployment" in version "apps/v1"?`, or "" if no kind has a similar name."""
    kinds = {kind.name.casefold(): kind for kind in (*map(defined_kind, definitions), *KINDS)}
    near = similar_names(name, kinds, 1)
    if not near:
        return ""
    kind = kinds[near[0]]
    return f'; did you mean "{kind.name}" in version "{kind.api_version}"?'
