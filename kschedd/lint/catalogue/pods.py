"""Rules about fields of pods: selectors, tolerations, resources, annotations."""

from collections.abc import Iterator
from functools import partial
from typing import Final

from kschedd.api.nodes import BETA_REGION_LABEL, BETA_ZONE_LABEL, REGION_LABEL, RENAMED_LABELS, ZONE_LABEL
from kschedd.api.quantity import QuantityError, parse, style
from kschedd.lint.catalogue.spreading import PREFERRED, REQUIRED, affinity_terms, constraints
from kschedd.lint.rules import ALL, PODS, Hit, RuleSet
from kschedd.lint.subjects import (
    KnownObjects,
    LintedObject,
    PodPart,
    Raw,
    Steps,
    at,
    entries,
    items,
    strings,
    text_of,
)
from kschedd.values import as_map

RULES: Final = RuleSet()
SYSTEM_CLASSES: Final = ("system-cluster-critical", "system-node-critical")
_MOST: Final = 2**63 - 1
_SMALL_VOLUME: Final = 2**30  # bytes; a limit of at most this size does not influence placement
_TOPOLOGY_LABELS: Final = (ZONE_LABEL, REGION_LABEL)


def node_terms(pod: PodPart) -> Iterator[tuple[Steps, Raw]]:
    """Yield the required and the preferred terms of nodeAffinity, each with its path from the spec."""
    yield from entries(pod.spec, "affinity", "nodeAffinity", REQUIRED, "nodeSelectorTerms")
    for path, preferred in entries(pod.spec, "affinity", "nodeAffinity", PREFERRED):
        yield (*path, "preference"), as_map(preferred.get("preference"))


def _label_keys(pod: PodPart) -> Iterator[tuple[Steps, str]]:
    """Yield the keys of node labels to which the pod refers, each with its path from the spec."""
    for key in as_map(pod.spec.get("nodeSelector")):
        yield ("nodeSelector", key), key
    for path, term in node_terms(pod):
        for inside, wanted in entries(term, "matchExpressions"):
            yield (*path, *inside, "key"), text_of(wanted.get("key"))
    for path, constraint in constraints(pod):
        yield (*path, "topologyKey"), text_of(constraint.get("topologyKey"))
    for path, term, _ in affinity_terms(pod):
        yield (*path, "topologyKey"), text_of(term.get("topologyKey"))


def _old_keys(pod: PodPart, *labels: str) -> Iterator[Hit]:
    for path, key in _label_keys(pod):
        if key in labels:
            renamed = RENAMED_LABELS[key]
            yield Hit(path, f"the label {key}", fix=f"Use {renamed} with the same value.")


@RULES.add(
    "beta-labels",
    PODS,
    ("", "warning", "{} is deprecated since 1.17, and nodes have it only if a cloud controller sets it"),
    fields=("nodeSelector", "affinity", "topologySpreadConstraints"),
    fix="Use the later label with the same value.",
    source="core/v1 well_known_labels.go",
)
def beta_labels(pod: PodPart, known: KnownObjects) -> Iterator[Hit]:
    return _old_keys(pod, BETA_ZONE_LABEL, BETA_REGION_LABEL)


@RULES.add(
    "beta-os-arch",
    PODS,
    ("", "note", "{} is deprecated since 1.14"),
    fields=("nodeSelector", "affinity", "topologySpreadConstraints"),
    fix="Use the later label, which nodes have since 1.14, with the same value.",
    source="core/v1 well_known_labels.go",
)
def beta_os_arch(pod: PodPart, known: KnownObjects) -> Iterator[Hit]:
    return _old_keys(pod, "beta.kubernetes.io/os", "beta.kubernetes.io/arch")


@RULES.add(
    "beta-instance-type",
    PODS,
    ("", "note", "{} is deprecated since 1.17"),
    fields=("nodeSelector", "affinity", "topologySpreadConstraints"),
    fix="Use the later label with the same value.",
    source="core/v1 well_known_labels.go",
)
def beta_instance_type(pod: PodPart, known: KnownObjects) -> Iterator[Hit]:
    return _old_keys(pod, "beta.kubernetes.io/instance-type")


