"""Rules about topologySpreadConstraints and inter-pod affinity."""

from collections.abc import Iterator
from typing import Final

from kschedd.lint.rules import PODS, Hit, RuleSet
from kschedd.lint.subjects import (
    GENERATED_LABELS,
    KnownObjects,
    PodPart,
    Raw,
    Steps,
    at,
    entries,
    items,
    selects,
    text_of,
)
from kschedd.values import as_map

RULES: Final = RuleSet()
HOSTNAME: Final = "kubernetes.io/hostname"
REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"


def constraints(pod: PodPart) -> Iterator[tuple[Steps, Raw]]:
    """Yield the pod's spread constraints, each with its path from the spec."""
    return entries(pod.spec, "topologySpreadConstraints")


def affinity_terms(pod: PodPart, *, required_only: bool = False) -> Iterator[tuple[Steps, Raw, str]]:
    """Yield the terms of podAffinity and podAntiAffinity, each with its path from the spec and its field's name."""
    for side in ("podAffinity", "podAntiAffinity"):
        for path, term in entries(pod.spec, "affinity", side, REQUIRED):
            yield path, term, side
        if required_only:
            continue
        for path, weighted in entries(pod.spec, "affinity", side, PREFERRED):
            yield (*path, "podAffinityTerm"), as_map(weighted.get("podAffinityTerm")), side


def is_empty_selector(selector: object) -> bool:
    """Return whether the label selector exists and selects all objects."""
    return isinstance(selector, dict) and not selector.get("matchLabels") and not selector.get("matchExpressions")


@RULES.add(
    "spread-empty-selector",
    PODS,
    ("", "warning", "this constraint counts no pods, so it spreads nothing"),
    ("1.38", "note", "it counts all pods of the namespace, so pods may stay pending"),
    fields="topologySpreadConstraints",
    fix="Write the intended labels, usually those of the pod itself.",
    source="kubernetes#141339, kubernetes#141340",
)
def spread_empty_selector(pod: PodPart, known: KnownObjects) -> Iterator[Hit]:
    for path, constraint in constraints(pod):
        if is_empty_selector(constraint.get("labelSelector")):
            yield Hit((*path, "labelSelector"))


@RULES.add(
    "spread-nil-selector",
    PODS,
    ("", "warning", "without labelSelector this constraint counts no pods and spreads nothing{}"),
    fields="topologySpreadConstraints",
    fix="Add a labelSelector with the labels of the pods to spread, usually those of the pod itself.",
    source="kubernetes#141339",
)
def spread_nil_selector(pod: PodPart, known: KnownObjects) -> Iterator[Hit]:
    for path, constraint in constraints(pod):
        if constraint.get("labelSelector") is None:
            requires = constraint.get("whenUnsatisfiable") == "DoNotSchedule"
            yield Hit(path, "; it only requires the topology label" if requires else "")


@RULES.add(
    "spread-misses-own-pods",
    PODS,
    (
        "",
        "warning",
        "the labelSelector of this constraint does not match the pod's own labels: its pods are not counted",
    ),
    fields="topologySpreadConstraints",
    fix="Use labels that the pod itself has; otherwise its replicas are not spread among themselves.",
    source="scheduler/framework/plugins/podtopologyspread",
)
def spread_misses_own_pods(pod: PodPart, known: KnownObjects) -> Iterator[Hit]:
    for path, constraint in constraints(pod):
        selector = constraint.get("labelSelector")
        if isinstance(selector, dict) and not is_empty_selector(selector) and not selects(selector, pod.labels):
            yield Hit((*path, "labelSelector"))


@RULES.add(
    "spread-soft-min-domains",
    PODS,
    ("", "error", "minDomains needs whenUnsatisfiable: DoNotSchedule; the pod is rejected"),
    fields="topologySpreadConstraints",
    fix="Remove minDomains, or make the constraint a hard one.",
    source="core/v1 validation",
)
def spread_soft_min_domains(pod: PodPart, known: KnownObjects) -> Iterator[Hit]:
    for path, constraint in constraints(pod):
        if constraint.get("minDomains") is not None and constraint.get("whenUnsatisfiable") == "ScheduleAnyway":
            yield Hit((*path, "minDomains"))


