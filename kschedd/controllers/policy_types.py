"""Type checking of a ValidatingAdmissionPolicy: its expressions against the types of the resources that it matches.

`object` and `oldObject` have the type of a matched resource, `params` the type of `paramKind`. At most ten types are
checked; rules with a wildcard are not checked. In messages, the type of an object has the name of its kind, to which
kube-controller-manager adds a number.

No other task reads or writes the cluster during a check. Unlike upstream, expressions longer than `_LONGEST` are
therefore not checked, and the check ends after `_MOST_CHARACTERS`.

Source: Kubernetes v1.37, apiserver/pkg/admission/plugin/policy/validating/typechecking.go,
apiserver/pkg/cel/common/schemas.go.
"""

from collections.abc import Generator, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

import attrs

from kschedd.api.schemas import schema
from kschedd.api.schemas.kinds import KINDS, Kind
from kschedd.cel.errors import CelCompileError
from kschedd.cel.program import compile_expression
from kschedd.store.custom_resources.kinds import DefiningCluster, defined_kind, definitions, version_of
from kschedd.store.custom_resources.rule_types import escaped_name, rule_types
from kschedd.store.policies.compiled import Composition
from kschedd.store.policies.environment import ObjectTypes

Raw = Mapping[str, Any]
_MOST_TYPES: Final = 10
_LONGEST: Final = 8_000  # characters of an expression; compiling them takes about 20 ms
_MOST_CHARACTERS: Final = 100_000  # of all expressions of a policy, counted once for each type
_META: Final = "meta.ObjectMeta"
_OBJECT_META: Final = "object.metadata"
_LEAVES: Final[Mapping[schema.Schema, str]] = {
    schema.STR: "string",
    schema.INT: "int",
    schema.INT32: "int",
    schema.BOOL: "bool",
    schema.QUANTITY: "",
    schema.INT_OR_STR: "dyn",
    schema.TIME: "timestamp",
    schema.MICRO_TIME: "timestamp",
    schema.BYTES: "bytes",
    schema.NUMBER: "double",
}
_UNTYPED: Final = frozenset(
    f"apiextensions.JSONSchemaProps.{field}"
    for field in "additionalItems additionalProperties default dependencies enum example items".split()
)
"""Fields without a type, which expressions cannot use; other fields of any type are objects without known fields."""
_Typed = tuple[str, Mapping[str, Mapping[str, str]]]
"""The type of an object, and the fields of the structs in it."""


@attrs.frozen(order=True)
class _VersionedKind:
    group: str
    version: str
    kind: str

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    def __str__(self) -> str:
        return f"{self.group}/{self.version}, Kind={self.kind}"


def expression_warnings(policy: Raw, cluster: DefiningCluster) -> Generator[None, None, list[dict[str, str]]]:
    """Return the expressionWarnings of the policy's status, in steps of one expression and type."""
    spec: Raw = policy.get("spec") or {}
    allowance = _Allowance()
    checks = yield from _checks_of(spec, cluster, allowance)
    warnings = []
    for path, text in _expressions(spec):
        messages = []
        for matched, composition in checks:
            if not allowance.allows(text):
                continue
            if why := _fault(text, composition):
                messages.append(f"{matched}: {why}\n")
            yield
        if messages:
            warnings.append({"fieldRef": path, "warning": "\n".join(messages)})
    return warnings


@attrs.define
class _Allowance:
    """The number of characters that may still be compiled."""

    left: int = _MOST_CHARACTERS

    def allows(self, text: str) -> bool:
        """Return whether the text may be compiled, and deduct it if so."""
        if len(text) > min(self.left, _LONGEST):
            return False
        self.left -= len(text)
        return True


def _expressions(spec: Raw) -> Iterator[tuple[str, str]]:
    """Yield the checked expressions, with their fields."""
    for index, validation in enumerate(spec.get("validations") or ()):
        for field in ("expression", "messageExpression"):
            if text := validation.get(field):
                yield f"spec.validations[{index}].{field}", text


def _checks_of(
    spec: Raw, cluster: DefiningCluster, allowance: _Allowance
) -> Generator[None, None, list[tuple[_VersionedKind, Composition]]]:
    """Return the environment of expressions for each matched type whose fields are known."""
    params = None
    if spec.get("paramKind"):
        group, _, version = (spec["paramKind"].get("apiVersion") or "").rpartition("/")
        params = _typed(_VersionedKind(group, version, spec["paramKind"].get("kind") or ""), cluster, "params")
    checks = []
    for matched in _matched_kinds(spec, cluster):
        typed = _typed(matched, cluster, "object")
        if typed is None:
            continue
        structs = {**typed[1], **(params[1] if params is not None else {})}
        types = ObjectTypes(typed[0], None if params is None else params[0], structs)
        composition = Composition(cluster.features, params is not None, types)
        for variable in spec.get("variables") or ():
            text = variable.get("expression") or ""
            # a variable that is not compiled has any type
            composition.add(variable.get("name") or "", text if allowance.allows(text) else "dyn(null)")
            yield
        checks.append((matched, composition))
    return checks


