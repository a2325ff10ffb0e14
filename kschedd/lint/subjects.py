"""The objects that `kschedd lint` checks, and the pods within them.

Objects from files and dumps have not been validated: any field may have any type.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from pathlib import PurePath
from typing import Any, Final, TypeVar

import attrs

from kschedd.api.manifests import Manifest
from kschedd.api.quantity import QuantityError, parse
from kschedd.api.schemas.kinds import POD_TEMPLATES
from kschedd.values import as_map

T = TypeVar("T")

Raw = Mapping[str, Any]
Steps = tuple[str | int, ...]
_MOST_DEPTH: Final = 50
_OWNERS: Final = frozenset(("ReplicaSet", "Deployment", "StatefulSet", "DaemonSet", "Job", "CronJob", "Pod"))

_COMPONENTS: Final = r"(?:kube-(?:apiserver|controller-manager|scheduler|proxy)|kubelet|hyperkube)"
_COMMAND: Final = re.compile(rf"(?:^|[\s/]){_COMPONENTS}(?:$|\s)")
_IMAGE: Final = re.compile(rf"(?:.*/)?{_COMPONENTS}(?:-\w+)?(?:[:@].*)?")

# Labels that controllers add to the pods of a template.
GENERATED_LABELS: Final = frozenset(
    (
        "pod-template-hash",
        "controller-revision-hash",
        "pod-template-generation",
        "statefulset.kubernetes.io/pod-name",
        "apps.kubernetes.io/pod-index",
        "batch.kubernetes.io/job-name",
        "batch.kubernetes.io/controller-uid",
        "batch.kubernetes.io/job-completion-index",
        "job-name",
        "controller-uid",
    )
)


def items(value: object) -> Sequence[Any]:
    """Return the value if it is a list, otherwise an empty list."""
    return value if isinstance(value, list) else ()


def text_of(value: object) -> str:
    """Return the value if it is a string, otherwise ""."""
    return value if isinstance(value, str) else ""


def strings(value: object) -> list[str]:
    """Return the texts in a list."""
    return [one for one in items(value) if isinstance(one, str)]


def at(value: object, *path: str) -> Any:
    """Return the value at this path within mappings; None if the path does not exist."""
    for step in path:
        if not isinstance(value, dict):
            return None
        value = value.get(step)
    return value


def entries(parent: object, *path: str) -> Iterator[tuple[Steps, Raw]]:
    """Yield the mappings in the list at this path, each with its path from the parent."""
    for place, entry in enumerate(items(at(parent, *path))):
        if isinstance(entry, dict):
            yield (*path, place), entry


def selects(selector: Raw, labels: Raw) -> bool:
    """Return whether a label selector may match a pod with these labels; labels added by controllers are ignored."""
    for key, value in as_map(selector.get("matchLabels")).items():
        if labels.get(key) != value and key not in GENERATED_LABELS:
            return False
    for _, wanted in entries(selector, "matchExpressions"):
        key, operator, values = text_of(wanted.get("key")), wanted.get("operator"), strings(wanted.get("values"))
        if key in GENERATED_LABELS:
            continue
        matched = {
            "In": labels.get(key) in values,
            "NotIn": labels.get(key) not in values,
            "Exists": key in labels,
            "DoesNotExist": key not in labels,
        }
        if not matched.get(str(operator), True):
            return False
    return True


def _texts(value: Any, path: Steps, depth: int = 0) -> Iterator[tuple[Steps, str]]:
    if isinstance(value, str):
        yield path, value
    elif depth < _MOST_DEPTH:
        pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        for key, inside in pairs:
            yield from _texts(inside, (*path, key), depth + 1)


@attrs.frozen(eq=False, slots=False)
class LintedObject:
    """An object and its source. `line_of` returns the line of a field; 0 if the source has no lines.

    `below`: the path of the file below the folder that the user named; None for a file that the user named and for a
    dump.
    """

    raw: Raw
    source: str
    line_of: Callable[[str], int] = attrs.field(default=lambda path: 0, repr=False)
    text: str = attrs.field(default="", repr=False)  # the text of the document, including comments
    first_line: int = 1  # of that text
    below: PurePath | None = None

    @classmethod
    def of(cls, manifest: Manifest) -> "LintedObject":
        return cls(manifest.raw, manifest.source, manifest.locate, manifest.text, manifest.first_line)

    @cached_property
    def kind(self) -> str:
        return text_of(self.raw.get("kind"))

    @cached_property
    def api_version(self) -> str:
        return text_of(self.raw.get("apiVersion"))

    @cached_property
    def meta(self) -> Raw:
        return as_map(self.raw.get("metadata"))

    @property
    def name(self) -> str:
        return text_of(self.meta.get("name")) or text_of(self.meta.get("generateName"))

    @property
    def namespace(self) -> str:
        return text_of(self.meta.get("namespace")) or "default"

    @cached_property
    def spec(self) -> Raw:
        return as_map(self.raw.get("spec"))

    @property
    def labels(self) -> Raw:
        return as_map(self.meta.get("labels"))

    @property
    def annotations(self) -> Raw:
        return as_map(self.meta.get("annotations"))

    @cached_property
    def texts(self) -> list[tuple[Steps, str]]:
        """All texts in the object except in its status, each with its path."""
        return list(_texts({field: value for field, value in self.raw.items() if field != "status"}, ()))

    @cached_property
    def all_text(self) -> str:
        """All texts in the object except in its status, in any order."""
        found: list[str] = []
        within: list[Any] = [{field: value for field, value in self.raw.items() if field != "status"}]
        while within:
            value = within.pop()
            for inside in value.values() if isinstance(value, dict) else value:
                if isinstance(inside, str):
                    found.append(inside)
                elif isinstance(inside, dict | list):
                    within.append(inside)
        return "\n".join(found)

    @property
    def shown(self) -> str:
        """The object's kind and name."""
        return f"{self.kind}/{self.name}" if self.name else self.kind

    @cached_property
    def pod(self) -> "PodPart | None":
        """The pod, or the pod template of the workload; None without one."""
        if self.kind == "Pod":
            return PodPart(self, ("spec",), self.raw)
        path = POD_TEMPLATES.get(self.kind)
        if path is None:
            return None
        within = as_map(at(self.raw, *path))
        return PodPart(self, (*path, "spec"), within) if within else None


