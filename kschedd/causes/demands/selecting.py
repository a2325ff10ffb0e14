"""Causes of pending pods: nodeSelector, required node affinity or spec.nodeName selects no node."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Final

import attrs

from kschedd.api.nodes import HOSTNAME_LABEL
from kschedd.api.selecting.selectors import (
    DOES_NOT_EXIST,
    EXISTS,
    GT,
    IN,
    LT,
    NOT_IN,
    NodeSelectorTerm,
    parse_node_selector_term,
)
from kschedd.causes.answers import ObjectNamed
from kschedd.causes.case import Case
from kschedd.causes.findings import CHANGE_OBJECT, FoundCause, RemedyOption, named, spec_edit
from kschedd.causes.near import LIKELY_LABELS, nearest, nearest_key
from kschedd.causes.steps import patched
from kschedd.causes.strategies import restarting
from kschedd.causes.words import counted, joined, some

_SHOWN: Final = 4  # values
_AFFINITY: Final = ("affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms")
_SIGNS: Final = {GT: ">", LT: "<"}
_ARCHITECTURES: Final = {"amd64", "arm64", "arm", "386", "ppc64le", "s390x", "riscv64"}
_SYSTEMS: Final = {"linux", "windows"}
#: values that are never assumed to be misspellings of each other
_PLATFORMS: Final = {
    "kubernetes.io/arch": _ARCHITECTURES,
    "beta.kubernetes.io/arch": _ARCHITECTURES,
    "kubernetes.io/os": _SYSTEMS,
    "beta.kubernetes.io/os": _SYSTEMS,
}
#: topology labels that are sometimes confused with each other
_TOPOLOGY: Final = ("topology.kubernetes.io/region", "topology.kubernetes.io/zone", "node.kubernetes.io/instance-type")
_VERY_ALIKE: Final = 0.79  # smallest similarity of a misspelling; zone-a and zone-b are less similar
Spec = dict[str, Any]


@attrs.frozen(eq=False, slots=False)
class Demand:
    """A requirement on a node's labels or fields.

    `place` is the position of the requirement in the pod's spec; `term` is None in a nodeSelector.
    """

    key: str
    operator: str
    values: tuple[str, ...]
    term: int | None = None
    place: int = 0  # in its term
    of_fields: bool = False

    def matches(self, labels: Mapping[str, str], name: str) -> bool:
        return self._term.matches(labels, name)

    @cached_property
    def _term(self) -> NodeSelectorTerm:
        raw = {"key": self.key, "operator": self.operator, "values": list(self.values)}
        return parse_node_selector_term({"matchFields" if self.of_fields else "matchExpressions": [raw]})

    @property
    def field(self) -> str:
        if self.term is None:
            return f"spec.nodeSelector[{self.key}]"
        part = "matchFields" if self.of_fields else "matchExpressions"
        return f"spec.{'.'.join(_AFFINITY)}[{self.term}].{part}[{self.place}]"

    def __str__(self) -> str:
        match self.operator:
            case operator if operator == IN:
                return (
                    f"{self.key}={self.values[0]}" if len(self.values) == 1 else f"{self.key} in ({_few(self.values)})"
                )
            case operator if operator == NOT_IN:
                return f"{self.key} not in ({_few(self.values)})"
            case operator if operator == EXISTS:
                return f"the label {self.key}"
            case operator if operator == DOES_NOT_EXIST:
                return f"no label {self.key}"
        return f"{self.key} {_SIGNS.get(self.operator, self.operator)} {', '.join(self.values)}"

    def changed(self, key: str, values: Sequence[str]) -> Callable[[Spec], None]:
        """Return the edit that replaces the key and values of the requirement."""

        def edit(spec: Spec) -> None:
            if self.term is None:
                held = spec["nodeSelector"]
                held.pop(self.key, None)
                held[key] = values[0]
            else:
                expression = self._expression(spec)
                expression["key"] = key
                if values:
                    expression["values"] = list(values)

        return edit

    def removed(self, spec: Spec) -> None:
        """Remove the requirement from the spec, with each parent field that becomes empty."""
        if self.term is None:
            spec["nodeSelector"].pop(self.key, None)
            if not spec["nodeSelector"]:
                del spec["nodeSelector"]
            return
        part = "matchFields" if self.of_fields else "matchExpressions"
        terms = spec["affinity"]["nodeAffinity"][_AFFINITY[2]][_AFFINITY[3]]
        terms[self.term][part].remove(self._expression(spec))
        if not terms[self.term][part]:
            del terms[self.term][part]
        if any(terms):
            return
        del spec["affinity"]["nodeAffinity"][_AFFINITY[2]]
        if not spec["affinity"]["nodeAffinity"]:
            del spec["affinity"]["nodeAffinity"]
        if not spec["affinity"]:
            del spec["affinity"]

    def _expression(self, spec: Spec) -> Spec:
        part = "matchFields" if self.of_fields else "matchExpressions"
        terms = spec["affinity"]["nodeAffinity"][_AFFINITY[2]][_AFFINITY[3]]
        wanted = {"key": self.key, "operator": self.operator}
        found: Spec = next(
            each
            for each in terms[self.term][part]
            if {key: each.get(key) for key in wanted} == wanted and tuple(each.get("values") or ()) == self.values
        )
        return found


def demands(spec: Mapping[str, Any]) -> list[list[Demand]]:
    """Return the pod's requirements as a list of alternatives; each alternative is a list of requirements."""
    always = [Demand(key, IN, (value,)) for key, value in (spec.get("nodeSelector") or {}).items()]
    terms: Any = spec
    for field in _AFFINITY:
        terms = (terms or {}).get(field)
    if not terms:
        return [always]
    return [[*always, *_of_term(number, term)] for number, term in enumerate(terms)]


