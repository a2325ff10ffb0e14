"""Causes of pending pods: affinity and anti-affinity between pods."""

import copy
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain, filterfalse
from operator import attrgetter
from typing import Any, Final

from kschedd.api.nodes import HOSTNAME_LABEL
from kschedd.api.objects import Object
from kschedd.api.pods import Pod, PodSignature
from kschedd.api.selecting.terms import PodAffinityTerm
from kschedd.cache.forked_counts import SignedPods
from kschedd.causes.case import Case
from kschedd.causes.cluster_nodes import values_by_key
from kschedd.causes.demands.new_nodes import more_nodes
from kschedd.causes.findings import CHANGE_OTHER, FoundCause, RemedyOption, fewer_replicas, named, spec_edit
from kschedd.causes.near import nearest, nearest_key
from kschedd.causes.steps import patched
from kschedd.causes.strategies import beside_missing
from kschedd.causes.words import counted, joined, some, suitable
from kschedd.causes.workload import ExaminedWorkload, label_of, root_of, roots_of, workload_of

Spec = dict[str, Any]
_PLUGIN: Final = "InterPodAffinity"
_AFFINITY: Final = "node(s) didn't match pod affinity rules"
_ANTI: Final = "node(s) didn't match pod anti-affinity rules"
_EXISTING: Final = "node(s) didn't satisfy existing pods anti-affinity rules"
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
_WEIGHT: Final = 100  # weight of a preferred term that replaces a required one
_SHOWN: Final = 6


def apart_or_together(case: Case, among: Collection[str]) -> FoundCause | None:
    """Return the cause: affinity between pods rejects otherwise suitable nodes."""
    for reason, look in ((_AFFINITY, _together), (_ANTI, _apart), (_EXISTING, _kept_off)):
        rejected = case.rejected_for(_PLUGIN, reason)
        there = [name for name in among if name in rejected]
        found = look(case, there) if there else None
        if found is not None:
            return found
    return None


def _matching(case: Case, term: PodAffinityTerm) -> list[Pod]:
    """Return the pods on nodes that the term selects."""
    spaces = case.namespaces
    return case.judgment.counts.signed.matching(
        lambda each: term.matches(each.namespace, each.labels, spaces.get(each.namespace, {}))
    )


def _of_itself(case: Case, term: PodAffinityTerm) -> bool:
    return term.matches(case.pod.namespace, case.pod.labels, case.namespaces.get(case.pod.namespace, {}))


def owner_labels(case: Case, pods: Iterable[Pod]) -> list[str]:
    """Return the workloads of these pods, sorted.

    A workload in another namespace than the pod has its namespace as prefix.
    """
    return sorted(
        label_of(root) if root.namespace == case.pod.namespace else f"{root.namespace}/{label_of(root)}"
        for root in roots_of(case.store, pods)
    )


def _field(which: str, place: int) -> str:
    return f"spec.affinity.{which}.{_REQUIRED}[{place}]"


# -- anti-affinity ----------------------------------------------------------------------------------------------------


def _apart(case: Case, turned_away: Sequence[str]) -> FoundCause | None:
    terms = case.pod.signature.required_anti_affinity
    for place, term in enumerate(terms):
        others = _matching(case, term)
        key = term.topology_key
        values = {case.nodes[pod.node_name].labels.get(key) for pod in others if pod.node_name in case.nodes}
        if not any(case.nodes[name].labels.get(key) in values for name in turned_away):
            continue
        mine = {pod.uid for pod in case.workload.pods}
        own, foreign = [p for p in others if p.uid in mine], [p for p in others if p.uid not in mine]
        if own and _of_itself(case, term):
            return _too_many_replicas(case, place, term, own)
        if foreign:
            return _beside(case, place, term, foreign)
    return None


