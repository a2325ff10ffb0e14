"""Rules that compare pods with the nodes of a cluster: requirements that no node meets, fields without effect."""

from collections.abc import Iterator, Mapping
from fractions import Fraction
from functools import partial
from typing import Final

from kschedd.api.resources import pod_requests
from kschedd.api.selecting.selectors import parse_node_selector, parse_node_selector_term
from kschedd.errors import KscheddError
from kschedd.lint.catalogue.spreading import PREFERRED, REQUIRED
from kschedd.lint.rules import PODS, Hit, RuleSet
from kschedd.lint.subjects import KnownObjects, LintedObject, PodPart, Raw, at, entries, items, text_of
from kschedd.values import as_map

RULES: Final = RuleSet()
# Taints that Kubernetes and cloud providers set temporarily: perhaps no node has them at present.
_PASSING: Final = (
    "node.kubernetes.io/",
    "node.cloudprovider.kubernetes.io/",
    "node-role.kubernetes.io/",
    "cluster-autoscaler",
    "ToBeDeletedByClusterAutoscaler",
    "DeletionCandidateOfClusterAutoscaler",
    "karpenter.sh/",
    "node.cilium.io/",
)


@RULES.add(
    "selector-matches-no-node",
    PODS,
    ("", "error", "{}, so the pod stays pending"),
    fields=("nodeSelector", "affinity"),
    fix="Use labels that the nodes have, or label a node.",
    source="scheduler/framework/plugins/nodeaffinity",
)
def selector_matches_no_node(pod: PodPart, known: KnownObjects) -> Iterator[Hit]:
    if not known.nodes:
        return
    selector = as_map(pod.spec.get("nodeSelector"))
    if selector and not known.nodes_with(selector):
        lacking = [
            f"{key}={value}"
            for key, value in selector.items()
            if text_of(value) not in known.node_label_values.get(key, ())
        ]
        what = f"no node has the label {lacking[0]}" if lacking else "no node has all these labels at once"
        yield Hit(("nodeSelector",), what)
        return
    required = at(pod.spec, "affinity", "nodeAffinity", REQUIRED)
    terms = items(at(required, "nodeSelectorTerms"))
    if not any(as_map(term).get("matchExpressions") or as_map(term).get("matchFields") for term in terms):
        return

    def fits() -> bool:
        try:
            wanted = parse_node_selector(required)
            return any(wanted.matches(node.labels, node.name) for node in known.nodes_with(selector))
        except (KscheddError, AttributeError, TypeError, ValueError, KeyError):
            return True  # validation reports a value that is not a node selector

    if not known.once(f"nodes for {required!r} with {selector!r}", fits):
        yield Hit(("affinity", "nodeAffinity", REQUIRED), "no node matches the required node affinity")


@RULES.add(
    "preference-matches-no-node",
    PODS,
    ("", "warning", "no node matches this preference, so it has no effect"),
    fields="affinity",
    fix="Use labels that the nodes have, or remove the preference.",
    source="scheduler/framework/plugins/nodeaffinity",
)
def preference_matches_no_node(pod: PodPart, known: KnownObjects) -> Iterator[Hit]:
    for path, preferred in entries(pod.spec, "affinity", "nodeAffinity", PREFERRED) if known.nodes else ():
        term = as_map(preferred.get("preference"))
        if not term.get("matchExpressions") and not term.get("matchFields"):
            continue
        if not known.once(f"nodes for the term {term!r}", partial(_any_fits, term, known)):
            yield Hit((*path, "preference"))


def _any_fits(term: Raw, known: KnownObjects) -> bool:
    try:
        wanted = parse_node_selector_term(term)
        return any(wanted.matches(node.labels, node.name) for node in known.nodes)
    except (KscheddError, AttributeError, TypeError, ValueError, KeyError):
        return True  # validation reports a value that is not a term


@RULES.add(
    "node-name-missing",
    PODS,
    ("", "error", "the node {} does not exist, so the pod never runs"),
    fields="nodeName",
    fix="Correct the name, or remove it so that the scheduler chooses a node.",
    source="core/v1 types",
)
def node_name_missing(pod: PodPart, known: KnownObjects) -> Iterator[Hit]:
    name = text_of(pod.spec.get("nodeName"))
    if known.nodes and name and known.find("Node", "default", name) is None:
        yield Hit(("nodeName",), name)