def _of_term(number: int, term: Mapping[str, Any]) -> Iterator[Demand]:
    for part, of_fields in (("matchExpressions", False), ("matchFields", True)):
        for place, each in enumerate(term.get(part) or ()):
            yield Demand(each["key"], each["operator"], tuple(each.get("values") or ()), number, place, of_fields)


def no_node_selected(case: Case) -> FoundCause | None:
    """Return the cause, or None: no node meets the pod's requirements."""
    if case.selected or not case.nodes:
        return None
    if case.pod.node_name:
        return _missing_node(case)
    alternatives = [(one, _unmet(case, one)) for one in demands(case.workload.pod_spec)]
    # Examine the alternative with the fewest unmet requirements.
    wanted, unmet = min(alternatives, key=lambda pair: (len(pair[1]), _without_guess(case, pair[1]), -len(pair[0])))
    if unmet:
        return _unknown(case, unmet)
    added = _of_runtime_class(case)
    if added is not None:
        return added
    return _contradiction(case, wanted) if wanted else None


def _of_runtime_class(case: Case) -> FoundCause | None:
    """Return the label required by the pod's RuntimeClass; the pods contain it, but not their template."""
    name = case.pod.pod_spec.raw.get("runtimeClassName")
    runtime = case.store.find("RuntimeClass", "", str(name)) if name else None
    required = {} if runtime is None else (runtime.raw.get("scheduling") or {}).get("nodeSelector") or {}
    unmet = _unmet(case, [Demand(key, IN, (value,)) for key, value in required.items()])
    if runtime is None or not unmet:
        return None
    guesses = [_guess(case, each) for each in unmet]
    options = []
    if all(guess.edit is not None for guess in guesses):
        changed: Spec = {"nodeSelector": dict(required)}
        for guess in guesses:
            assert guess.edit is not None, "each has one"
            guess.edit(changed)
        value = changed["nodeSelector"]
        operations = [{"op": "replace", "path": "/scheduling/nodeSelector", "value": value}]
        options.append(
            RemedyOption(
                f"have RuntimeClass {name} require {joined([guess.becomes for guess in guesses])}; restart the pods",
                CHANGE_OBJECT,
                restarting(case.workload, case.engine.now),
                [patched(runtime.raw, operations)],
                f"runtimeclass/{name}",
            )
        )
    return FoundCause(
        guesses[0].code,
        f"RuntimeClass {name} requires a label: {'; '.join(guess.message for guess in guesses)}",
        [named(runtime)],
        [f"{'.'.join(case.workload.path)}.runtimeClassName"],
        [text for each in unmet for text in _values_there(case, each)],
        options,
    )