def _too_many_replicas(case: Case, place: int, term: PodAffinityTerm, own: Sequence[Pod]) -> FoundCause:
    key, wanted = term.topology_key, case.workload.wanted
    usable = case.zones(case.open, key)
    what = _domain_word(key)
    names = f" ({some(usable, _SHOWN)})" if key != HOSTNAME_LABEL else " that the pod may use"
    message = f"{counted(wanted, 'replica')} with one per {what}, and {counted(len(usable), what)}{names}"
    if len(usable) >= wanted:
        message = (
            f"{counted(wanted, 'replica')} with one per {what}: {suitable(len(usable), what)} "
            f"{'has one' if len(usable) == 1 else 'have one'} already"
        )
    preferred = _preferred("podAntiAffinity", place)
    options = [preferred, *beside_missing(case.workload, preferred)]
    fits = len({case.nodes[pod.node_name].labels.get(key) for pod in own if pod.node_name in case.nodes})
    options += fewer_replicas(case.workload, fits)
    options += _nodes_of_their_own(case, term)
    return FoundCause(
        "MoreReplicasThanDomains",
        message,
        [named(case.workload.obj)],
        [_field("podAntiAffinity", place), "spec.replicas"],
        [
            f"podAntiAffinity with topologyKey {key}",
            f"pods by node: {some([f'{pod.name} on {pod.node_name}' for pod in own], _SHOWN)}",
        ],
        options,
    )


def _beside(case: Case, place: int, term: PodAffinityTerm, others: Sequence[Pod]) -> FoundCause:
    owners = owner_labels(case, others)
    word = _domain_word(term.topology_key)
    return FoundCause(
        "AntiAffinityOfOthers",
        f"the pod may not share a {word} with pods of {some(owners)} (`{term.selector}`), and every suitable {word} "
        "has such a pod",
        [named(pod) for pod in others[:3]],
        [_field("podAntiAffinity", place)],
        [f"pods of {some(owners)} are on {some({pod.node_name for pod in others})}"],
        [_preferred("podAntiAffinity", place), *_nodes_of_their_own(case, term)],
    )


def _nodes_of_their_own(case: Case, term: PodAffinityTerm) -> list[RemedyOption]:
    """Return the options that add nodes, if the workload's pods exclude each other from sharing a node."""
    if term.topology_key != HOSTNAME_LABEL or case.workload.kind == "DaemonSet":
        return []
    return more_nodes(case, case.large_enough)


def _kept_off(case: Case, turned_away: Sequence[str]) -> FoundCause | None:
    """Return the cause, or None: the required anti-affinity of existing pods excludes this pod."""
    by_owner: dict[str, tuple[Object, PodAffinityTerm, int, set[str]]] = {}
    for pod, place, term in _keeping_off(case):
        root = root_of(case.store, pod)
        known = by_owner.setdefault(root.uid, (root, term, place, set()))
        known[3].add(pod.node_name)
    if not by_owner:
        return None
    if case.workload.obj.uid in by_owner:
        _, term, place, _ = by_owner[case.workload.obj.uid]
        return _too_many_replicas(case, place, term, case.workload.scheduled)
    root, term, place, nodes = max(by_owner.values(), key=lambda each: len(each[3]))
    workload = ExaminedWorkload(root, ())
    word = _domain_word(term.topology_key)
    where = f"{workload.obj.namespace}/" if workload.obj.namespace != case.pod.namespace else ""
    after = [] if workload.kind == "Pod" else _relaxed_anti_affinity(workload, place)  # a pod's affinity is immutable
    relaxed = RemedyOption(
        f"have {where}{workload.label} prefer to be apart",
        CHANGE_OTHER,
        steps=[patched(workload.obj.raw, after)],
        target=workload.label,
    )
    return FoundCause(
        "AntiAffinityOfOthers",
        f"the anti-affinity of {where}{workload.label} excludes pods with `{term.selector}` from each {word} with one "
        f"of its pods, and every suitable {word} has one",
        [named(workload.obj)],
        ["metadata.labels"],
        [f"pods of {where}{workload.label} are on {some(nodes)}"],
        [
            *_other_labels(case, term),
            *([relaxed] if after else []),
        ],
    )


def _keeping_off(case: Case) -> Iterator[tuple[Pod, int, PodAffinityTerm]]:
    """Yield each running pod whose required anti-affinity excludes this pod, with the term and its position."""
    labels = case.namespaces.get(case.pod.namespace, {})
    terms = case.judgment.counts.existing_terms_matching("required-anti", case.pod.signature)
    table = case.engine.machine.cluster.table
    for row in sorted({row for each in terms for row in each.count.by_row}):
        for pod in table.pods[row]:
            for place, term in enumerate(pod.signature.required_anti_affinity):
                if term.matches(case.pod.namespace, case.pod.labels, labels):
                    yield pod, place, term