@RULES.add(
    "requests-above-every-node",
    PODS,
    ("", "error", "{}, so the pod stays pending"),
    fix="Request less, or add a larger node.",
    source="scheduler/framework/plugins/noderesources/fit.go",
)
def requests_above_every_node(pod: PodPart, known: KnownObjects) -> Iterator[Hit]:
    if not known.nodes:
        return
    try:
        requested = pod_requests(pod.spec)
    except (KscheddError, AttributeError, TypeError, ValueError, KeyError):
        return  # validation reports invalid quantities
    for name, units in requested.items():
        wanted = Fraction(units, 1000) if name == "cpu" else Fraction(units)
        most, shown = known.largest.get(name, (Fraction(0), "0"))
        if wanted > most and not name.startswith("deviceclass.resource.kubernetes.io/") and not _by_class(known, name):
            has = f"no node has {name}" if most == 0 else f"the largest node has {shown} of {name}"
            yield Hit(("containers",), f"the pod requests more {name} than any node has: {has}")


def _by_class(known: KnownObjects, name: str) -> bool:
    return any(each.spec.get("extendedResourceName") == name for each in known.of("DeviceClass"))


@RULES.add(
    "toleration-without-taint",
    PODS,
    ("", "note", "no node has the taint {}, so this toleration has no effect"),
    fields="tolerations",
    fix="Correct the toleration, or remove it.",
    source="scheduler/framework/plugins/tainttoleration",
)
def toleration_without_taint(pod: PodPart, known: KnownObjects) -> Iterator[Hit]:
    if not known.nodes or not known.complete:
        return
    for path, toleration in entries(pod.spec, "tolerations"):
        key = text_of(toleration.get("key"))
        if key and not key.startswith(_PASSING) and not any(_tolerates(toleration, taint) for taint in known.taints):
            value = text_of(toleration.get("value"))
            yield Hit(path, f"{key}={value}" if value else key)


def _tolerates(toleration: Raw, taint: Raw) -> bool:
    if toleration.get("key") != taint.get("key") or toleration.get("effect") not in (None, "", taint.get("effect")):
        return False
    return toleration.get("operator") == "Exists" or (toleration.get("value") or "") == (taint.get("value") or "")


@RULES.add(
    "host-port-replicas",
    PODS,
    ("", "warning", "{}"),
    fix="Use a Service instead of hostPort, fewer replicas, or a DaemonSet.",
    source="scheduler/framework/plugins/nodeports",
)
def host_port_replicas(pod: PodPart, known: KnownObjects) -> Iterator[Hit]:
    replicas = pod.replicas
    if not known.nodes or replicas is None or replicas <= len(known.nodes):
        return
    for path, container in pod.containers:
        for inside, port in entries(container, "ports"):
            if isinstance(number := port.get("hostPort"), int) and number:
                text = f"{replicas} replicas each need port {number} of a node, and there are {len(known.nodes)} nodes"
                yield Hit((*path, *inside, "hostPort"), text)
                return


@RULES.add(
    "runtime-class-missing",
    PODS,
    ("", "error", "the RuntimeClass {} does not exist, and the pods are rejected"),
    fields="runtimeClassName",
    fix="Create the class, or correct its name.",
    source="plugin/pkg/admission/runtimeclass",
)
def runtime_class_missing(pod: PodPart, known: KnownObjects) -> Iterator[Hit]:
    name = text_of(pod.spec.get("runtimeClassName"))
    if known.lists("RuntimeClass") and name and known.find("RuntimeClass", "default", name) is None:
        yield Hit(("runtimeClassName",), name)


@RULES.add(
    "storage-class-missing",
    ("PersistentVolumeClaim", "StatefulSet"),
    ("", "error", "the StorageClass {} does not exist, so the claim stays unbound"),
    fix="Create the class, or correct its name.",
    source="scheduler/framework/plugins/volumebinding/binder.go",
)
def storage_class_missing(found: LintedObject, known: KnownObjects) -> Iterator[Hit]:
    classes = known.once(
        "names of storage classes",
        lambda: {
            *(each.name for each in known.of("StorageClass")),
            *(text_of(each.spec.get("storageClassName")) for each in known.of("PersistentVolume")),
        },
    )
    claims: list[tuple[tuple[str | int, ...], Mapping[str, object]]] = []
    if found.kind == "StatefulSet":
        claims = [
            (("spec", *path, "spec"), as_map(one.get("spec")))
            for path, one in entries(found.spec, "volumeClaimTemplates")
        ]
    elif at(found.raw, "status", "phase") != "Bound":
        claims = [(("spec",), found.spec)]
    for path, spec in claims if known.lists("StorageClass") else ():
        name = text_of(spec.get("storageClassName"))
        if name and name not in classes:
            yield Hit((*path, "storageClassName"), name)