def _without_guess(case: Case, unmet: Sequence[Demand]) -> int:
    return sum(_guess(case, each).edit is None for each in unmet)


def _unmet(case: Case, alternative: Sequence[Demand]) -> list[Demand]:
    """Return the requirements that no node meets."""
    return [each for each in alternative if not _met_by_some(case, each)]


def _met_by_some(case: Case, demand: Demand) -> bool:
    if demand.of_fields:
        return bool(_met(case, demand))
    values = case.cluster.values(demand.key)
    return any(demand.matches({demand.key: value}, "") for value in values) or (
        sum(values.values()) < len(case.nodes) and demand.matches({}, "")
    )


def _met(case: Case, demand: Demand) -> set[str]:
    if demand.of_fields:
        return {name for name, node in case.nodes.items() if demand.matches(node.labels, name)}
    key = demand.key
    met: dict[str | None, bool] = {None: demand.matches({}, "")}
    met.update((value, demand.matches({key: value}, "")) for value in case.cluster.values(key))
    return {name for name, node in case.nodes.items() if met[node.labels.get(key)]}


# -- a label that no node has ---------------------------------------------------------------------------------------


@attrs.frozen(eq=False)
class _Guess:
    code: str
    message: str
    edit: Callable[[Spec], None] | None = None
    becomes: str = ""


def _unknown(case: Case, unmet: Sequence[Demand]) -> FoundCause:
    guesses = [_guess(case, each) for each in unmet]
    removed = [each.removed for each in unmet]
    edits = [guess.edit for guess in guesses if guess.edit is not None]
    options = []
    if len(edits) == len(guesses):
        options.append(_option(f"use {joined([guess.becomes for guess in guesses])}", edits))
    elif not any(set(each.values) & _PLATFORMS.get(each.key, set()) for each in unmet):  # an image is built for it
        options.append(_option(f"do not require {joined([str(each) for each in unmet])}", removed))
    return FoundCause(
        guesses[0].code,
        "; ".join(guess.message for guess in guesses[:_SHOWN])
        + (f"; and {counted(len(guesses) - _SHOWN, 'more label')}" if len(guesses) > _SHOWN else ""),
        fields=[each.field for each in unmet],
        evidence=[text for each in unmet[:_SHOWN] for text in _values_there(case, each)],
        options=options,
        certain=True,
    )


def _option(summary: str, edits: Sequence[Callable[[Spec], None]]) -> RemedyOption:
    def edit(spec: Spec) -> None:
        for each in edits:
            each(spec)

    return RemedyOption(summary, edit=spec_edit(edit))