def _other_labels(case: Case, term: PodAffinityTerm) -> list[RemedyOption]:
    """Return the options to remove labels that other pods select, unless the workload's selector needs the labels."""
    selector = case.workload.spec.get("selector") or {}
    needed = {*(selector.get("matchLabels") or {}), *(each["key"] for each in selector.get("matchExpressions") or ())}
    keys = {requirement.key for requirement in term.selector.requirements if requirement.key in case.pod.labels}
    if not keys or keys & needed or case.workload.kind == "Pod":
        return []

    def unlabeled(manifest: dict[str, Any], spec: Spec) -> None:
        template: Any = manifest
        for field in case.workload.path[:-1]:
            template = template.get(field) or {}
        for key in keys:
            ((template.get("metadata") or {}).get("labels") or {}).pop(key, None)

    text = joined([f"{key}={case.pod.labels[key]}" for key in sorted(keys)])
    return [RemedyOption(f"do not label its pods {text}", edit=unlabeled)]


def _relaxed_anti_affinity(workload: ExaminedWorkload, place: int) -> list[dict[str, Any]]:
    """Return the JSON patch that changes a required anti-affinity term of another workload to a preferred term.

    The patch is empty if the template has fewer terms than the pod, because the pod is from an earlier template.
    """
    path = "/" + "/".join(workload.path) + "/affinity/podAntiAffinity"
    held = (workload.pod_spec.get("affinity") or {}).get("podAntiAffinity") or {}
    if len(held.get(_REQUIRED) or ()) <= place:
        return []
    changed = copy.deepcopy(dict(held))
    _prefer(changed, place)
    return [{"op": "replace", "path": path, "value": changed}]


# -- affinity ---------------------------------------------------------------------------------------------------------


def _together(case: Case, turned_away: Sequence[str]) -> FoundCause | None:
    for place, term in enumerate(case.pod.signature.required_affinity):
        key = term.topology_key
        lacking = [name for name in turned_away if key not in case.nodes[name].labels]
        if len(lacking) == len(turned_away):
            return _missing_key(case, place, term)
        others = _matching(case, term)
        if not others and not _of_itself(case, term):
            return _nobody_there(case, place, term)
        if others:
            domains = {case.nodes[pod.node_name].labels.get(key) for pod in others if pod.node_name in case.nodes}
            if any(case.nodes[name].labels.get(key) not in domains for name in turned_away):
                return _full_there(case, place, term, others, domains)
    return None


def _missing_key(case: Case, place: int, term: PodAffinityTerm) -> FoundCause:
    likely = nearest_key(term.topology_key, case.open_keys)
    text = f"a pod affinity has the topologyKey `{term.topology_key}`, and no node that the pod may use has that label"
    options = [_preferred("podAffinity", place)]
    if likely is not None:
        text += f"; {counted(case.open_with(likely), 'node')} have `{likely}`"

        def edit(spec: Spec) -> None:
            spec["affinity"]["podAffinity"][_REQUIRED][place]["topologyKey"] = likely

        options.insert(0, RemedyOption(f"topologyKey {likely}", edit=spec_edit(edit)))
    return FoundCause(
        "PodAffinityKeyMissing", text, fields=[f"{_field('podAffinity', place)}.topologyKey"], options=options
    )


def _selected_spaces(case: Case, term: PodAffinityTerm) -> str:
    selector = term.namespace_selector
    found = [name for name, labels in case.namespaces.items() if selector is not None and selector.matches(labels)]
    return f"in a namespace with `{selector}` ({some(found) if found else 'there is no such namespace'})"


