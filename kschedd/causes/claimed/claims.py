"""The claims of a pod as its workload defines them, and options that change a claim's request.

A claim is a separate object, or is created from a StatefulSet's template or from an ephemeral volume of the pod. The
spec of a claim and the claim templates of a StatefulSet are immutable, so these objects must be deleted and created
again. A claim is replaced only while it has no volume, because the volume may hold data.
"""

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum
from typing import Any, Final

import attrs

from kschedd.api.objects import Object
from kschedd.causes.case import Case
from kschedd.causes.findings import REPLACE_OBJECT, REPLACE_WORKLOAD, RemedyOption, fewer_replicas, spec_edit
from kschedd.causes.steps import RemedyStep, as_new, created, deleted
from kschedd.causes.workload import ExaminedWorkload
from kschedd.controllers.workloads.stateful_pods import claim_name, claim_templates, replicas_wanted, start_ordinal
from kschedd.storage.claims import claims_used, class_of, default_class, ephemeral_claim, fully_bound
from kschedd.storage.provisioning import NO_PROVISIONER
from kschedd.store.cluster_api import ClusterReader

Spec = dict[str, Any]
CLAIM: Final = "PersistentVolumeClaim"


class Home(Enum):
    """The place where a claim is defined."""

    OBJECT = "object"
    STATEFUL_SET = "StatefulSet"
    EPHEMERAL = "ephemeral"


@attrs.frozen(eq=False)
class ClaimUse:
    """A claim that the pod uses.

    `claim` is None if it does not exist; `volume` is the name of the pod's volume, or of the claim template.
    """

    name: str
    volume: str
    home: Home
    claim: Object | None

    def __str__(self) -> str:
        return f"claim {self.name}"

    @property
    def written(self) -> str:
        """The object to change: the claim, or the template from which it is created."""
        if self.home is Home.OBJECT:
            return str(self)
        return f"{'claim template' if self.home is Home.STATEFUL_SET else 'ephemeral volume'} {self.volume}"


def claims_of(case: Case) -> list[ClaimUse]:
    """Return the claims that the examined pod uses."""
    templates = {str(each["metadata"]["name"]) for each in claim_templates(case.workload.obj)}
    stateful = case.workload.kind == "StatefulSet"
    names = {}
    for each in case.pod.pod_spec.volumes:
        source = each.get("persistentVolumeClaim")
        if source is not None:
            names[source.get("claimName") or ""] = str(each.get("name"))
        elif each.get("ephemeral") is not None:
            names[ephemeral_claim(case.pod, str(each.get("name")))] = str(each.get("name"))
    found: dict[str, ClaimUse] = {}
    for use in claims_used(case.pod):
        volume = names[use.name]
        home = Home.EPHEMERAL if use.ephemeral else Home.OBJECT
        if stateful and volume in templates:
            home = Home.STATEFUL_SET
        found[use.name] = ClaimUse(use.name, volume, home, case.store.find(CLAIM, case.pod.namespace, use.name))
    return list(found.values())


def provisioning_classes(store: ClusterReader) -> list[Object]:
    """Return the StorageClasses with a provisioner, the default class first."""
    classes = [each for each in store.list("StorageClass") if each.raw.get("provisioner") not in (None, NO_PROVISIONER)]
    default = default_class(store.list("StorageClass"))
    return sorted(classes, key=lambda each: (default is None or each.name != default.name, each.name))


# -- changes ----------------------------------------------------------------------------------------------------------


def asking(case: Case, use: ClaimUse, summary: str, change: Callable[[Spec], None]) -> RemedyOption:
    """Return the option that changes the claim's request; `change` edits the claim's spec in place."""
    if use.home is not Home.OBJECT:
        return changing_template(case.workload, case.store, use.volume, use.home, summary, change)
    assert use.claim is not None, "a claim is expected that can be replaced"
    steps = _replaced(use.claim, change)
    return RemedyOption(summary, REPLACE_OBJECT, steps=steps, target=f"persistentvolumeclaim/{use.name}")


def changing_template(
    workload: ExaminedWorkload,
    store: ClusterReader,
    volume: str,
    home: Home,
    summary: str,
    change: Callable[[Spec], None],
) -> RemedyOption:
    """Return the option that changes a claim template of the workload."""
    if home is Home.EPHEMERAL:
        return RemedyOption(summary, edit=spec_edit(_of_ephemeral(volume, change)))
    steps = _stateful(workload, store, volume, change)
    return RemedyOption(summary, REPLACE_WORKLOAD, steps=steps, target=workload.label)


def of_class(case: Case, use: ClaimUse, names: Sequence[str]) -> Iterator[RemedyOption]:
    """Yield an option for each of these classes that makes the claim request this class."""
    for name in names:
        yield asking(case, use, f"let {use.written} request class {name}", _with_class(name))


def _with_class(name: str) -> Callable[[Spec], None]:
    def change(spec: Spec) -> None:
        spec["storageClassName"] = name

    return change


def _replaced(claim: Object, change: Callable[[Spec], None]) -> list[RemedyStep]:
    made = as_new(claim.raw)
    made["spec"] = copy.deepcopy(made["spec"])
    change(made["spec"])
    return [deleted(CLAIM, claim.namespace, [claim.name]), created(made)]


def _of_ephemeral(volume: str, change: Callable[[Spec], None]) -> Callable[[Spec], None]:
    def edit(spec: Spec) -> None:
        for each in spec.get("volumes") or ():
            if each.get("name") == volume:
                change(each["ephemeral"]["volumeClaimTemplate"]["spec"])

    return edit


def _stateful(
    workload: ExaminedWorkload, store: ClusterReader, template: str, change: Callable[[Spec], None]
) -> list[RemedyStep]:
    """Return the steps that recreate the StatefulSet (but not its pods), and the claims that have no volume yet."""
    made = as_new(workload.obj.raw)
    made["spec"] = copy.deepcopy(made["spec"])
    for each in made["spec"]["volumeClaimTemplates"]:
        each.pop("status", None)
        if each["metadata"]["name"] == template:
            change(each["spec"])
    waiting = [claim.name for claim in _unbound(workload, store, template)]
    namespace = workload.obj.namespace
    steps = [deleted("StatefulSet", namespace, [workload.obj.name], orphaning=True)]
    if waiting:
        steps.append(deleted(CLAIM, namespace, waiting))
    return [*steps, created(made)]


def _unbound(workload: ExaminedWorkload, store: ClusterReader, template: str) -> Iterator[Object]:
    raw: Mapping[str, Any] = next(e for e in claim_templates(workload.obj) if e["metadata"]["name"] == template)
    first = start_ordinal(workload.obj)
    for ordinal in range(first, first + replicas_wanted(workload.obj)):
        claim = store.find(CLAIM, workload.obj.namespace, claim_name(workload.obj, raw, ordinal))
        if claim is not None and not fully_bound(claim):
            yield claim


def as_many_as_scheduled(case: Case) -> list[RemedyOption]:
    """Return the option that scales the workload down to its number of pods with a node."""
    return fewer_replicas(case.workload, len(case.workload.scheduled))


def storage_text(spec: Mapping[str, Any]) -> str:
    """Return the amount of storage that a claim's spec requests, as it is written there."""
    return str(((spec.get("resources") or {}).get("requests") or {}).get("storage", "0"))


def class_word(claim: Object) -> str:
    """Return `class fast`, or `no class`."""
    name = class_of(claim)
    return f"class {name}" if name else "no class"
