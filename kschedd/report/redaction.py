"""Redaction of a report: names are replaced by the made-up words of a redacted dump, each name always by the same word.

Messages mix names and English. A word is not replaced if it occurs in the scheduler's own messages, replaced if it is
part of a name in the cluster, and masked otherwise (for example a label of a deleted node). Explanations are omitted,
because they quote labels, taints and volumes at length.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import attrs

from kschedd.dumps.redaction import Redaction
from kschedd.report.model import Report

_MASKED: Final = "xxx"
_WORD: Final = re.compile(r"[A-Za-z0-9]+")
_UNITS: Final = re.compile(r"\d+[A-Za-z]{0,2}")
#: words that occur in the scheduler's messages, in its plugins' reasons and in this report
_KEPT_WORDS: Final = frozenset(
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
    notready diskpressure memorypressure pidpressure networkunavailable noexecute noschedule prefernoschedule
    which while why will with within without would yet zone tried under way began report mean
    """.split()
)


class _Names:
    def __init__(self, report: Report, objects: Iterable[Any]) -> None:
        found: list[str] = []

        def noted(name: str) -> str:
            found.append(name)
            return name

        _rewritten(report, noted, str)
        # `objects` does not contain deleted objects, but the report contains their names.
        names = [{"kind": "Name", "metadata": {"name": name}} for name in found]
        self._redaction = Redaction([*objects, *names])

    def name(self, text: str) -> str:
        return self._redaction.text(text)

    def prose(self, text: str) -> str:
        return _WORD.sub(self._word, text)

    def _word(self, found: re.Match[str]) -> str:
        word = found[0]
        if word.lower() in _KEPT_WORDS or _UNITS.fullmatch(word):
            return word
        replaced = self._redaction.text(word)
        return _MASKED if replaced == word and not self._redaction.keeps(word) else replaced


def redacted(report: Report, objects: Iterable[Any]) -> Report:
    """`objects`: all manifests of the cluster. Names of plugins and resources are not replaced."""
    end = report.at_end
    groups = [attrs.evolve(group, remedy=None) for group in end.pending]
    end = attrs.evolve(end, pending=groups, diagnoses=(), explanations=())
    report = attrs.evolve(report, at_end=end)
    names = _Names(report, objects)
    answer: Report = _rewritten(report, names.name, names.prose)
    note = (
        "Names are replaced, the same name always by the same word; words of messages that may be names are masked. "
        "Details of causes are omitted."
    )
    return attrs.evolve(answer, notes=(*report.notes, note))


Rewrite = Callable[[str], str]
#: the kind of each field of the report's classes: `name` or `prose`, or the kind of each part of its tuples
_FIELDS: Final[Mapping[str, str | tuple[str, ...]]] = {
    "NodeGroup.label": "name",
    "NodeGroup.zone": "name",
    "NodeGroup.nodes": "name",
    "PendingBand.reason": "prose",
    "PendingBand.pods": "name",
    "UsageAnswer.nodes": "name",
    "UsageAnswer.zones": "name",
    "UsageAnswer.conditions": "prose",
    "UsageAnswer.taints": "prose",
    "AtEnd.pods": "names",
    "PodOnNode.key": "name",
    "QueuedAnswer.key": "name",
    "QueuedAnswer.nominated_node": "name",
    "QueuedAnswer.message": "prose",
    "WaitingAnswer.pod": "name",
    "WaitingAnswer.node": "name",
    "PendingGroup.message": "prose",
    "ObjectNamed.namespace": "name",
    "ObjectNamed.name": "name",
    "PoolUse.name": "name",
    "ZoneUse.name": "name",
    "Spread.workload": "workload",
    "Decision.pod": "name",
    "Decision.node": "name",
    "Decision.message": "prose",
    "Decision.nominated": "name",
    "Decision.victims": "name",
    "NodeScore.node": "name",
    "FunnelStep.reasons": ("", "prose"),
    "UnplacedHere.pod": "name",
    "UnplacedHere.why": "prose",
    "UnplacedHere.remedy": "prose",
    "CheckedChange.pod": "name",
    "CheckedChange.node": "name",
    "CheckedChange.to": "name",
    "CheckedChange.cause": "prose",
    "Checked.troubles": "prose",
}


def _rewritten(value: Any, name: Rewrite, prose: Rewrite, what: str | tuple[str, ...] = "") -> Any:
    """Return a part of a report; `name` replaces each name, and `prose` replaces each message."""
    if isinstance(value, str):
        if what == "workload":
            kind, _, own = value.partition(" ")
            return f"{kind} {name(own)}" if kind[:1].isupper() else prose(value)
        return {"name": name, "prose": prose}.get(str(what), str)(value)
    if attrs.has(type(value)):
        fields = [(field.name, f"{type(value).__name__}.{field.name}") for field in attrs.fields(type(value))]
        made = {field: _rewritten(getattr(value, field), name, prose, _FIELDS.get(key, "")) for field, key in fields}
        return attrs.evolve(value, **made)
    if isinstance(value, Mapping):
        return {name(key) if what == "names" else key: _rewritten(each, name, prose) for key, each in value.items()}
    if isinstance(value, list | tuple):
        if isinstance(what, tuple) and value and not isinstance(value[0], tuple):
            return tuple(_rewritten(each, name, prose, part) for each, part in zip(value, what, strict=True))
        return type(value)(_rewritten(each, name, prose, what) for each in value)
    return value