def _guess(case: Case, demand: Demand) -> _Guess:
    if demand.of_fields or demand.key == HOSTNAME_LABEL:
        return _guess_node(case, demand)
    values = case.cluster.values(demand.key) or None
    if values is not None and demand.operator == IN:
        platforms = _PLATFORMS.get(demand.key, ())
        elsewhere = _under_another_key(case, demand)
        if elsewhere is not None:
            return elsewhere
        near = [nearest(wanted, values) for wanted in demand.values if wanted not in platforms]
        meant = list(dict.fromkeys(name for name in near if name is not None))
        text = f"no node has {_quoted(str(demand))}"
        if not meant:
            return _Guess("NodeLabelValueMissing", f"{text}; the values of {_quoted(demand.key)} are {_shown(values)}")
        becomes = str(attrs.evolve(demand, values=tuple(meant)))
        count = sum(values[name] for name in meant)
        message = _one(f"{text}; {counted(count, 'node')} have {_quoted(becomes)}", count)
        return _Guess("NodeLabelMisspelled", message, demand.changed(demand.key, meant), becomes)
    if values is None and demand.operator in (IN, EXISTS, GT, LT):
        having = [key for key, there in case.labels.items() if set(demand.values) & set(there)]
        likely = nearest_key(demand.key, case.labels, having)
        text = f"no node has the label {_quoted(demand.key)}"
        swapped = demand.values[0] if len(demand.values) == 1 else ""
        if count := case.cluster.values(swapped)[demand.key]:
            pair = f"{swapped}={demand.key}"
            message = _one(f"{text}; {counted(count, 'node')} have {_quoted(pair)}, key and value exchanged", count)
            return _Guess("NodeLabelMisspelled", message, demand.changed(swapped, [demand.key]), pair)
        if likely is None:
            return _Guess("NodeLabelMissing", f"{text}, and {_quoted(str(demand))} is required")
        there = case.labels[likely]
        given = [nearest(value, there) or value if value not in there else value for value in demand.values]
        count = sum(there[value] for value in given) if demand.operator == IN else sum(there.values())
        pair = f"{likely}={given[0]}" if demand.operator == IN and given else likely
        if not count:
            return _Guess("NodeLabelMissing", f"{text}; {counted(sum(there.values()), 'node')} have {_quoted(likely)}")
        message = f"{text}; {counted(count, 'node')} have {_quoted(pair)}"
        code = "NodeLabelDeprecated" if LIKELY_LABELS.get(demand.key) == likely else "NodeLabelMisspelled"
        return _Guess(code, _one(message, count), demand.changed(likely, given), pair)
    if demand.operator in (NOT_IN, DOES_NOT_EXIST):
        return _Guess("NodeLabelExcluded", f"all {len(case.nodes)} nodes are excluded by {_quoted(str(demand))}")
    return _Guess("NodeLabelValueMissing", f"no node has {_quoted(str(demand))}")


def _under_another_key(case: Case, demand: Demand) -> _Guess | None:
    """Return the guess that a value belongs to another topology label, such as a region in place of a zone."""
    if demand.key not in _TOPOLOGY or len(demand.values) != 1:
        return None
    (wanted,) = demand.values
    having = [key for key in _TOPOLOGY if key != demand.key and wanted in case.cluster.values(key)]
    if not having:
        return None
    pair, count = f"{having[0]}={wanted}", case.cluster.values(having[0])[wanted]
    message = _one(f"no node has {_quoted(str(demand))}; {counted(count, 'node')} have {_quoted(pair)}", count)
    return _Guess("NodeLabelMisspelled", message, demand.changed(having[0], [wanted]), pair)


def _guess_node(case: Case, demand: Demand) -> _Guess:
    names = set(case.cluster.values(HOSTNAME_LABEL)) | case.cluster.names
    wanted = demand.values[0] if demand.values else ""
    likely = nearest(wanted, names)
    message = f"the node {_quoted(wanted)} that is required does not exist"
    if likely is None:
        return _Guess("NodeMissing", message)
    return _Guess(
        "NodeMissing", f"{message}; {_quoted(likely)} does", demand.changed(demand.key, [likely]), f"the node {likely}"
    )


def _values_there(case: Case, demand: Demand) -> Iterator[str]:
    values = case.cluster.values(demand.key)
    if values:
        yield f"values of {demand.key}: {_shown(values)}"


def _shown(values: Mapping[str, int]) -> str:
    ordered = sorted(values.items(), key=lambda pair: (-pair[1], pair[0]))
    more = len(ordered) - _SHOWN
    text = ", ".join(f"{value or '(empty)'} ({counted(count, 'node')})" for value, count in ordered[:_SHOWN])
    return text + (f" and {more} more" if more > 0 else "")


