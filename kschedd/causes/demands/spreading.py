"""Causes of pending pods: topology spread constraints (nodes without the key, too few domains, a full domain)."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from kschedd.api.pods import Pod
from kschedd.api.selecting.terms import SpreadConstraint
from kschedd.cache.counts import spread_matcher
from kschedd.causes.case import Case
from kschedd.causes.demands.tainted import untolerated
from kschedd.causes.findings import FoundCause, RemedyOption, spec_edit
from kschedd.causes.near import LIKELY_LABELS, nearest, nearest_key
from kschedd.causes.words import counted, every, joined, some

Spec = dict[str, Any]
_PLUGIN: Final = "PodTopologySpread"
_HARD: Final = "DoNotSchedule"
_SHOWN: Final = 6
_UNUSABLE: Final = ("TaintToleration", "NodeUnschedulable", "NodeAffinity")  # whatever room there is


def missing_key(case: Case) -> FoundCause | None:
    """Return the cause: no node where the pod may run has a constraint's topology key."""
    for place, constraint in _hard(case.pod):
        key = constraint.topology_key
        if not case.open or case.open_with(key):
            continue
        likely = nearest_key(key, case.open_keys)
        which = "no node" if case.open == case.cluster.names else "no node that the pod may use"
        text = f"a topology spread constraint has the key `{key}`, and {which} has that label"
        if likely is None:
            return FoundCause(
                "NodeLabelMissing",
                text,
                fields=[_field(place)],
                evidence=[f"labels of the nodes: {some(case.open_keys, 8)}"],
                options=[_relaxed([place])],
            )
        count = case.open_with(likely)
        return FoundCause(
            "NodeLabelDeprecated" if LIKELY_LABELS.get(key) == likely else "NodeLabelMisspelled",
            f"{text}; {counted(count, 'node')} {'has' if count == 1 else 'have'} `{likely}`",
            fields=[_field(place)],
            options=[
                RemedyOption(f"spread over {likely}", edit=spec_edit(_with_key(place, likely))),
                _relaxed([place]),
            ],
        )
    return None


def not_spread(case: Case, among: Collection[str]) -> FoundCause | None:
    """Return the cause: a constraint rejects otherwise suitable nodes."""
    rejected = case.rejected_by(_PLUGIN)
    turned_away = [name for name in among if name in rejected]
    if not turned_away:
        return None
    for place, constraint in _hard(case.pod):
        if not constraint.selector.matches(case.pod.labels):
            return _selects_others(case, place, constraint)
    counts_of = {place: _counts(case, constraint) for place, constraint in _hard(case.pod)}
    for place, constraint in _hard(case.pod):
        counts = counts_of[place]
        if counts and constraint.min_domains > len(counts):
            return _too_few_domains(case, place, constraint, counts)
    for place, constraint in _hard(case.pod):
        counts = counts_of[place]
        least = min(counts.values(), default=0)
        over = [
            name
            for name in turned_away
            if counts.get(case.nodes[name].labels.get(constraint.topology_key, ""), 0) + 1 - least > constraint.max_skew
        ]
        if over:
            return _skewed(case, place, constraint, counts)
    for place, constraint in _hard(case.pod):
        key = constraint.topology_key
        if all(key not in case.nodes[name].labels for name in turned_away):
            return FoundCause(
                "SpreadConstraints",
                f"a topology spread constraint has the key `{key}`, and {every(len(turned_away), 'node')} that "
                f"{'is' if len(turned_away) == 1 else 'are'} suitable otherwise "
                f"{'lacks' if len(turned_away) == 1 else 'lack'} that label",
                fields=[_field(place)],
                evidence=[f"without the label: {some(turned_away)}", _counts_text(key, counts_of[place])],
                options=[_relaxed([place])],
            )
    places = [place for place, _ in _hard(case.pod)]
    return FoundCause(
        "SpreadConstraints",
        f"the topology spread constraints exclude {every(len(turned_away), 'node')} that "
        f"{'is' if len(turned_away) == 1 else 'are'} suitable otherwise",
        fields=[_field(place) for place in places],
        options=[_relaxed(places)],
        certain=False,
    )


