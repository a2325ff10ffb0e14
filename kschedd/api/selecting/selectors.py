"""Label selectors and node selectors.

Source: Kubernetes v1.34, apimachinery meta/v1/helpers.go (LabelSelectorAsSelector) and
component-helpers/scheduling/corev1/nodeaffinity/nodeaffinity.go. Selectors are frozen and hashable. Equal label
selectors are one object (interned), which can be a key of caches. Code that evaluates columns reads `requirements` (all
must hold) and `nothing`; for node selectors, it reads `terms` (at least one must hold). A node selector term with
neither expressions nor fields matches no node and is dropped. A term that cannot be parsed never matches. For required
affinity, the faults of an invalid term are raised only if no other term matches; for preferred affinity, they are
raised immediately. metadata.name is the only supported node field. `selector_text` parses the syntax of `-l`. Errors:
SelectorError, with every fault in the wording of Kubernetes.
"""

import weakref
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

import attrs

from kschedd.api.selecting.requirements import (
    DOES_NOT_EXIST,
    EXISTS,
    GT,
    IN,
    LT,
    NOT_IN,
    KeyRule,
    Requirement,
    SelectorError,
    integer,
    quoted,
    requirement_problems,
)

__all__ = [
    "DOES_NOT_EXIST",
    "EVERYTHING",
    "EXISTS",
    "GT",
    "IN",
    "LT",
    "NOTHING",
    "NOT_IN",
    "FieldRequirement",
    "LabelSelector",
    "NodeSelector",
    "NodeSelectorTerm",
    "Requirement",
    "SelectorError",
    "from_map",
    "integer",
    "interned",
    "parse_label_selector",
    "parse_node_selector",
    "parse_node_selector_term",
    "parse_preferred_terms",
    "quoted",
]

NODE_OPERATORS: Final = (IN, NOT_IN, EXISTS, DOES_NOT_EXIST, GT, LT)
FIELD_OPERATORS: Final = (IN, NOT_IN)
NODE_NAME: Final = "metadata.name"
_FEW: Final = 16  # maximum number of requirements to test one by one


@attrs.frozen
class _KeyRules:
    """Many requirements combined into one rule per label key, so that the number of labels limits the cost of a test.

    Keys that must have exactly one value are compared as maps, which is fast.
    """

    exact: Mapping[str, str]
    required: Mapping[str, KeyRule]
    optional: Mapping[str, KeyRule]  # rules that an object without the label also satisfies

    @classmethod
    def of(cls, requirements: Iterable[Requirement]) -> "_KeyRules":
        by_key: dict[str, list[Requirement]] = {}
        for each in requirements:
            by_key.setdefault(each.key, []).append(each)
        exact = {key: some[0].values[0] for key, some in by_key.items() if len(some) == 1 and _is_exact(some[0])}
        rules = {key: KeyRule.of(some) for key, some in by_key.items() if key not in exact}
        required = {key: rule for key, rule in rules.items() if rule.required}
        return cls(exact, required, {key: rule for key, rule in rules.items() if not rule.required})

    def matches(self, labels: Mapping[str, str]) -> bool:
        if len(self.exact) + len(self.required) > len(labels) or not self.exact.items() <= labels.items():
            return False
        if not all(rule.accepts(labels.get(key)) for key, rule in self.required.items()):
            return False
        if len(self.optional) <= len(labels):
            return all(rule.accepts(labels.get(key)) for key, rule in self.optional.items())
        return all(self.optional[key].accepts(value) for key, value in labels.items() if key in self.optional)


def _is_exact(requirement: Requirement) -> bool:
    return requirement.operator == IN and len(requirement.values) == 1


