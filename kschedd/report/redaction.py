"""A report without what is anybody's business: the made-up words of a redacted dump, the same for the same name.

Texts of messages are names and English together. A word of a message stays if it is one that the scheduler itself says;
a word that a name in the cluster has is replaced as in the name; any other (a label of a node that is gone) is masked.
Explanations are left out: they quote labels, taints and volumes at length.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

import attrs

from kschedd.dumps.redaction import Redaction
from kschedd.report.decisions import Decision, Funnel
from kschedd.report.model import Checked, NodeAtEnd, NodeGroup, PendingBand, Report

_MASKED: Final = "xxx"
_WORD: Final = re.compile(r"[A-Za-z0-9]+")
_UNITS: Final = re.compile(r"\d+[A-Za-z]{0,2}")
#: words of the scheduler's own messages, its plugins' reasons and this report's
_SAID: Final = frozenset(
    """
    a about active affinity after all allocate allocated already an and another any anti are as at available be been
    before being beyond binding bound by cannot ceil claim claims class cluster conflict constraints controller could
    cpu currently deadline deallocate default deleted device devices did didn disk disks does doesn domain down driver
    enough ephemeral error evicted exceed exceeded existing extended extender fail failed fewer filter find fit
    for found free from further gated gates gone group had handled has have helpful host hostname hosts if in incoming
    inconsistent incompatible insufficient io is it its kernel kinds label labels left limit many match matched max
    maximum memory missing more mount must name network new no node nodeaffinity nodename nodes nodeselector none not of
    on one only or order other out over permit persistent pid pod pods policy port ports postfilter preempted preemption
    prefilter pressure prevents priority provisioner ready reason reasons rejected required requested request
    requests reserved resource resourceclaim resources rules s satisfy schedule scheduled scheduler schedulinggates
    scheduling score selector set shared side some spread storage suitable t taint taints than that the their then there
    they this time to tolerate toleration too topology total try trying turn turns unavailable unbound unreachable
    unresolvable unschedulable untolerated up use used victims volume volumes wait waiting waits was were what when
    which while why will with within without would yet zone tried under way began report mean
    """.split()
)


class _Names:
    def __init__(self, report: Report, objects: Iterable[Any]) -> None:
        # What is gone by now is not among the objects, but is named in the report.
        names = [{"kind": "Name", "metadata": {"name": name}} for name in _names(report)]
        self._redaction = Redaction([*objects, *names])

    def name(self, text: str) -> str:
        return self._redaction.text(text)

    def said(self, text: str) -> str:
        return _WORD.sub(self._word, text)

    def _word(self, found: re.Match[str]) -> str:
        word = found[0]
        if word.lower() in _SAID or _UNITS.fullmatch(word):
            return word
        replaced = self._redaction.text(word)
        return _MASKED if replaced == word and not self._redaction.keeps(word) else replaced


def redacted(report: Report, objects: Iterable[Any]) -> Report:
    """`objects`: all manifests of the cluster. Names of plugins and resources stay."""
    names = _Names(report, objects)
    return attrs.evolve(
        report,
        groups=[_group(each, names) for each in report.groups],
        pending=[_pending(each, names) for each in report.pending],
        explained=(),
        zones=[attrs.evolve(each, name=names.name(each.name)) for each in report.zones],
        spread=[attrs.evolve(each, workload=_workload(each.workload, names)) for each in report.spread],
        decisions={number: _decision(each, names) for number, each in report.decisions.items()},
        checked=None if report.checked is None else _checked(report.checked, names),
        notes=(
            *report.notes,
            "Names are made up, the same one for the same; words of messages that may be names are masked; "
            "explanations are left out.",
        ),
    )


def _workload(text: str, names: _Names) -> str:
    kind, _, name = text.partition(" ")
    return f"{kind} {names.name(name)}" if kind[:1].isupper() else names.said(text)


def _group(group: NodeGroup, names: _Names) -> NodeGroup:
    label = names.name(group.label)
    return NodeGroup(label, names.name(group.zone), tuple(_node(each, names) for each in group.nodes))


def _node(node: NodeAtEnd, names: _Names) -> NodeAtEnd:
    return attrs.evolve(node, name=names.name(node.name))


def _pending(each: PendingBand, names: _Names) -> PendingBand:
    return attrs.evolve(each, reason=names.said(each.reason), pods=tuple(map(names.name, each.pods)))


def _decision(each: Decision, names: _Names) -> Decision:
    return attrs.evolve(
        each,
        pod=names.name(each.pod),
        node=names.name(each.node),
        message=names.said(each.message),
        nominated=names.name(each.nominated),
        victims=tuple(map(names.name, each.victims)),
        funnel=None if each.funnel is None else _funnel(each.funnel, names),
        best=tuple(attrs.evolve(node, node=names.name(node.node)) for node in each.best),
    )


def _funnel(funnel: Funnel, names: _Names) -> Funnel:
    steps = (
        attrs.evolve(step, reasons=tuple((count, names.said(why)) for count, why in step.reasons))
        for step in funnel.steps
    )
    return attrs.evolve(funnel, steps=tuple(steps))


def _checked(checked: Checked, names: _Names) -> Checked:
    return attrs.evolve(
        checked,
        unplaced=tuple(
            attrs.evolve(each, pod=names.name(each.pod), why=names.said(each.why), remedy=names.said(each.remedy))
            for each in checked.unplaced
        ),
        displaced=tuple((names.name(pod), what, names.said(why)) for pod, what, why in checked.displaced),
        troubles=tuple(map(names.said, checked.troubles)),
    )


def _names(report: Report) -> Iterator[str]:
    """Everything in the report that is a name."""
    for group in report.groups:
        yield group.label
        yield group.zone
        for node in group.nodes:
            yield node.name
    for pending in report.pending:
        yield from pending.pods
    for zone in report.zones:
        yield zone.name
    for spread in report.spread:
        yield spread.workload.rpartition(" ")[2]
    for decision in report.decisions.values():
        yield from (decision.pod, decision.node, decision.nominated, *decision.victims)
        yield from (node.node for node in decision.best)
    if report.checked is not None:
        yield from (each.pod for each in report.checked.unplaced)
        yield from (pod for pod, _, _ in report.checked.displaced)