def _hard(pod: Pod) -> list[tuple[int, SpreadConstraint]]:
    constraints = pod.signature.spread_constraints
    return [(place, each) for place, each in enumerate(constraints) if each.when_unsatisfiable == _HARD]


def _field(place: int) -> str:
    return f"spec.topologySpreadConstraints[{place}]"


def _counts(case: Case, constraint: SpreadConstraint) -> dict[str, int]:
    """Return the number of pods that the plugin counts in each domain of the included nodes."""
    key = constraint.topology_key
    counts: dict[str, int] = {}
    tainted = case.rejected_by("TaintToleration", "NodeUnschedulable") if constraint.honor_taints else set()
    row_of = case.engine.machine.cluster.table.row_of
    selector = constraint.selector
    by_row: Mapping[int, int] = {}
    if not selector.empty:  # the plugin counts no pods for an empty selector
        by_row = case.judgment.counts.matching(spread_matcher(case.pod.namespace, selector)).by_row
    for name, node in case.nodes.items():
        if key not in node.labels or (constraint.honor_affinity and name not in case.selected) or name in tainted:
            continue
        counts[node.labels[key]] = counts.get(node.labels[key], 0) + by_row.get(row_of[name], 0)
    return counts


def _selects_others(case: Case, place: int, constraint: SpreadConstraint) -> FoundCause:
    """Return whether the constraint's selector does not match the workload's own pods."""
    labels = case.pod.labels
    raw = case.workload.pod_spec["topologySpreadConstraints"][place].get("labelSelector") or {}
    wanted: Mapping[str, str] = raw.get("matchLabels") or {}
    changed: dict[str, str] = {}
    for key, value in wanted.items():
        if labels.get(key) == value:
            changed[key] = value
        elif key in labels:
            changed[key] = labels[key]
        elif (likely := nearest(key, labels)) is not None:
            changed[likely] = labels[likely]
    shown = f"`{constraint.selector}`"
    options = [_relaxed([place])]
    if changed and len(changed) == len(wanted):
        become = ", ".join(f"{key}={value}" for key, value in changed.items())
        edit = spec_edit(_with(place, "labelSelector", {**raw, "matchLabels": changed}))
        options.insert(0, RemedyOption(f"select {become}", edit=edit))
    own = ", ".join(f"{key}={value}" for key, value in labels.items()) or "none"
    return FoundCause(
        "SpreadSelectsOthers",
        f"the spread constraint counts pods with {shown}, and the pod itself has other labels ({own})",
        fields=[f"{_field(place)}.labelSelector"],
        evidence=[_counts_text(constraint.topology_key, _counts(case, constraint))],
        options=options,
        certain=False,
    )


def _too_few_domains(case: Case, place: int, constraint: SpreadConstraint, counts: Mapping[str, int]) -> FoundCause:
    key, there = constraint.topology_key, len(counts)
    return FoundCause(
        "SpreadTooFewDomains",
        f"minDomains is {constraint.min_domains}, and there {'is' if there == 1 else 'are'} "
        f"{counted(there, 'value')} of `{key}` ({some(counts, _SHOWN)}), so no pod is scheduled where "
        f"{constraint.max_skew} or more of them are already",
        fields=[f"{_field(place)}.minDomains"],
        evidence=[_counts_text(key, counts)],
        options=[
            RemedyOption(f"minDomains {there}", edit=spec_edit(_with(place, "minDomains", there))),
            _relaxed([place]),
        ],
    )


