"""The rule about fields that a kind does not have, as kube-apiserver's strict decoding reports them."""

from collections.abc import Iterator
from typing import Final

from kschedd.api.schemas.decoding import decode
from kschedd.api.schemas.fields import steps
from kschedd.api.schemas.kinds import kind_of
from kschedd.api.schemas.schema import ALL_RULES, schema_of
from kschedd.lint.rules import ALL, Hit, RuleSet
from kschedd.lint.subjects import KnownObjects, LintedObject

RULES: Final = RuleSet()


@RULES.add(
    "unknown-field",
    ALL,
    ("", "error", 'kubectl rejects the object: strict decoding error: unknown field "{}"'),
    fix="Correct the name of the field, or remove it.",
    source="apiserver/pkg/endpoints/handlers/create.go",
)
def unknown_field(found: LintedObject, known: KnownObjects) -> Iterator[Hit]:
    if not found.api_version or found.meta.get("uid"):  # the API server has decoded an object that has a UID
        return
    raw = dict(found.raw)
    if kind_of(raw).known and schema_of(found.api_version, found.kind) is None:  # another version of the kind
        return
    for fault in decode(raw, ALL_RULES).faults:
        meant = fault.hint.removeprefix("; did you mean ").removesuffix("?")
        fix = f"Write {meant}." if meant else ""
        yield Hit(tuple(steps(fault.path)), fault.path, fix=fix)