@attrs.frozen(cache_hash=True)
class LabelSelector:
    """All `requirements` must hold.

    Without requirements the selector matches everything, or nothing if `nothing` is set.
    """

    requirements: tuple[Requirement, ...] = ()
    nothing: bool = False
    _exact: tuple[tuple[str, str], ...] = attrs.field(init=False, eq=False, repr=False)
    _others: tuple[Requirement, ...] = attrs.field(init=False, eq=False, repr=False)
    _many: _KeyRules | None = attrs.field(init=False, eq=False, repr=False)

    def __attrs_post_init__(self) -> None:
        exact, others = [], []
        for each in self.requirements:
            if _is_exact(each):
                exact.append((each.key, each.values[0]))
            else:
                others.append(each)
        many = _KeyRules.of(self.requirements) if len(self.requirements) > _FEW else None
        object.__setattr__(self, "_exact", tuple(exact))
        object.__setattr__(self, "_others", tuple(others))
        object.__setattr__(self, "_many", many)

    @property
    def empty(self) -> bool:
        """True if the selector restricts nothing at all."""
        return not self.requirements and not self.nothing

    def matches(self, labels: Mapping[str, str]) -> bool:
        if self.nothing:
            return False
        if self._many is not None:
            return self._many.matches(labels)
        for key, value in self._exact:
            if labels.get(key) != value:
                return False
        for requirement in self._others:
            if not requirement.matches(labels):
                return False
        return True

    def adding(self, other: "LabelSelector") -> "LabelSelector":
        """Return this selector with the requirements of another selector added.

        A selector that matches nothing still matches nothing.
        """
        if self.nothing or not other.requirements:
            return self
        return interned((*self.requirements, *other.requirements)) if self.requirements else other

    def __str__(self) -> str:
        return "<none>" if self.nothing else ",".join(map(str, self.requirements))


_selectors: weakref.WeakValueDictionary[tuple[Requirement, ...], LabelSelector] = weakref.WeakValueDictionary()


def interned(requirements: Iterable[Requirement]) -> LabelSelector:
    """Return the interned selector with these requirements. Order and duplicates do not matter."""
    unique = {r if len(r.values) < 2 else attrs.evolve(r, values=tuple(sorted(set(r.values)))) for r in requirements}
    ordered = tuple(sorted(unique, key=lambda r: (r.key, r.operator, r.values)))
    selector = _selectors.get(ordered)
    if selector is None:
        selector = _selectors[ordered] = LabelSelector(ordered)
    return selector


NOTHING: Final = LabelSelector(nothing=True)
EVERYTHING: Final = interned(())

_Expressions = tuple[tuple[str, str, tuple[str, ...]], ...]


@lru_cache(1 << 10)  # small, because lists of values may be long
def _parse(labels: tuple[tuple[str, str], ...], expressions: _Expressions) -> LabelSelector:
    requirements = []
    problems = []
    for key, value in labels:
        problems += requirement_problems(key, IN, (value,), "matchLabels")
        requirements.append(Requirement(key, IN, (value,)))
    for index, (key, operator, values) in enumerate(expressions):
        if operator not in (IN, NOT_IN, EXISTS, DOES_NOT_EXIST):
            problems.append(f"{quoted(operator)} is not a valid label selector operator")
            continue
        problems += requirement_problems(key, operator, values, f"matchExpressions[{index}]")
        requirements.append(Requirement(key, operator, values))
    if problems:
        raise SelectorError(tuple(problems))
    return interned(requirements)


def parse_label_selector(raw: Mapping[str, Any] | None) -> LabelSelector:
    """Parse a metav1.LabelSelector: None matches nothing, and an empty selector matches everything.

    Raises SelectorError if upstream rejects the selector.
    """
    if raw is None:
        return NOTHING
    labels = raw.get("matchLabels")
    expressions = raw.get("matchExpressions")
    if not labels and not expressions:
        return EVERYTHING
    try:
        return _parse(
            tuple(sorted(labels.items())) if labels else (),
            _plain(expressions),
        )
    except (TypeError, AttributeError) as wrong_shape:
        raise SelectorError(
            (f"a label selector has matchLabels and matchExpressions of text: {wrong_shape}",)
        ) from None


def from_map(labels: Mapping[str, str] | None) -> LabelSelector:
    """Return the selector of a Service or ReplicationController, which is a map (SelectorFromSet).

    An empty map matches all.
    """
    if not labels:
        return EVERYTHING
    return interned(Requirement(key, IN, (value,)) for key, value in labels.items())


@attrs.frozen(cache_hash=True)
class FieldRequirement:
    """A node field equals (In) or differs from (NotIn) a value; an unknown field has the value ""."""

    key: str
    operator: str  # In, NotIn
    value: str

    def matches(self, node_name: str) -> bool:
        found = node_name if self.key == NODE_NAME else ""
        return (found == self.value) is (self.operator == IN)