def _skewed(case: Case, place: int, constraint: SpreadConstraint, counts: Mapping[str, int]) -> FoundCause:
    key = constraint.topology_key
    least = min(counts.values())
    lowest = [domain for domain, count in counts.items() if count == least]
    blocked = {domain: _blockers(case, key, domain) for domain in lowest}
    reasons = Counter(reason for reasons_of in blocked.values() for reason in reasons_of)
    plugin = reasons.most_common(1)[0][0] if reasons else ""
    others = [each for other, each in _hard(case.pod) if other != place]
    why = f" ({_in_words(plugin)})" if plugin else ""
    if not plugin and others:
        why = f" (excluded by the constraint over {joined([f'`{each.topology_key}`' for each in others])})"
    lows = f"`{key}={lowest[0]}` has {counted(least, 'pod')}"
    if len(lowest) > 1:
        lows = f"{len(lowest)} values of `{key}` ({some(lowest)}) have {counted(least, 'pod')} each"
    message = (
        f"maxSkew {constraint.max_skew} over `{key}`: {lows}, and no further pod fits there{why}; everywhere else one "
        f"more pod exceeds the skew"
    )
    options = []
    if plugin in ("TaintToleration", "NodeUnschedulable") and not constraint.honor_taints:
        edit = spec_edit(_with(place, "nodeTaintsPolicy", "Honor"))
        options.append(
            RemedyOption("leave nodes out whose taints the pod does not tolerate (nodeTaintsPolicy: Honor)", edit=edit)
        )
    options.append(_relaxed([place]))
    return FoundCause(
        "SpreadCountsUnusableDomain" if plugin in _UNUSABLE else "SpreadSkewed",
        message,
        fields=[_field(place)],
        evidence=[
            _counts_text(key, counts),
            *_taints(case, key, lowest),
            *(
                f"{domain}: {', '.join(f'{r} rejects {n}' for r, n in by.items())}"
                for domain, by in blocked.items()
                if by
            ),
        ],
        options=options,
    )


def _blockers(case: Case, key: str, domain: str) -> dict[str, str]:
    """Return, by plugin, the nodes of a domain that this other plugin rejects."""
    found: dict[str, list[str]] = {}
    for name, node in case.nodes.items():
        if node.labels.get(key) == domain:
            for plugin in case.rejections.get(name, {}):
                if plugin != _PLUGIN:
                    found.setdefault(plugin, []).append(name)
    return {plugin: some(names) for plugin, names in sorted(found.items(), key=lambda pair: -len(pair[1]))}


def _taints(case: Case, key: str, lowest: Sequence[str]) -> list[str]:
    """Return the taints of these domains' nodes that the pod does not tolerate."""
    names = [name for name, node in case.nodes.items() if node.labels.get(key) in lowest]
    taints = sorted({taint.shown for name in names for taint in untolerated(case, name)})
    return [f"taints there: {', '.join(taints)}"] if taints else []


def _in_words(plugin: str) -> str:
    words = {
        "TaintToleration": "nodes with a taint that the pod does not tolerate",
        "NodeUnschedulable": "cordoned nodes",
        "NodeResourcesFit": "no room",
        "NodeAffinity": "nodes that the pod does not select",
        "NodePorts": "the host port is taken",
    }
    return words.get(plugin, f"rejected by {plugin}")


def _counts_text(key: str, counts: Mapping[str, int]) -> str:
    ordered = sorted(counts.items(), key=lambda pair: (pair[1], pair[0]))[:_SHOWN]
    more = len(counts) - len(ordered)
    return f"pods by {key}: " + ", ".join(f"{d} {n}" for d, n in ordered) + (f" and {more} more" if more else "")


# -- changes ----------------------------------------------------------------------------------------------------------


def _relaxed(places: Sequence[int]) -> RemedyOption:
    def edit(spec: Spec) -> None:
        for place in places:
            spec["topologySpreadConstraints"][place]["whenUnsatisfiable"] = "ScheduleAnyway"
            spec["topologySpreadConstraints"][place].pop("minDomains", None)  # requires DoNotSchedule

    return RemedyOption("spread where possible only (whenUnsatisfiable: ScheduleAnyway)", edit=spec_edit(edit))


def _with_key(place: int, key: str) -> Any:
    return _with(place, "topologyKey", key)


def _with(place: int, field: str, value: Any) -> Any:
    def edit(spec: Spec) -> None:
        spec["topologySpreadConstraints"][place][field] = value

    return edit