@RULES.add(
    "node-term-empty",
    PODS,
    ("", "error", "an empty term matches no node{}"),
    fields="affinity",
    fix="Write the labels that the node must have, or remove the term.",
    source="core/v1 types",
)
def node_term_empty(pod: PodPart, known: KnownObjects) -> Iterator[Hit]:
    found = list(entries(pod.spec, "affinity", "nodeAffinity", REQUIRED, "nodeSelectorTerms"))
    empty = [path for path, term in found if not term.get("matchExpressions") and not term.get("matchFields")]
    for path in empty:
        yield Hit(path, ", so the pod stays pending" if len(empty) == len(found) else "")


@RULES.add(
    "preferred-term-empty",
    PODS,
    ("", "warning", "an empty preference has no effect"),
    fields="affinity",
    fix="Write the labels that the node should have, or remove the preference.",
    source="core/v1 types",
)
def preferred_term_empty(pod: PodPart, known: KnownObjects) -> Iterator[Hit]:
    for path, preferred in entries(pod.spec, "affinity", "nodeAffinity", PREFERRED):
        term = as_map(preferred.get("preference"))
        if not term.get("matchExpressions") and not term.get("matchFields"):
            yield Hit((*path, "preference"))


@RULES.add(
    "selector-contradiction",
    PODS,
    ("", "error", "{}, so no node can match and the pod stays pending"),
    fields="affinity",
    fix="Remove one of the two requirements.",
    source="scheduler/framework/plugins/nodeaffinity",
)
def selector_contradiction(pod: PodPart, known: KnownObjects) -> Iterator[Hit]:
    selector = as_map(pod.spec.get("nodeSelector"))
    terms = list(entries(pod.spec, "affinity", "nodeAffinity", REQUIRED, "nodeSelectorTerms"))
    found = [_contradiction(selector, term) for _, term in terms]
    if terms and all(found):
        yield Hit(terms[0][0], found[0])


def _contradiction(selector: Raw, term: Raw) -> str:
    """Return the reason why no node matches both the nodeSelector and the term; "" if a node may."""
    allowed: dict[str, set[str]] = {key: {text_of(value)} for key, value in selector.items()}
    barred: dict[str, set[str]] = {}
    for _, wanted in entries(term, "matchExpressions"):
        key, operator, values = text_of(wanted.get("key")), wanted.get("operator"), set(strings(wanted.get("values")))
        if operator == "In":
            before = allowed.get(key)
            allowed[key] = values if before is None else before & values
            if before is not None and not allowed[key]:
                return f"{key} must be {_any(before)} and {_any(values)} at once"
        elif operator == "NotIn":
            barred[key] = barred.get(key, set()) | values
        elif operator == "DoesNotExist" and key in allowed:
            return f"{key} must be {_any(allowed[key])} and must not exist"
    for key, values in barred.items():
        if key in allowed and allowed[key] <= values:
            return f"{key} must be {_any(allowed[key])} and must not be it"
    return ""


def _any(values: set[str]) -> str:
    return " or ".join(sorted(values)) or "nothing"


@RULES.add(
    "nodename-bypasses",
    PODS,
    ("", "warning", "with nodeName the scheduler is bypassed: {} not looked at, and the kubelet may reject the pod"),
    fields="nodeName",
    fix="Replace nodeName by a nodeSelector or node affinity for the node.",
    source="kubernetes/website#41856",
)
def nodename_bypasses(pod: PodPart, known: KnownObjects) -> Iterator[Hit]:
    if (
        not pod.spec.get("nodeName")
        or as_map(pod.object.raw.get("status")).get("phase")
        or pod.spec.get("schedulerName")
    ):
        return  # a pod that a scheduler has bound
    fields = [
        field
        for field in ("nodeSelector", "affinity", "topologySpreadConstraints", "resourceClaims")
        if pod.spec.get(field)
    ]
    if fields:
        yield Hit(("nodeName",), f"{', '.join(fields)} {'is' if len(fields) == 1 else 'are'}")


@RULES.add(
    "toleration-gt",
    PODS,
    ("", "error", "the operator {} of a toleration is unknown, and the pod is rejected"),
    (
        "1.35",
        "error",
        "the operator {} needs the feature gate TaintTolerationComparisonOperators, which is off: without "
        "it the pod is rejected or tolerates nothing",
    ),
    fields="tolerations",
    fix="Use Equal or Exists, or enable the feature gate.",
    source="core/v1 validation",
)
def toleration_gt(pod: PodPart, known: KnownObjects) -> Iterator[Hit]:
    for path, toleration in entries(pod.spec, "tolerations"):
        if toleration.get("operator") in ("Gt", "Lt"):
            yield Hit((*path, "operator"), str(toleration["operator"]))


