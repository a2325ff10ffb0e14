"""Steps of a remedy: each is a command in kubectl's syntax, with the calls that it makes.

A change of a manifest is a JSON patch that contains only the differences. An object with an immutable field to change
(a Job's template, most of a Pod's spec) is deleted and created again.
"""

import copy
import difflib
import json
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import attrs

from kschedd.api.schemas.kinds import kind_of, lookup
from kschedd.api.token_volumes import without_tokens
from kschedd.causes.workload import ExaminedWorkload
from kschedd.dumps.dumped_condition import ANNOTATION
from kschedd.printing import documents

Raw = Mapping[str, Any]
CallDaemon = Callable[..., Any]

_OF_THE_SERVER: Final = ("uid", "resourceVersion", "creationTimestamp", "generation", "managedFields", "selfLink")
_OF_CONTROLLERS: Final = (
    "controller-uid",
    "job-name",
    "batch.kubernetes.io/controller-uid",
    "batch.kubernetes.io/job-name",
)
#: defaults that the API server adds. Source: Kubernetes v1.34, pkg/apis/core/v1/defaults.go, DefaultTolerationSeconds
_POD_DEFAULTS: Final[Raw] = {
    "dnsPolicy": "ClusterFirst",
    "enableServiceLinks": True,
    "preemptionPolicy": "PreemptLowerPriority",
    "restartPolicy": "Always",
    "schedulerName": "default-scheduler",
    "securityContext": {},
    "serviceAccount": "default",
    "serviceAccountName": "default",
    "terminationGracePeriodSeconds": 30,
}
_CONTAINER_DEFAULTS: Final[Raw] = {
    "resources": {},
    "terminationMessagePath": "/dev/termination-log",
    "terminationMessagePolicy": "File",
    "volumeMounts": [],
}
_ADDED_TOLERATIONS: Final = tuple(
    {"effect": "NoExecute", "key": f"node.kubernetes.io/{key}", "operator": "Exists", "tolerationSeconds": 300}
    for key in ("not-ready", "unreachable")
)
_LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
_OF_BINDING: Final = ("pv.kubernetes.io/", "volume.kubernetes.io/", "volume.beta.kubernetes.io/storage-provisioner")
_PROTECTION: Final = "kubernetes.io/pvc-protection"
_SHOWN_LINES: Final = 3  # around a difference


@attrs.frozen(eq=False)
class RemedyStep:
    """`words` is the command without the program, `given` is the manifest for `-f -`, and `calls` are its calls.

    `then_s` is the time in seconds to wait after the command. `own` is true if kubectl has no such command.
    """

    words: tuple[str, ...]
    calls: Sequence[tuple[str, Raw]]
    given: Raw | None = None
    then_s: float = 0.0
    own: bool = False

    def shell(self, program: str) -> str:
        """Return the command as text for a shell; `program` is kschedd or kubectl."""
        line = f"{'kschedd' if self.own else program} {shlex.join(self.words)}"
        return line if self.given is None else f"{line} <<'EOF'\n{documents.as_yaml(self.given).rstrip()}\nEOF"

    def run(self, call: CallDaemon) -> None:
        """Make the calls. Raises RpcError if a call is rejected."""
        for method, params in self.calls:
            call(method, **params)


def patched(raw: Raw, operations: Sequence[Raw], subresource: str = "") -> RemedyStep:
    kind, meta = lookup(str(raw["kind"])), raw["metadata"]
    place = ("-n", str(meta["namespace"])) if meta.get("namespace") else ()
    part = ("--subresource", subresource) if subresource else ()
    text = json.dumps(list(operations), separators=(",", ":"))
    words = ("patch", kind.singular, str(meta["name"]), *place, *part, "--type", "json", "-p", text)
    where = {"namespace": meta["namespace"]} if meta.get("namespace") else {}
    params = {"kind": raw["kind"], "name": meta["name"], **where, "patch": list(operations), "type": "json"}
    return RemedyStep(words, [("objects.patch", {**params, **({"subresource": subresource} if subresource else {})})])