@attrs.frozen(eq=False, slots=False)
class PodPart:
    """A pod, or a pod template.

    `path`: the path of the spec in the object. `raw`: the part of the object that contains the metadata and the spec.
    """

    object: LintedObject
    path: tuple[str, ...]
    raw: Raw

    @cached_property
    def spec(self) -> Raw:
        return as_map(self.raw.get("spec"))

    @cached_property
    def meta(self) -> Raw:
        return as_map(self.raw.get("metadata"))

    @cached_property
    def labels(self) -> dict[str, str]:
        labels = as_map(self.meta.get("labels"))
        return {key: value for key, value in labels.items() if isinstance(value, str)}

    @property
    def annotations(self) -> Raw:
        return as_map(self.meta.get("annotations"))

    @property
    def namespace(self) -> str:
        return self.object.namespace

    @property
    def is_template(self) -> bool:
        return self.object.kind != "Pod"

    @property
    def replicas(self) -> int | None:
        """The number of pods; None if the object alone does not determine it."""
        if self.object.kind == "Pod":
            return 1
        if self.object.kind in ("Deployment", "ReplicaSet", "StatefulSet", "ReplicationController"):
            number = self.object.spec.get("replicas", 1)
            return number if isinstance(number, int) else None
        return None

    @cached_property
    def containers(self) -> Sequence[tuple[Steps, Raw]]:
        """The containers and init containers, each with its path from the pod's spec."""
        return [*entries(self.spec, "containers"), *entries(self.spec, "initContainers")]

    @cached_property
    def component_words(self) -> Sequence[tuple[Steps, str]]:
        """The words of commands and arguments of Kubernetes components, each with its path from the pod's spec."""
        return [
            ((*path, field, place), word)
            for path, container in self.containers
            if _runs_component(container)
            for field in ("command", "args")
            for place, word in enumerate(items(container.get(field)))
            if isinstance(word, str)
        ]


def _runs_component(container: Raw) -> bool:
    """Return whether a container runs a component of Kubernetes; other programs have other feature gates and flags."""
    command = [*strings(container.get("command")), *strings(container.get("args"))]
    names = (text_of(container.get("image")), text_of(container.get("name")))
    return any(map(_COMMAND.search, command)) or any(map(_IMAGE.fullmatch, names))