@RULES.add(
    "match-label-keys-merge",
    PODS,
    ("", "fine", "the scheduler reads matchLabelKeys"),
    ("1.34", "fine", "the API server merges matchLabelKeys into labelSelector when the pod is created"),
    fields="topologySpreadConstraints",
    fix="Pods created before the upgrade have no merged selector: let pending pods be placed or create them again.",
    source="kubernetes#129874",
)
def match_label_keys_merge(pod: PodPart, known: KnownObjects) -> Iterator[Hit]:
    for path, constraint in constraints(pod):
        if items(constraint.get("matchLabelKeys")):
            yield Hit((*path, "matchLabelKeys"))


@RULES.add(
    "match-label-keys-absent",
    PODS,
    ("", "warning", "the pod has no label {}, so this key is ignored and more pods are counted than it seems"),
    fields=("topologySpreadConstraints", "affinity"),
    fix="Remove the key from matchLabelKeys, or add the label to the pod.",
    source="core/v1 types",
)
def match_label_keys_absent(pod: PodPart, known: KnownObjects) -> Iterator[Hit]:
    terms = [*constraints(pod), *((path, term) for path, term, _ in affinity_terms(pod))]
    for path, term in terms:
        for field in ("matchLabelKeys", "mismatchLabelKeys"):
            for place, key in enumerate(items(term.get(field))):
                if isinstance(key, str) and key not in pod.labels and key not in GENERATED_LABELS:
                    yield Hit((*path, field, place), key)


@RULES.add(
    "affinity-nil-selector",
    PODS,
    ("", "warning", "without labelSelector this term matches no pod{}"),
    fields="affinity",
    fix="Add a labelSelector with the labels of the intended pods.",
    source="core/v1 types",
)
def affinity_nil_selector(pod: PodPart, known: KnownObjects) -> Iterator[Hit]:
    for path, term, side in affinity_terms(pod):
        if term.get("labelSelector") is None:
            stays = side == "podAffinity" and REQUIRED in path
            yield Hit(path, ", so the pod stays pending" if stays else ", so it has no effect")


@RULES.add(
    "affinity-namespaces",
    PODS,
    ("", "note", "an empty list of namespaces means the pod's own namespace, not all of them"),
    fields="affinity",
    fix="Write `namespaceSelector: {}` for all namespaces, or remove the empty list.",
    source="core/v1 types",
)
def affinity_namespaces(pod: PodPart, known: KnownObjects) -> Iterator[Hit]:
    for path, term, _ in affinity_terms(pod):
        if term.get("namespaces") == [] and term.get("namespaceSelector") is None:
            yield Hit((*path, "namespaces"))


@RULES.add(
    "affinity-nsselector-wakes",
    PODS,
    (
        "",
        "note",
        "a pending pod with a namespaceSelector is not woken when a matching pod of another namespace comes or "
        "goes; it is tried again after five minutes",
    ),
    fields="affinity",
    fix="List the namespaces in `namespaces` if pods must be placed immediately.",
    source="kubernetes#141953, kubernetes#141954",
)
def affinity_nsselector_wakes(pod: PodPart, known: KnownObjects) -> Iterator[Hit]:
    for path, term, _ in affinity_terms(pod, required_only=True):
        selector = term.get("namespaceSelector")
        if isinstance(selector, dict) and not is_empty_selector(selector):
            yield Hit((*path, "namespaceSelector"))


@RULES.add(
    "affinity-nsselector-notin",
    PODS,
    (
        "",
        "warning",
        "for pods that are already placed the scheduler loses a namespaceSelector with NotIn or "
        "DoesNotExist, so the term counts for fewer namespaces than it selects",
    ),
    ("1.37", "fine", "the selector counts"),
    fields="affinity",
    fix="Add a label to the intended namespaces, and select it with In or Exists.",
    source="kube-scheduler 1.36.3, interpodaffinity",
)
def affinity_nsselector_notin(pod: PodPart, known: KnownObjects) -> Iterator[Hit]:
    for path, term, _ in affinity_terms(pod):
        for inside, wanted in entries(term, "namespaceSelector", "matchExpressions"):
            if wanted.get("operator") in ("NotIn", "DoesNotExist"):
                yield Hit((*path, *inside))


@RULES.add(
    "affinity-contradiction",
    PODS,
    ("", "error", "the pod requires and forbids the same pods in the same {}: it stays pending"),
    fields="affinity",
    fix="Remove one of the two terms.",
    source="scheduler/framework/plugins/interpodaffinity",
)
def affinity_contradiction(pod: PodPart, known: KnownObjects) -> Iterator[Hit]:
    required = [term for _, term in entries(pod.spec, "affinity", "podAffinity", REQUIRED)]
    for path, term in entries(pod.spec, "affinity", "podAntiAffinity", REQUIRED):
        if term in required and not is_empty_selector(term.get("labelSelector")) and term.get("labelSelector"):
            yield Hit(path, text_of(term.get("topologyKey")))