@RULES.add(
    "toleration-without-key",
    PODS,
    (
        "",
        "warning",
        "this toleration has no key and the operator Exists: it tolerates every taint{}, also those of nodes "
        "that are not ready or are being drained",
    ),
    fields="tolerations",
    fix="List the taints that the pod should tolerate; keep this toleration only for pods that must run on every node.",
    source="core/v1 types",
)
def toleration_without_key(pod: PodPart, known: KnownObjects) -> Iterator[Hit]:
    of_system = text_of(pod.spec.get("priorityClassName")) in SYSTEM_CLASSES or pod.spec.get("hostNetwork") is True
    if pod.object.kind in ("DaemonSet", "Pod") or of_system or pod.namespace.endswith("-system"):
        return
    for path, toleration in entries(pod.spec, "tolerations"):
        if toleration.get("operator") == "Exists" and not toleration.get("key"):
            effect = text_of(toleration.get("effect"))
            yield Hit(path, f" with the effect {effect}" if effect else "")


@RULES.add(
    "scheduling-group",
    PODS,
    ("", "warning", "the API server drops schedulingGroup, and the pods are scheduled one by one"),
    (
        "1.36",
        "warning",
        "the API server drops schedulingGroup unless the feature gate GenericWorkload is on (it is off by "
        "default), and the pods are scheduled one by one",
    ),
    fields="schedulingGroup",
    fix="Enable the feature gate in the API server, the controller manager and the scheduler, and serve "
    "scheduling.k8s.io/v1beta1 (--runtime-config). Claims of a PodGroup also need the gate DRAWorkloadResourceClaims.",
    source="core/v1 types, kube_features.go",
)
def scheduling_group(pod: PodPart, known: KnownObjects) -> Iterator[Hit]:
    if pod.spec.get("schedulingGroup") is not None:
        yield Hit(("schedulingGroup",))


@RULES.add(
    "group-claims-template",
    PODS,
    ("", "fine", "a claim is made for each pod of the group"),
    (
        "1.37",
        "warning",
        "a claim that the pod's PodGroup lists too is not shared by its pods, or not made, unless the feature gate "
        "DRAWorkloadResourceClaims is on",
    ),
    fields="schedulingGroup",
    fix="Enable the feature gate, or use resourceClaimName.",
    source="kubernetes#138363",
)
def group_claims_template(pod: PodPart, known: KnownObjects) -> Iterator[Hit]:
    if pod.spec.get("schedulingGroup") is None:
        return
    for path, claim in entries(pod.spec, "resourceClaims"):
        if claim.get("resourceClaimTemplateName"):
            yield Hit((*path, "resourceClaimTemplateName"))


@RULES.add(
    "claim-source",
    PODS,
    ("", "fine", "the field `source` of a resource claim is read"),
    ("1.31", "error", "the API server drops the field `source`, so the pod names no claim and is rejected"),
    fields="resourceClaims",
    fix="Write resourceClaimName or resourceClaimTemplateName beside the name.",
    source="kubernetes#125116",
)
def claim_source(pod: PodPart, known: KnownObjects) -> Iterator[Hit]:
    for path, claim in entries(pod.spec, "resourceClaims"):
        if claim.get("source") is not None:
            yield Hit((*path, "source"))


@RULES.add(
    "runtimeclass-empty",
    PODS,
    ("", "error", "an empty runtimeClassName is rejected"),
    ("1.38", "fine", "an empty runtimeClassName is admitted"),
    fields="runtimeClassName",
    fix="Remove the field.",
    source="kubernetes#140108",
)
def runtimeclass_empty(pod: PodPart, known: KnownObjects) -> Iterator[Hit]:
    if pod.spec.get("runtimeClassName") == "":
        yield Hit(("runtimeClassName",))


@RULES.add(
    "pod-level-resources",
    PODS,
    ("", "warning", "the API server drops pod-level resources; only requests of containers count"),
    ("1.34", "fine", "pod-level resources count"),
    fields="resources",
    fix="State the requests of the containers.",
    source="kube_features.go (PodLevelResources)",
)
def pod_level_resources(pod: PodPart, known: KnownObjects) -> Iterator[Hit]:
    if as_map(pod.spec.get("resources")):
        yield Hit(("resources",))