class KnownObjects:
    """All objects that are checked together."""

    def __init__(self, objects: list[LintedObject], *, complete: bool = False) -> None:
        """`complete`: the objects are all objects of a cluster, so that other objects do not exist."""
        self.objects = objects
        self.complete = complete
        self._by_kind: dict[str, list[LintedObject]] = {}
        self._found: dict[str, Any] = {}
        for each in objects:
            self._by_kind.setdefault(each.kind, []).append(each)

    def lists(self, kind: str) -> bool:
        """Return whether all objects of this kind are known.

        A dump without objects of a kind may have omitted the kind.
        """
        return self.complete and kind in self._by_kind

    def of(self, kind: str) -> list[LintedObject]:
        return self._by_kind.get(kind, [])

    def find(self, kind: str, namespace: str, name: str) -> LintedObject | None:
        return self._named.get((kind, namespace, name))

    @cached_property
    def _named(self) -> dict[tuple[str, str, str], LintedObject]:
        return {(each.kind, each.namespace, each.name): each for each in self.objects}

    @cached_property
    def nodes(self) -> list[LintedObject]:
        """The nodes; without nodes, rules about nodes have no findings."""
        return self.of("Node")

    @cached_property
    def node_label_values(self) -> Mapping[str, frozenset[str]]:
        """The values that each label has on the nodes."""
        found: dict[str, set[str]] = {}
        for node in self.nodes:
            for key, value in node.labels.items():
                found.setdefault(key, set()).add(text_of(value))
        return {key: frozenset(values) for key, values in found.items()}

    @cached_property
    def taints(self) -> list[Raw]:
        """The different taints of the nodes."""
        found = {repr(taint): taint for node in self.nodes for _, taint in entries(node.spec, "taints")}
        return list(found.values())

    def once(self, key: str, find: Callable[[], T]) -> T:
        """Return the result of `find`, called once per key, because rules repeat the same queries for many objects."""
        if key not in self._found:
            self._found[key] = find()
        found: T = self._found[key]
        return found

    def nodes_with(self, labels: Raw) -> list[LintedObject]:
        """Return the nodes that have these labels."""
        has = labels.items()
        return self.once(
            f"nodes with {sorted(has, key=str)!r}",
            lambda: [node for node in self.nodes if all(node.labels.get(key) == value for key, value in has)],
        )

    def selected(self, selector: Raw, namespace: str) -> list[PodPart]:
        """Return the pods in a namespace ("": in all namespaces) that a label selector may match."""

        def find() -> list[PodPart]:
            candidates = self._pods_by_label.get((namespace, "", ""), [])
            for key, value in as_map(selector.get("matchLabels")).items():
                if key not in GENERATED_LABELS:
                    some = self._pods_by_label.get((namespace, key, text_of(value)), [])
                    candidates = min(candidates, some, key=len)
            return [pod for pod in candidates if selects(selector, pod.labels)]

        return self.once(f"pods of {namespace!r} selected by {selector!r}", find)

    @cached_property
    def _pods_by_label(self) -> Mapping[tuple[str, str, str], list[PodPart]]:
        """The pods by namespace and label; also under "" for the namespace, and under "" for the label."""
        found: dict[tuple[str, str, str], list[PodPart]] = {}
        for pod in self.pods:
            for namespace in ("", pod.namespace):
                for key, value in (("", ""), *pod.labels.items()):
                    found.setdefault((namespace, key, value), []).append(pod)
        return found

    @cached_property
    def largest(self) -> Mapping[str, tuple[Fraction, str]]:
        """The largest allocatable amount of each resource on a node, as a number and as written."""
        found: dict[str, tuple[Fraction, str]] = {}
        for node in self.nodes:
            for name, quantity in as_map(at(node.raw, "status", "allocatable")).items():
                try:
                    number = parse(quantity)
                except (QuantityError, TypeError, ValueError):
                    continue
                if name not in found or number > found[name][0]:
                    found[name] = number, str(quantity)
        return found

    @cached_property
    def pods(self) -> list[PodPart]:
        """The pods and pod templates that no other object has created."""
        return [each.pod for each in self.objects if each.pod is not None and not self.is_made(each)]

    def is_made(self, each: LintedObject) -> bool:
        """Return whether a workload among the objects created this object from its template."""
        for _, owner in entries(each.meta, "ownerReferences"):
            kind, name = text_of(owner.get("kind")), text_of(owner.get("name"))
            if owner.get("controller") and kind in _OWNERS and (kind, each.namespace, name) in self._named:
                return True
        return False