@RULES.add(
    "anti-affinity-to-itself",
    PODS,
    ("", "warning", "the pods of this workload may not share a {}"),
    fields="affinity",
    fix="Use fewer replicas, a topologyKey with more values, or preferred anti-affinity.",
    source="scheduler/framework/plugins/interpodaffinity",
)
def anti_affinity_to_itself(pod: PodPart, known: KnownObjects) -> Iterator[Hit]:
    replicas = pod.replicas
    if not known.nodes or replicas is None:
        return
    for path, term in entries(pod.spec, "affinity", "podAntiAffinity", REQUIRED):
        selector, key = term.get("labelSelector"), text_of(term.get("topologyKey"))
        if not isinstance(selector, dict) or not selects(selector, pod.labels) or items(term.get("matchLabelKeys")):
            continue
        others = term.get("namespaces") or term.get("namespaceSelector")
        found = len(known.node_label_values.get(key, ()))
        if not others and replicas > found:
            yield Hit(path, f"{key}, and {replicas} replicas need as many values of it; the nodes have {found}")


@RULES.add(
    "spread-missing-key",
    PODS,
    ("", "error", "no node has the label {}, so no node satisfies this constraint"),
    fields="topologySpreadConstraints",
    fix="Use a label that the nodes have, such as topology.kubernetes.io/zone.",
    source="scheduler/framework/plugins/podtopologyspread",
)
def spread_missing_key(pod: PodPart, known: KnownObjects) -> Iterator[Hit]:
    for path, constraint in constraints(pod):
        key = text_of(constraint.get("topologyKey"))
        hard = constraint.get("whenUnsatisfiable", "DoNotSchedule") == "DoNotSchedule"
        if known.nodes and hard and key and key not in known.node_label_values:
            yield Hit((*path, "topologyKey"), key)


@RULES.add(
    "affinity-missing-key",
    PODS,
    ("", "warning", "no node has the label {}"),
    fields="affinity",
    fix="Use a label that the nodes have, such as topology.kubernetes.io/zone.",
    source="scheduler/framework/plugins/interpodaffinity",
)
def affinity_missing_key(pod: PodPart, known: KnownObjects) -> Iterator[Hit]:
    for path, term, side in affinity_terms(pod):
        key = text_of(term.get("topologyKey"))
        if known.nodes and key and key not in known.node_label_values:
            stays = side == "podAffinity" and REQUIRED in path
            yield Hit(
                (*path, "topologyKey"), f"{key}, so {'the pod stays pending' if stays else 'the term has no effect'}"
            )


@RULES.add(
    "spread-min-domains",
    PODS,
    (
        "",
        "warning",
        "minDomains is {}: with fewer domains the lowest count is taken as 0, so only maxSkew pods fit in each domain",
    ),
    fields="topologySpreadConstraints",
    fix="Lower minDomains to the number of domains, or add nodes in other domains.",
    source="scheduler/framework/plugins/podtopologyspread",
)
def spread_min_domains(pod: PodPart, known: KnownObjects) -> Iterator[Hit]:
    for path, constraint in constraints(pod):
        least, key = constraint.get("minDomains"), text_of(constraint.get("topologyKey"))
        if not isinstance(least, int) or not known.nodes or key not in known.node_label_values:
            continue
        if least > (found := len(known.node_label_values.get(key, ()))):
            yield Hit((*path, "minDomains"), f"{least}, but the nodes have {found} values of {key}")


@RULES.add(
    "affinity-matches-nothing",
    PODS,
    ("", "warning", "{}"),
    fields="affinity",
    fix="Correct the selector, or create pods that match it.",
    source="scheduler/framework/plugins/interpodaffinity",
)
def affinity_matches_nothing(pod: PodPart, known: KnownObjects) -> Iterator[Hit]:
    if not known.lists("Pod"):
        return
    for path, term in entries(pod.spec, "affinity", "podAffinity", REQUIRED):
        selector = term.get("labelSelector")
        if not isinstance(selector, dict) or is_empty_selector(selector) or selects(selector, pod.labels):
            continue
        elsewhere = at(term, "namespaces") or term.get("namespaceSelector") is not None
        if not known.selected(selector, "" if elsewhere else pod.namespace):
            yield Hit((*path, "labelSelector"), "no pod matches this required affinity, so the pod stays pending")