def created(raw: Raw) -> RemedyStep:
    return RemedyStep(("create", "-f", "-"), [("objects.create", {"manifest": dict(raw)})], dict(raw))


def resumed() -> RemedyStep:
    """Return the step that resumes a stopped scheduler."""
    return RemedyStep(("resume",), [("debug.resume", {})], own=True)


def uncordoned(node: str) -> RemedyStep:
    return RemedyStep(("uncordon", node), [("nodes.uncordon", {"name": node})])


def deleted(kind: str, namespace: str, names: Sequence[str], *, orphaning: bool = False) -> RemedyStep:
    """With `orphaning`, objects that the deleted objects own are not deleted."""
    place = ("-n", namespace) if namespace else ()
    where: Raw = {"namespace": namespace} if namespace else {}
    how: Raw = {"propagation": "Orphan"} if orphaning else {}
    calls = [("objects.delete", {"kind": kind, "name": name, **where, **how}) for name in names]
    cascade = ("--cascade", "orphan") if orphaning else ()
    return RemedyStep(("delete", lookup(kind).singular, *names, *place, *cascade), calls)


def replaced(raw: Raw) -> RemedyStep:
    """Return the steps that delete the object and create it again."""
    meta = raw["metadata"]
    where = {"namespace": meta["namespace"]} if meta.get("namespace") else {}
    gone = ("objects.delete", {"kind": raw["kind"], "name": meta["name"], **where, "grace_period_s": 0})
    return RemedyStep(
        ("replace", "--force", "-f", "-"),
        [gone, ("objects.create", {"manifest": dict(raw)})],
        dict(raw),
    )


# -- a changed workload ---------------------------------------------------------------------------------------------


def steps_to(workload: ExaminedWorkload, after: dict[str, Any]) -> list[RemedyStep]:
    """Return the steps that change the workload to this manifest.

    Pending pods of the old template are deleted if no controller would replace them.
    """
    before = workload.obj.raw
    operations = list(changes_of(before, after))
    if not operations:
        return []
    match workload.kind:
        case "Job":
            return [replaced(as_new(after))]
        case "CronJob":  # existing Jobs of a CronJob keep the previous template
            return [patched(before, operations), *map(replaced, _stuck_jobs(workload, after))]
        case "Pod":
            if all(_allowed_of_pod(operation) for operation in operations):
                return [patched(before, operations)]
            return [replaced(as_new(after))]
        case "StatefulSet" | "ReplicaSet" | "ReplicationController" if workload.pending and _of_template(operations):
            # when the template changes, these controllers do not replace pending pods, which must be deleted
            names = [pod.name for pod in workload.pending]
            return [patched(before, operations), deleted("Pod", workload.obj.namespace, names)]
    return [patched(before, operations)]


def _stuck_jobs(workload: ExaminedWorkload, after: Raw) -> Iterator[dict[str, Any]]:
    """Yield the CronJob's Jobs with pending pods, each with the pod spec of the changed CronJob."""
    stuck = {pod.owner.uid for pod in workload.pending if pod.owner is not None}
    for job in workload.jobs:
        if job.uid in stuck:
            made = as_new(job.raw)
            made["spec"]["template"]["spec"] = copy.deepcopy(after["spec"]["jobTemplate"]["spec"]["template"]["spec"])
            yield made


def _of_template(operations: Sequence[Raw]) -> bool:
    return any(str(operation["path"]).startswith("/spec/template") for operation in operations)


def _allowed_of_pod(operation: Raw) -> bool:
    path = str(operation["path"])
    return (path.startswith(("/spec/tolerations", "/metadata/")) and operation["op"] == "add") or (
        path.startswith("/spec/schedulingGates") and operation["op"] == "remove"
    )