@RULES.add(
    "pod-level-resize",
    PODS,
    ("", "fine", "pod-level requests of a running pod cannot be changed"),
    ("1.36", "fine", "pod-level requests of a running pod can be changed by the resize subresource"),
    fields="resources",
    fix="Nothing has to change.",
    source="kubernetes#137684",
)
def pod_level_resize(pod: PodPart, known: KnownObjects) -> Iterator[Hit]:
    if as_map(at(pod.spec, "resources", "requests")):
        yield Hit(("resources", "requests"))


@RULES.add(
    "pod-resources-empty",
    PODS,
    ("", "fine", "empty pod-level resources have no effect"),
    ("1.34", "warning", "empty pod-level resources change the QoS class of the pod"),
    ("1.37", "fine", "they do not"),
    fields="resources",
    fix="Remove the empty field.",
    source="kubernetes#137150",
)
def pod_resources_empty(pod: PodPart, known: KnownObjects) -> Iterator[Hit]:
    if pod.spec.get("resources") == {}:
        yield Hit(("resources",))


@RULES.add(
    "resize-policy",
    PODS,
    ("", "warning", "the API server drops resizePolicy: resources of running pods cannot be changed"),
    ("1.33", "fine", "resizePolicy is used"),
    fix="Upgrade, or remove the field.",
    source="kube_features.go (InPlacePodVerticalScaling)",
)
def resize_policy(pod: PodPart, known: KnownObjects) -> Iterator[Hit]:
    for path, container in pod.containers:
        if items(container.get("resizePolicy")):
            yield Hit((*path, "resizePolicy"))


@RULES.add(
    "eviction-responders",
    PODS,
    ("", "warning", "the API server drops evictionResponders"),
    (
        "1.37",
        "warning",
        "the API server drops evictionResponders unless the feature gate EvictionRequestAPI (alpha) is on",
    ),
    fields="evictionResponders",
    fix="Remove the field, or enable the feature gate.",
    source="kubernetes#137050",
)
def eviction_responders(pod: PodPart, known: KnownObjects) -> Iterator[Hit]:
    if pod.spec.get("evictionResponders") is not None:
        yield Hit(("evictionResponders",))


@RULES.add(
    "declared-features-hostusers",
    PODS,
    ("", "fine", "a pod with hostNetwork and its own user namespace may run on any node"),
    ("1.36", "warning", "this pod stays pending unless a node declares the feature UserNamespacesHostNetworkSupport"),
    fields="hostUsers",
    fix="Remove `hostUsers: false` or `hostNetwork: true`, or use nodes that declare the feature.",
    source="scheduler/framework/plugins/nodedeclaredfeatures",
)
def declared_features_hostusers(pod: PodPart, known: KnownObjects) -> Iterator[Hit]:
    if pod.spec.get("hostNetwork") is True and pod.spec.get("hostUsers") is False:
        yield Hit(("hostUsers",))


@RULES.add(
    "declared-features-restart-all",
    PODS,
    ("", "warning", "the API server drops the action RestartAllContainers"),
    ("1.36", "warning", "this pod needs a node that declares the feature RestartAllContainersOnContainerExits"),
    fix="Use another action, or nodes that declare the feature.",
    source="scheduler/framework/plugins/nodedeclaredfeatures",
)
def declared_features_restart_all(pod: PodPart, known: KnownObjects) -> Iterator[Hit]:
    for path, container in pod.containers:
        for inside, rule in entries(container, "restartPolicyRules"):
            if rule.get("action") == "RestartAllContainers":
                yield Hit((*path, *inside, "action"))


@RULES.add(
    "extended-implicit",
    PODS,
    ("", "error", "no node has the resource {}, so the pod stays pending"),
    ("1.36", "fine", "the resource {} is served by devices of that class"),
    fix="Use a resource claim for devices of the class.",
    source="kubernetes#133363",
)
def extended_implicit(pod: PodPart, known: KnownObjects) -> Iterator[Hit]:
    for path, container in pod.containers:
        for side in ("limits", "requests"):
            for name in as_map(at(container, "resources", side)):
                if str(name).startswith("deviceclass.resource.kubernetes.io/"):
                    yield Hit((*path, "resources", side, name), str(name))