@attrs.frozen(cache_hash=True)
class NodeSelectorTerm:
    """All expressions and all fields must hold. A term with `problems` matches no node."""

    match_expressions: tuple[Requirement, ...] = ()
    match_fields: tuple[FieldRequirement, ...] = ()
    problems: tuple[str, ...] = ()

    @property
    def empty(self) -> bool:
        return not (self.match_expressions or self.match_fields or self.problems)

    def matches(self, labels: Mapping[str, str], node_name: str) -> bool:
        """Return whether the node matches the term. For a node without a name, fields are not checked."""
        if self.problems or self.empty:
            return False
        for requirement in self.match_expressions:
            if not requirement.matches(labels):
                return False
        if node_name:
            for field in self.match_fields:
                if not field.matches(node_name):
                    return False
        return True


@attrs.frozen(cache_hash=True)
class NodeSelector:
    """At least one of `terms` must hold. Without terms, no node matches."""

    terms: tuple[NodeSelectorTerm, ...] = ()

    @property
    def problems(self) -> tuple[str, ...]:
        """The errors of all terms, which are reported for a node that matches no term."""
        return tuple(problem for term in self.terms for problem in term.problems)

    def matches(self, labels: Mapping[str, str], node_name: str) -> bool:
        """Return whether any term matches the node.

        Raises SelectorError if no term matches and some term could not be parsed.
        """
        for term in self.terms:
            if term.matches(labels, node_name):
                return True
        if problems := self.problems:
            raise SelectorError(problems)
        return False


def parse_node_selector(raw: Mapping[str, Any] | None, path: str = "") -> NodeSelector:
    """Parse a core/v1 NodeSelector. Errors are stored in its terms, with paths that begin with `path`."""
    path = f"{path}.nodeSelectorTerms" if path else "nodeSelectorTerms"
    terms = []
    for index, raw_term in enumerate((raw or {}).get("nodeSelectorTerms") or ()):
        term = parse_node_selector_term(raw_term, f"{path}[{index}]")
        if not term.empty:
            terms.append(term)
    return NodeSelector(tuple(terms))


def parse_preferred_terms(
    raw: Sequence[Mapping[str, Any]] | None, path: str = ""
) -> tuple[tuple[int, NodeSelectorTerm], ...]:
    """Return (weight, term) of preferred node affinity; terms with weight 0 and empty terms are dropped.

    Raises SelectorError with the errors of all terms.
    """
    terms = []
    problems: list[str] = []
    for index, preferred in enumerate(raw or ()):
        weight = preferred.get("weight") or 0
        raw_term = preferred.get("preference") or {}
        if weight == 0 or not (raw_term.get("matchExpressions") or raw_term.get("matchFields")):
            continue
        term = parse_node_selector_term(raw_term, f"{path}[{index}]")
        problems += term.problems
        terms.append((weight, term))
    if problems:
        raise SelectorError(tuple(problems))
    return tuple(terms)


def parse_node_selector_term(raw: Mapping[str, Any] | None, path: str = "") -> NodeSelectorTerm:
    """Parse one term; `problems` contains its errors."""
    raw = raw or {}
    return _term(_plain(raw.get("matchExpressions")), _plain(raw.get("matchFields")), path)


def _plain(raw: Sequence[Mapping[str, Any]] | None) -> _Expressions:
    return tuple((e.get("key", ""), e.get("operator", ""), tuple(e.get("values") or ())) for e in raw or ())


@lru_cache(256)  # small, because lists of values may be long
def _term(expressions: _Expressions, fields: _Expressions, path: str) -> NodeSelectorTerm:
    dot = f"{path}." if path else ""
    problems = []
    requirements = []
    for index, (key, operator, values) in enumerate(expressions):
        here = f"{dot}matchExpressions[{index}]"
        if operator not in NODE_OPERATORS:
            problems.append(_unsupported(f"{here}.operator", operator, NODE_OPERATORS))
            continue
        problems += requirement_problems(key, operator, values, here)
        requirements.append(Requirement(key, operator, values))
    field_requirements = []
    for index, (key, operator, values) in enumerate(fields):
        here = f"{dot}matchFields[{index}]"
        if operator not in FIELD_OPERATORS:
            problems.append(_unsupported(f"{here}.operator", operator, FIELD_OPERATORS))
        elif len(values) != 1:
            shown = ", ".join(map(quoted, values[:10]))
            problems.append(f"{here}.values: Invalid value: [{shown}]: must have one element")
        else:
            field_requirements.append(FieldRequirement(key, operator, values[0]))
    return NodeSelectorTerm(tuple(requirements), tuple(field_requirements), tuple(problems))


def _unsupported(path: str, operator: str, allowed: Sequence[str]) -> str:
    return f"{path}: Unsupported value: {quoted(operator)}: supported values: {', '.join(map(quoted, allowed))}"