def as_new(raw: Raw) -> dict[str, Any]:
    """Return the manifest as a user would write it, without fields that the server and controllers add."""
    made: dict[str, Any] = copy.deepcopy(dict(raw))
    made.pop("status", None)
    meta = made["metadata"] = {key: value for key, value in made["metadata"].items() if key not in _OF_THE_SERVER}
    for key in (_LAST_APPLIED, ANNOTATION):
        (meta.get("annotations") or {}).pop(key, None)
    spec = made.get("spec") or {}
    if made["kind"] == "PersistentVolumeClaim":
        _without_binding(meta, spec)
    if made["kind"] == "Job":
        spec.pop("selector", None)
        for part in (meta, (spec.get("template") or {}).get("metadata") or {}):
            part["labels"] = {k: v for k, v in (part.get("labels") or {}).items() if k not in _OF_CONTROLLERS}
            if not part["labels"]:
                del part["labels"]
    if made["kind"] == "Pod":
        if any(each.get("type") == "PodScheduled" for each in (raw.get("status") or {}).get("conditions") or ()):
            spec.pop("nodeName", None)  # the scheduler's choice
        spec["volumes"] = without_tokens(spec.get("volumes"))
        for container in (*(spec.get("containers") or ()), *(spec.get("initContainers") or ())):
            container["volumeMounts"] = without_tokens(container.get("volumeMounts"))
        _without_defaults(spec)
    for part in (meta, spec):
        for field in [field for field, value in part.items() if value in ({}, [], None)]:
            del part[field]
    return made


def _without_defaults(spec: dict[str, Any]) -> None:
    """Remove the default values that the API server adds to a pod's spec."""
    for field, value in _POD_DEFAULTS.items():
        if spec.get(field) == value:
            del spec[field]
    spec.pop("priority", None)  # the API server sets the priority from priorityClassName
    spec["tolerations"] = [each for each in spec.get("tolerations") or () if each not in _ADDED_TOLERATIONS]
    for container in (*(spec.get("containers") or ()), *(spec.get("initContainers") or ())):
        for field, value in _CONTAINER_DEFAULTS.items():
            if container.get(field) == value:
                del container[field]


def _without_binding(meta: dict[str, Any], spec: dict[str, Any]) -> None:
    """Remove the fields of a claim that the volume controller, the scheduler and the API server add."""
    spec.pop("volumeName", None)
    annotations, finalizers = meta.pop("annotations", None) or {}, meta.pop("finalizers", None) or ()
    if left := {name: text for name, text in annotations.items() if not name.startswith(_OF_BINDING)}:
        meta["annotations"] = left
    if kept := [name for name in finalizers if name != _PROTECTION]:
        meta["finalizers"] = kept


def diff(before: Raw, after: Raw) -> str:
    """Return the change as a unified diff of the manifest."""
    kind = kind_of(before)
    name = f"{kind.singular}/{before['metadata']['name']}"
    texts = [documents.as_yaml({"spec": raw.get("spec") or {}}).splitlines(keepends=True) for raw in (before, after)]
    return "".join(difflib.unified_diff(texts[0], texts[1], name, name, n=_SHOWN_LINES))


def changes_of(before: Any, after: Any, path: str = "") -> Iterator[dict[str, Any]]:
    """Return the operations of a JSON patch that changes one value into the other."""
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for key in before:
            inner = f"{path}/{escaped(key)}"
            if key not in after:
                yield {"op": "remove", "path": inner}
            else:
                yield from changes_of(before[key], after[key], inner)
        for key in after:
            if key not in before:
                yield {"op": "add", "path": f"{path}/{escaped(key)}", "value": after[key]}
    elif isinstance(before, Sequence) and isinstance(after, list) and not isinstance(before, str):
        if len(before) > len(after):
            yield {"op": "replace", "path": path, "value": after}
            return
        for place, (old, new) in enumerate(zip(before, after, strict=False)):
            yield from changes_of(old, new, f"{path}/{place}")
        for new in after[len(before) :]:
            yield {"op": "add", "path": f"{path}/-", "value": new}
    elif before != after:
        yield {"op": "replace", "path": path, "value": after}


def escaped(key: str) -> str:
    """Return a key escaped for use in a JSON pointer."""
    return key.replace("~", "~0").replace("/", "~1")