def _nobody_there(case: Case, place: int, term: PodAffinityTerm) -> FoundCause:
    """Return the cause: no pod matches the term: its labels are misspelled, in another namespace or missing."""
    raw = case.workload.pod_spec["affinity"]["podAffinity"][_REQUIRED][place]
    wanted: Mapping[str, str] = (raw.get("labelSelector") or {}).get("matchLabels") or {}
    everyone = case.judgment.counts.signed
    spaces = sorted(term.namespaces)
    where = f"in namespace {joined(spaces)}" if spaces else _selected_spaces(case, term)
    text = f"the pod must run beside a pod with `{term.selector}` {where}, and there is none"
    field = _field("podAffinity", place)
    elsewhere = everyone.matching(
        lambda each: each.namespace not in term.namespaces and term.selector.matches(each.labels)
    )
    present = chain.from_iterable(chain.from_iterable(case.store.present("Pod", space) for space in spaces))
    waiting = [
        pod
        for pod in filterfalse(attrgetter("node_name"), present)
        if isinstance(pod, Pod) and term.selector.matches(pod.labels)
    ]
    if waiting:
        waiting.sort(key=lambda pod: pod.key)
        (owner,) = owner_labels(case, waiting[:1])
        return FoundCause(
            "PodAffinityPending",
            f"the pod must run beside a pod with `{term.selector}`, and the pods of {owner} are pending themselves",
            [named(root_of(case.store, waiting[0]))],
            [field],
            options=[_preferred("podAffinity", place)],
            waits_for=waiting[0],
        )
    if elsewhere:
        space = sorted({pod.namespace for pod in elsewhere})
        near = _near_spaces(case, raw, space)

        def elsewhere_edit(spec: Spec) -> None:
            changed = spec["affinity"]["podAffinity"][_REQUIRED][place]
            if near is None:
                changed["namespaces"] = space
            else:
                changed["namespaceSelector"]["matchLabels"] = near

        labels_text = "" if near is None else f" `{_written(near)}`"

        return FoundCause(
            "PodAffinityWrongNamespace",
            f"{text}; {counted(len(elsewhere), 'pod')} in namespace {joined(space)} "
            f"{'has' if len(elsewhere) == 1 else 'have'} these labels"
            f"{labels_text and f', and it has the label{labels_text}'}",
            [named(pod) for pod in elsewhere[:3]],
            [f"{field}.namespaces" if near is None else f"{field}.namespaceSelector"],
            options=[
                RemedyOption(
                    f"select namespaces with{labels_text}" if labels_text else f"look in namespace {joined(space)}",
                    edit=spec_edit(elsewhere_edit),
                )
            ],
        )
    near_by = [each for each in everyone.signatures if each.namespace in spaces]
    found = _near_labels(wanted, everyone, near_by)
    if found is None and len(near_by) < len(everyone.signatures):
        found = _near_labels(wanted, everyone, everyone.signatures)
    if found is not None:
        labels, pods = found
        others = [] if any(pod.namespace in spaces for pod in pods) else sorted({pod.namespace for pod in pods})

        def near_edit(spec: Spec) -> None:
            changed = spec["affinity"]["podAffinity"][_REQUIRED][place]
            changed["labelSelector"]["matchLabels"] = dict(labels)
            if others:
                changed["namespaces"] = others

        labels_text = _written(labels)
        there = f" in namespace {joined(others)}" if others else ""
        return FoundCause(
            "PodAffinityMatchesNothing",
            f"{text}; {counted(len(pods), 'pod')}{there} {'has' if len(pods) == 1 else 'have'} `{labels_text}`",
            [named(pod) for pod in pods[:3]],
            [f"{field}.labelSelector", *([f"{field}.namespaces"] if others else [])],
            options=[RemedyOption(f"select {labels_text}{there}", edit=spec_edit(near_edit))],
        )
    idle = _without_pods(case, term)
    return FoundCause(
        "PodAffinityMatchesNothing",
        text
        + (f": {some([each.label for each in idle])} {'has' if len(idle) == 1 else 'have'} no pods" if idle else ""),
        [named(each.obj) for each in idle[:3]],
        [field],
        options=[_preferred("podAffinity", place)],
    )


def _without_pods(case: Case, term: PodAffinityTerm) -> list[ExaminedWorkload]:
    """Return the workloads without pods whose pods would match the term."""
    found = [
        workload
        for kind in ("Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Job")
        for obj in case.store.list(kind)
        if obj.owner is None
        and term.matches(
            obj.namespace, (workload := ExaminedWorkload(obj, ())).pod_labels, case.namespaces.get(obj.namespace, {})
        )
    ]
    return [each for each in found if not workload_of(case.store, each.obj).pods]


def _near_spaces(case: Case, term: Mapping[str, Any], spaces: Sequence[str]) -> dict[str, str] | None:
    """Return the namespace labels that the term's selector probably means, or None."""
    wanted = (term.get("namespaceSelector") or {}).get("matchLabels") or {}
    labels = _near(wanted, [case.namespaces.get(space, {}) for space in spaces]) if wanted else None
    if labels is None or not all(labels.items() <= case.namespaces[space].items() for space in spaces):
        return None
    return labels