def _few(values: Sequence[str]) -> str:
    rest = len(values) - 2 * _SHOWN
    return ", ".join(values[: 2 * _SHOWN]) + (f" and {rest} more" if rest > 0 else "")


def _one(message: str, count: int) -> str:
    return message.replace("1 node have ", "1 node has ") if count == 1 else message


def _quoted(text: str) -> str:
    return f"`{text}`"


# -- labels that no node has together -------------------------------------------------------------------------------


def _contradiction(case: Case, wanted: Sequence[Demand]) -> FoundCause:
    """Return the cause: each requirement is met by some node, but no node meets all of them."""
    met = [(each, _met(case, each)) for each in wanted]
    clashing = _smallest_clash(met)
    parts = [f"{_quoted(str(each))} ({counted(len(nodes), 'node')})" for each, nodes in clashing]
    # Remove the requirement whose removal selects most nodes.
    rest = [
        (each, set.intersection(*(nodes for other, nodes in met if other is not each)))
        for each, _ in clashing
        if len(met) > 1
    ]
    rest.sort(key=lambda pair: -len(pair[1]))
    # An image is built for one platform, so requirements on the platform are assumed to be correct.
    removable = [(each, nodes) for each, nodes in rest if not set(each.values) & _PLATFORMS.get(each.key, set())]
    options = [option for each, nodes in removable for option in _near_value(case, each, nodes)]
    options += [_option(f"do not require {each}", [each.removed]) for each, nodes in removable if nodes]
    same = {each.key for each, _ in clashing}
    text = "no node has both" if len(clashing) == 2 else "no node has all of"
    if len(same) == 1 and len(clashing) == 2:
        text = "the pod's own demands contradict each other: no node has both"
    return FoundCause(
        "NodeAffinityContradiction",
        f"{text} {joined(parts)}",
        fields=[each.field for each, _ in clashing],
        evidence=[f"{each}: {some(nodes)}" for each, nodes in clashing],
        options=options,
        certain=len(clashing) < 3,
    )


def _near_value(case: Case, demand: Demand, nodes: Collection[str]) -> list[RemedyOption]:
    """Return the option to require a similar value that these nodes have."""
    if demand.operator != IN or len(demand.values) != 1:
        return []
    there = {value for name in nodes if (value := case.nodes[name].labels.get(demand.key)) is not None}
    likely = nearest(demand.values[0], there, _VERY_ALIKE)
    if likely is None:
        return []
    return [_option(f"use {demand.key}={likely}", [demand.changed(demand.key, [likely])])]


def _smallest_clash(met: Sequence[tuple[Demand, set[str]]]) -> Sequence[tuple[Demand, set[str]]]:
    for place, one in enumerate(met):
        for other in met[place + 1 :]:
            if not one[1] & other[1]:
                return [one, other]
    return met


# -- spec.nodeName --------------------------------------------------------------------------------------------------


def _missing_node(case: Case) -> FoundCause:
    wanted = case.pod.node_name
    likely = nearest(wanted, case.nodes)
    hint = f"; {_quoted(likely)} does" if likely else ""
    return FoundCause(
        "NodeMissing",
        f"spec.nodeName is {_quoted(wanted)}, and that node does not exist{hint}",
        [ObjectNamed("Node", "", wanted)],
        ["spec.nodeName"],
        options=node_named(likely),
    )


def node_named(likely: str | None) -> list[RemedyOption]:
    """Return the options for a spec.nodeName without a node: use a similar name, or any node."""

    def renamed(spec: Spec) -> None:
        spec["nodeName"] = likely

    def without(spec: Spec) -> None:
        del spec["nodeName"]

    named = [RemedyOption(f"nodeName {likely}", edit=spec_edit(renamed))] if likely else []
    return [*named, RemedyOption("let the scheduler choose: no nodeName", edit=spec_edit(without))]