def _fault(text: str, composition: Composition) -> str:
    try:
        compile_expression(text, composition.environment())
    except CelCompileError as fault:
        return "" if fault.at_instantiation else fault.why
    return ""


def _matched_kinds(spec: Raw, cluster: DefiningCluster) -> list[_VersionedKind]:
    """Return the kinds that the policy's rules name, in order."""
    kinds = [*KINDS, *map(defined_kind, definitions(cluster))]
    found: set[_VersionedKind] = set()
    for rule in (spec.get("matchConstraints") or {}).get("resourceRules") or ():
        count = 0
        for each in _kinds_of_rule(rule, kinds):
            found.add(each)
            count += 1
            if count == _MOST_TYPES:
                return sorted(found)
    return sorted(found)


def _kinds_of_rule(rule: Raw, kinds: Sequence[Kind]) -> Iterator[_VersionedKind]:
    groups, versions = rule.get("apiGroups") or (), rule.get("apiVersions") or ()
    if any("*" in each for each in (*groups, *versions)):
        return
    resources = sorted(each for each in rule.get("resources") or () if "*" not in each and "/" not in each)
    for group in sorted(groups):
        for version in sorted(versions):
            api_version = f"{group}/{version}" if group else version
            for resource in resources:
                for kind in kinds:
                    if kind.plural == resource and api_version in kind.api_versions:
                        yield _VersionedKind(group, version, kind.name.partition(".")[0])


def _typed(wanted: _VersionedKind, cluster: DefiningCluster, role: str) -> _Typed | None:
    """Return the type of an object; None if its fields are unknown. `role` is part of the names of custom types."""
    known = _built_in(wanted.api_version, wanted.kind)
    if known is not None:
        return known
    for definition in definitions(cluster):
        spec = definition.spec
        if spec.get("group") != wanted.group or (spec.get("names") or {}).get("kind") != wanted.kind:
            continue
        rules = (version_of(definition, wanted.api_version).get("schema") or {}).get("openAPIV3Schema")
        if rules is None:
            return None
        _, structs = rule_types(rules, root=True)
        fields = dict(structs)
        fields[_OBJECT_META] = _fields(schema.type_named(_META), _OBJECT_META, fields, {})
        return _renamed(fields, wanted.kind if role == "object" else f"{wanted.kind}.{role}")
    return None


def _renamed(structs: Mapping[str, Mapping[str, str]], root: str) -> _Typed:
    """Return the structs with the name `root` in place of `object`, by which they are named."""

    def renamed(text: str) -> str:
        inside, opening, rest = text.partition("(")
        if opening:
            return f"{inside}({','.join(map(renamed, rest[:-1].split(',', 1)))})"
        return root + text.removeprefix("object") if text == "object" or text.startswith("object.") else text

    return root, {
        renamed(name): {field: renamed(text) for field, text in fields.items()} for name, fields in structs.items()
    }


@lru_cache(64)
def _built_in(api_version: str, kind: str) -> _Typed | None:
    fields = schema.schema_of(api_version, kind)
    if fields is None:
        return None
    structs: dict[str, Mapping[str, str]] = {}
    structs[kind] = _fields(fields, kind, structs, {})
    return kind, structs


def _fields(
    fields: schema.Fields, name: str, structs: dict[str, Mapping[str, str]], outer: Mapping[str, str]
) -> dict[str, str]:
    """Return the types of the fields of a struct, and add the structs in it.

    `outer` contains the types around this one, with the names of their structs. As in kube-controller-manager,
    quantities have no type, so that expressions cannot use them without `dyn`.
    """
    inside = {**outer, fields.name: name}
    found = {}
    for field, typed in fields.items():
        of = "" if f"{fields.name}.{field}" in _UNTYPED else _type(typed, f"{name}.{field}", structs, inside)
        escaped = escaped_name(field)
        if escaped and of:
            found[escaped] = of
    return found


def _type(typed: schema.Schema, name: str, structs: dict[str, Mapping[str, str]], outer: Mapping[str, str]) -> str:
    """Return the type of a field; "" if expressions cannot use it."""
    if isinstance(typed, schema.ListOf):
        item = _type(typed.item, f"{name}.@idx", structs, outer)
        return f"list({item})" if item else ""
    if isinstance(typed, schema.MapOf):
        value = _type(typed.item, f"{name}.@elem", structs, outer)
        return f"map(string,{value})" if value else ""
    if typed == schema.ANY:
        structs[name] = {}
        return name
    if not isinstance(typed, schema.Fields):
        return _LEAVES[typed]
    if typed.name in outer:  # a recursive type
        return outer[typed.name]
    structs[name] = _fields(typed, name, structs, outer)
    return name