@RULES.add(
    "topology-labels",
    PODS,
    ("", "fine", "a pod keeps its own label {}"),
    ("1.35", "warning", "binding overwrites the pod's label {} with the value of its node"),
    fix="Use a label of your own.",
    source="kubernetes#135158",
)
def topology_labels(pod: PodPart, known: KnownObjects) -> Iterator[Hit]:
    if pod.object.kind == "Pod" and pod.spec.get("nodeName"):
        return
    for key in _TOPOLOGY_LABELS:
        if key in pod.labels:
            # The path is outside the spec, because the labels belong to the pod's metadata.
            yield Hit((*pod.path[:-1], "metadata", "labels", key), key, pod.object)


@RULES.add(
    "critical-pod",
    PODS,
    ("", "warning", "the annotation scheduler.alpha.kubernetes.io/critical-pod is ignored since 1.16{}"),
    fix="Remove the annotation. Pods of the system need `priorityClassName: system-cluster-critical`. DaemonSets "
    "without which a node does not work need `system-node-critical`.",
    source="notes of 1.16",
)
def critical_pod(pod: PodPart, known: KnownObjects) -> Iterator[Hit]:
    key = "scheduler.alpha.kubernetes.io/critical-pod"
    if key in pod.annotations:
        # A kubelet counts its static pods as critical, and a Pod in a file may be static.
        unset = pod.object.kind != "Pod" and not pod.spec.get("priorityClassName")
        effect = ", and without priorityClassName the pods are not critical" if unset else ""
        yield Hit((*pod.path[:-1], "metadata", "annotations", key), effect, pod.object)


@RULES.add(
    "emptydir-size",
    PODS,
    ("", "note", "sizeLimit reserves nothing: the scheduler looks at requests of ephemeral-storage only"),
    fields="volumes",
    fix="Request ephemeral-storage in a container that uses the volume.",
    source="scheduler/framework/plugins/noderesources/fit.go",
)
def emptydir_size(pod: PodPart, known: KnownObjects) -> Iterator[Hit]:
    if any(at(container, "resources", "requests", "ephemeral-storage") for _, container in pod.containers):
        return
    for path, volume in entries(pod.spec, "volumes"):
        size = at(volume, "emptyDir", "sizeLimit")
        if size is not None and at(volume, "emptyDir", "medium") != "Memory" and _is_above(size, _SMALL_VOLUME):
            yield Hit((*path, "emptyDir", "sizeLimit"))


@RULES.add(
    "selinux-mount",
    PODS,
    ("", "fine", "files of a shared volume are relabeled one by one"),
    (
        "1.37",
        "note",
        "a volume is mounted with the SELinux label of its first pod: pods with other labels that share it "
        "may not start",
    ),
    fields="volumes",
    fix="Give the pods that share a volume the same SELinux label, or set seLinuxChangePolicy: Recursive.",
    source="kubernetes#139956",
)
def selinux_mount(pod: PodPart, known: KnownObjects) -> Iterator[Hit]:
    if not any(volume.get("persistentVolumeClaim") for _, volume in entries(pod.spec, "volumes")):
        return
    if at(pod.spec, "securityContext", "seLinuxChangePolicy") == "Recursive":
        return
    if at(pod.spec, "securityContext", "seLinuxOptions", "level"):
        yield Hit(("securityContext", "seLinuxOptions"))
    for path, container in pod.containers:
        if at(container, "securityContext", "seLinuxOptions", "level"):
            yield Hit((*path, "securityContext", "seLinuxOptions"))


@RULES.add(
    "huge-quantity",
    ALL,
    ("", "warning", "{} is more than 2^63-1, and such a quantity wraps to another number"),
    ("1.38", "warning", "{} is more than 2^63-1, and such a quantity counts as 2^63-1"),
    fix="Write the intended quantity.",
    source="kubernetes#141305, kubernetes#140459",
)
def huge_quantity(found: LintedObject, known: KnownObjects) -> Iterator[Hit]:
    fields: list[Steps] = []
    if (pod := found.pod) is not None:
        fields += [
            (*pod.path, *path, "resources", side) for path, _ in pod.containers for side in ("requests", "limits")
        ]
        fields += [(*pod.path, "overhead"), (*pod.path, "resources", "requests"), (*pod.path, "resources", "limits")]
    elif found.kind == "Node":
        fields += [("status", "allocatable"), ("status", "capacity")]
    elif found.kind == "ResourceQuota":
        fields += [("spec", "hard")]
    elif found.kind == "PersistentVolume":
        fields += [("spec", "capacity")]
    elif found.kind == "PersistentVolumeClaim":
        fields += [("spec", "resources", "requests")]
    for path in fields:
        within: object = found.raw
        for step in path:
            within = items(within)[step] if isinstance(step, int) else as_map(within).get(step)
        for name, quantity in as_map(within).items():
            if _is_huge(quantity, "cpu" in str(name)):
                yield Hit((*path, name), str(quantity))