def _written(labels: Mapping[str, str]) -> str:
    return ", ".join(f"{key}={value}" for key, value in labels.items())


def _near_labels(
    wanted: Mapping[str, str], everyone: SignedPods, among: Sequence[PodSignature]
) -> tuple[dict[str, str], list[Pod]] | None:
    """Return labels in `among` that resemble the `wanted` labels, and the pods that have them."""
    changed = _near(wanted, [each.labels for each in among])
    if changed is None or changed == dict(wanted):
        return None
    having = {each for each in among if changed.items() <= dict(each.labels).items()}
    return (changed, everyone.matching(having.__contains__)) if having else None


def _near(wanted: Mapping[str, str], there: Sequence[Mapping[str, str]]) -> dict[str, str] | None:
    """Return existing labels that resemble these, or None."""
    values = values_by_key(there)
    changed: dict[str, str] = {}
    for key, value in wanted.items():
        known = values.get(key, ())
        having = [other for other, those in values.items() if value in those]
        own = key if value in known or nearest(value, known) else nearest_key(key, values.keys() - {key}, having)
        if own is None:
            return None
        likely = value if value in values[own] else nearest(value, values[own])
        if likely is None:
            return None
        changed[own] = likely
    return changed


def _full_there(
    case: Case, place: int, term: PodAffinityTerm, others: Sequence[Pod], domains: Collection[str | None]
) -> FoundCause:
    word = _domain_word(term.topology_key)
    there = [n for n in case.nodes if case.nodes[n].labels.get(term.topology_key) in domains]
    plugins = sorted({plugin for name in there for plugin in case.rejections.get(name, {}) if plugin != _PLUGIN})
    why = f": {joined(plugins)} {'rejects' if len(plugins) == 1 else 'reject'} the nodes there" if plugins else ""
    owners = owner_labels(case, others)
    apart = _apart_from_itself(case, term)
    if apart is not None and _of_itself(case, term):
        return FoundCause(
            "MoreReplicasThanDomains",
            f"podAffinity requires the replicas in one {word}, and podAntiAffinity forbids two of them in one "
            f"{_domain_word(apart.topology_key)}",
            [named(case.workload.obj)],
            [_field("podAffinity", place), "spec.affinity.podAntiAffinity"],
            [f"pods of {some(owners)} are on {some({pod.node_name for pod in others})}"],
            [_preferred("podAffinity", place)],
        )
    return FoundCause(
        "PodAffinityDomainFull",
        f"the pod must share a {word} with pods of {some(owners)}, which are in "
        f"{some([each for each in domains if each], _SHOWN)}, and that cannot take it{why}",
        [named(pod) for pod in others[:3]],
        [_field("podAffinity", place)],
        [f"{name}: {', '.join(r for rs in case.rejections.get(name, {}).values() for r in rs)}" for name in there[:3]],
        [_preferred("podAffinity", place)],
    )


def _apart_from_itself(case: Case, term: PodAffinityTerm) -> PodAffinityTerm | None:
    """Return the pod's anti-affinity to its own replicas that allows only one of them in each domain of this term."""
    for apart in case.pod.signature.required_anti_affinity:
        if apart.topology_key == term.topology_key and _of_itself(case, apart):
            return apart
    return None


# -- changes ----------------------------------------------------------------------------------------------------------


def _domain_word(key: str) -> str:
    """Return `node`, `zone`, `region`, or the last part of the key."""
    return "node" if key == HOSTNAME_LABEL else key.rpartition("/")[2]


def _preferred(which: str, place: int) -> RemedyOption:
    def edit(spec: Spec) -> None:
        _prefer(spec["affinity"][which], place)

    what = "be beside them" if which == "podAffinity" else "be apart"
    return RemedyOption(f"prefer to {what} instead of requiring it", edit=spec_edit(edit))


def _prefer(held: dict[str, Any], place: int) -> None:
    term = held[_REQUIRED].pop(place)
    if not held[_REQUIRED]:
        del held[_REQUIRED]
    held.setdefault(_PREFERRED, []).append({"weight": _WEIGHT, "podAffinityTerm": term})