def _is_above(quantity: object, bound: int) -> bool:
    try:
        return parse(quantity) > bound  # type: ignore[arg-type]
    except (QuantityError, TypeError, ValueError):
        return False


def _is_huge(quantity: object, milli: bool) -> bool:
    try:
        size = abs(parse(quantity)) * (1000 if milli else 1)  # type: ignore[arg-type]
        # Parsing caps quantities that have a binary suffix, as upstream does.
        return bool(size > _MOST or (size == _MOST and style(quantity) == "BinarySI"))  # type: ignore[arg-type]
    except (QuantityError, TypeError, ValueError):
        return False


@RULES.add(
    "status-resize",
    "Pod",
    ("", "fine", "status.resize shows the state of a resize"),
    ("1.33", "note", "status.resize is not set any more"),
    fix="Read the conditions PodResizePending and PodResizeInProgress.",
    source="kubernetes#130733",
)
def status_resize(found: LintedObject, known: KnownObjects) -> Iterator[Hit]:
    if at(found.raw, "status", "resize"):
        yield Hit(("status", "resize"))


@RULES.add(
    "nominated-by-others",
    "Pod",
    ("", "fine", "a failed attempt clears status.nominatedNodeName"),
    ("1.34", "fine", "a failed attempt keeps status.nominatedNodeName"),
    ("1.35", "fine", "binding clears status.nominatedNodeName"),
    fix="From 1.34 on, a controller that writes nominations must also remove them.",
    source="kubernetes#133276, kubernetes#135103",
)
def nominated_by_others(found: LintedObject, known: KnownObjects) -> Iterator[Hit]:
    if at(found.raw, "status", "nominatedNodeName"):
        yield Hit(("status", "nominatedNodeName"))


@RULES.add(
    "limitrange-exact",
    PODS,
    ("", "warning", "{} only after rounding, so the pod is admitted"),
    ("1.38", "error", "{} only after rounding, and the pod is rejected"),
    fix="Write a quantity within the range.",
    source="kubernetes#141348",
)
def limitrange_exact(pod: PodPart, known: KnownObjects) -> Iterator[Hit]:
    limits = known.once("limits of containers", partial(_container_limits, known)).get(pod.namespace)
    for path, container in pod.containers if limits else ():
        for side, name, bound in (("requests", "min", 1), ("limits", "max", -1)):
            for resource, requested in as_map(at(container, "resources", side)).items():
                for limit in limits or ():
                    least = as_map(limit.get(name)).get(resource)
                    if least is not None and _only_rounded(requested, least, str(resource) == "cpu", bound):
                        text = f"{requested} of {resource} is within the LimitRange's {name} of {least}"
                        yield Hit((*path, "resources", side, resource), text)


def _container_limits(known: KnownObjects) -> dict[str, list[Raw]]:
    """Return the limits for containers in each namespace."""
    found: dict[str, list[Raw]] = {}
    for each in known.of("LimitRange"):
        limits = [limit for _, limit in entries(each.spec, "limits") if limit.get("type") == "Container"]
        found.setdefault(each.namespace, []).extend(limits)
    return found


def _only_rounded(requested: object, bound: object, milli: bool, sign: int) -> bool:
    """Return whether `asked` is within the bound (sign 1: minimum, -1: maximum) only after rounding up."""
    try:
        exact, limit = parse(requested), parse(bound)  # type: ignore[arg-type]
    except (QuantityError, TypeError, ValueError):
        return False
    unit = 1000 if milli else 1
    rounded = -(-exact * unit // 1), -(-limit * unit // 1)
    return (exact - limit) * sign < 0 and (rounded[0] - rounded[1]) * sign >= 0
