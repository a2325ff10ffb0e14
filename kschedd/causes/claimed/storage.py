"""Causes of pending pods: a claim is missing, being deleted or lost, or no volume can be bound to it.

A faulty claim makes every node infeasible for the pod.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

from kschedd.api.objects import Object
from kschedd.api.pods import Pod
from kschedd.causes.answers import ObjectNamed
from kschedd.causes.case import Case
from kschedd.causes.claimed.claims import (
    CLAIM,
    ClaimUse,
    Home,
    asking,
    claims_of,
    of_class,
    provisioning_classes,
    storage_text,
)
from kschedd.causes.claimed.matching import misbound, no_volume, of_no_class
from kschedd.causes.findings import ADD_OBJECT, CHANGE_OBJECT, FoundCause, RemedyOption, named, spec_edit
from kschedd.causes.near import nearest
from kschedd.causes.steps import created, patched
from kschedd.causes.words import joined, some
from kschedd.causes.workload import ExaminedWorkload
from kschedd.controllers.storage.provisioner import PROVISION_FAILS, delay_of
from kschedd.storage.claims import (
    PROVISIONED_BY,
    SELECTED_NODE,
    STORAGE_PROVISIONER,
    WAIT_FOR_FIRST_CONSUMER,
    asks_for_no_class,
    claims_named,
    class_of,
    default_class,
    fully_bound,
    volume_of,
)
from kschedd.storage.provisioning import NO_PROVISIONER
from kschedd.store.cluster_api import ClusterReader

Spec = dict[str, Any]
_VOLUME: Final = "PersistentVolume"
_SIZE: Final = "1Gi"  # storage request of a new claim, unless other claims suggest another amount
_MODES: Final = ("ReadWriteOnce",)


def claims_at_fault(case: Case) -> Iterator[FoundCause]:
    """Yield the fault of each claim of the pod."""
    for use in claims_of(case):
        finding = _at_fault(case, use)
        if finding is not None:
            yield finding


def _at_fault(case: Case, use: ClaimUse) -> FoundCause | None:
    claim = use.claim
    if claim is None:
        return _missing(case, use) if use.home is Home.OBJECT else None
    if claim.deleting:
        return _being_deleted(case, use)
    volume = volume_of(claim)
    if (fully_bound(claim) or claim.status.get("phase") == "Lost") and case.store.find(_VOLUME, "", volume) is None:
        return _lost(case, use, volume)
    if claim.status.get("phase") == "Lost":
        return misbound(case, use, claim)
    if fully_bound(claim):
        return None
    return _unbound(case, use, claim)


def _field(case: Case) -> str:
    return f"{'.'.join(case.workload.path)}.volumes[].persistentVolumeClaim.claimName"


# -- a claim that is not there, or is about to go ---------------------------------------------------------------------


def _missing(case: Case, use: ClaimUse) -> FoundCause:
    namespace = case.pod.namespace
    there = list(case.store.list(CLAIM, namespace))
    elsewhere = [each for each in case.store.list(CLAIM) if each.name == use.name]
    likely = nearest(use.name, [each.name for each in there])
    text = f"PersistentVolumeClaim {use.name} does not exist in namespace {namespace}"
    objects = [ObjectNamed(CLAIM, namespace, use.name)]
    evidence = []
    options = []
    if likely is not None:
        text += f" ({likely} does)"
        objects.append(ObjectNamed(CLAIM, namespace, likely))
        options.append(RemedyOption(f"use claim {likely}", edit=spec_edit(_naming(use.name, likely))))
    if elsewhere:
        spaces = some([each.namespace for each in elsewhere])
        text += f"; namespace {spaces} has one of that name, and a pod can use claims of its own namespace only"
        objects.extend(named(each) for each in elsewhere[:1])
    if there:
        evidence.append(f"claims in {namespace}: {some([each.name for each in there])}")
    options.append(_created(case, use, elsewhere[0] if elsewhere else None, there))
    return FoundCause("ClaimMissing", text, objects, [_field(case)], evidence, options, certain=True)


def _naming(wrong: str, right: str) -> Any:
    def edit(spec: Spec) -> None:
        for volume in spec.get("volumes") or ():
            source = volume.get("persistentVolumeClaim") or {}
            if source.get("claimName") == wrong:
                source["claimName"] = right

    return edit


def _created(case: Case, use: ClaimUse, like: Object | None, others: list[Object]) -> RemedyOption:
    """Return the option to create the claim, modeled on a claim of the same name or on most claims of the namespace."""
    classes = [each.name for each in provisioning_classes(case.store)]
    usual = Counter(class_of(each) for each in others if class_of(each) in classes).most_common(1)
    name = usual[0][0] if usual else classes[0] if classes else ""
    size, modes = _SIZE, list(_MODES)
    alike = like or next((each for each in others if class_of(each) == name), None)
    if alike is not None:
        size, modes = storage_text(alike.spec), list(alike.spec.get("accessModes") or modes)
        name = class_of(alike) if class_of(alike) in classes else name
    spec: Spec = {"accessModes": modes, "resources": {"requests": {"storage": size}}}
    if name:
        spec["storageClassName"] = name
    meta = {"name": use.name, "namespace": case.pod.namespace}
    made = {"apiVersion": "v1", "kind": CLAIM, "metadata": meta, "spec": spec}
    what = f"{size} of {f'class {name}' if name else 'the default class'}"
    return RemedyOption(
        f"create claim {use.name} ({what}; choose what the application needs)",
        ADD_OBJECT,
        steps=[created(made)],
        target=f"persistentvolumeclaim/{use.name}",
    )


def _being_deleted(case: Case, use: ClaimUse) -> FoundCause:
    users = [pod for pod in _pods(case) if use.name in claims_named(pod)]
    held = f"it stays as long as {some([pod.name for pod in users])} {'uses' if len(users) == 1 else 'use'} it"
    return FoundCause(
        "ClaimBeingDeleted",
        f"claim {use.name} is being deleted, so no further pod may use it" + (f"; {held}" if users else ""),
        [ObjectNamed(CLAIM, case.pod.namespace, use.name), *(named(pod) for pod in users[:3])],
        [_field(case)],
        ["a deletion cannot be taken back: save the data before the last pod that uses the claim ends"],
    )


def _pods(case: Case) -> list[Pod]:
    """Return the pods of the namespace that are on nodes."""
    there = (pod for pod in case.store.list("Pod", case.pod.namespace) if isinstance(pod, Pod))
    return [pod for pod in there if pod.node_name and not pod.finished]


def _lost(case: Case, use: ClaimUse, volume: str) -> FoundCause:
    assert use.claim is not None, "a lost claim is there"
    classes = [each.name for each in provisioning_classes(case.store)]
    own = class_of(use.claim)
    options = []
    if own in classes:
        again = asking(
            case, use, f"make {use} anew, with an empty volume (what {volume} held is gone)", lambda spec: None
        )
        options.append(again)
    return FoundCause(
        "ClaimLost",
        f"{use} is bound to volume {volume}, which does not exist",
        [named(use.claim), ObjectNamed(_VOLUME, "", volume)],
        [_field(case)],
        ["the data may still be on the disk: the storage administrator can restore the volume"],
        options,
        certain=True,
    )


# -- a claim that waits for a volume ----------------------------------------------------------------------------------


def _unbound(case: Case, use: ClaimUse, claim: Object) -> FoundCause | None:
    if volume_of(claim):
        return no_volume(case, use, claim)
    name = class_of(claim)
    storage_class = case.store.find("StorageClass", "", name) if name else None
    volumes = [each for each in case.store.list(_VOLUME) if class_of(each) == name]
    if storage_class is None:
        if name and all(
            PROVISIONED_BY in each.annotations for each in volumes
        ):  # only classes with a provisioner; volumes of other classes are created manually
            return _class_missing(case, use, claim, name)
        if asks_for_no_class(claim) and not volumes:
            return _no_default(case, use, claim)
        return no_volume(case, use, claim) if volumes else of_no_class(case, use, claim)
    provisioner = str(storage_class.raw.get("provisioner") or "")
    if provisioner in ("", NO_PROVISIONER):
        return no_volume(case, use, claim)
    return _not_provisioned(case, use, claim, storage_class)


def _class_missing(case: Case, use: ClaimUse, claim: Object, name: str) -> FoundCause:
    there = [each.name for each in case.store.list("StorageClass")]
    by_hand = {class_of(each) for each in case.store.list(_VOLUME) if PROVISIONED_BY not in each.annotations} - {""}
    likely = nearest(name, {*there, *by_hand})
    hint = (
        f" ({likely} does)"
        if likely
        else f"; there {'is' if len(there) == 1 else 'are'} {some(there)}"
        if there
        else ""
    )
    classes = [each.name for each in provisioning_classes(case.store)]
    choice = [likely] if likely else classes[:2]
    known = joined(sorted({*there, *by_hand})) if there or by_hand else "none"
    return FoundCause(
        "StorageClassMissing",
        f"StorageClass {name}, which {use} requests, does not exist{hint}",
        [
            named(claim),
            ObjectNamed("StorageClass", "", name),
            *([ObjectNamed("StorageClass", "", likely)] if likely else []),
        ],
        ["spec.storageClassName of the claim"],
        [f"{use} is {claim.status.get('phase') or 'Pending'}; classes: {known}"],
        list(of_class(case, use, choice)),
    )


def _no_default(case: Case, use: ClaimUse, claim: Object) -> FoundCause | None:
    """Return the cause: a claim has no class and the cluster has no default class."""
    if default_class(case.store.list("StorageClass")) is not None:
        return None  # the volume controller will set the class
    classes = provisioning_classes(case.store)
    options = []
    for each in classes[:2]:
        if use.home is Home.OBJECT:
            operations = [{"op": "add", "path": "/spec/storageClassName", "value": each.name}]
            options.append(
                RemedyOption(
                    f"give {use} the class {each.name}",
                    CHANGE_OBJECT,
                    steps=[patched(claim.raw, operations)],
                    target=f"persistentvolumeclaim/{use.name}",
                )
            )
    if not options:
        options = list(of_class(case, use, [each.name for each in classes[:2]]))
    names = [each.name for each in classes]
    return FoundCause(
        "ClaimWithoutProvisioner",
        f"{use} names no StorageClass, and no class is the default, so nothing makes a volume for it"
        + (f"; there {'is' if len(names) == 1 else 'are'} {some(names)}" if names else "; there is no class either"),
        [named(claim), *(ObjectNamed("StorageClass", "", name) for name in names[:2])],
        ["spec.storageClassName of the claim"],
        options=options,
    )


# -- provisioning -----------------------------------------------------------------------------------------------------


def _not_provisioned(case: Case, use: ClaimUse, claim: Object, storage_class: Object) -> FoundCause | None:
    """Return the cause, or None: the provisioner creates no volume."""
    waits = storage_class.raw.get("volumeBindingMode") == WAIT_FOR_FIRST_CONSUMER
    never = delay_of(storage_class, 0) == float("inf")
    fails = storage_class.annotations.get(PROVISION_FAILS) == "true"
    failure = _failure(case, claim)
    if waits and SELECTED_NODE not in claim.annotations and not failure:
        return None
    if not (never or fails or failure):
        return None
    provisioner = str(storage_class.raw["provisioner"])
    others = [each.name for each in provisioning_classes(case.store) if each.raw.get("provisioner") != provisioner]
    why = f"fails: {failure}" if failure else "makes none" if never else "fails"
    return FoundCause(
        "ClaimWithoutProvisioner",
        f"{use} waits for a volume of class {storage_class.name}, and its provisioner {provisioner} {why}",
        [named(claim), named(storage_class)],
        ["spec.storageClassName of the claim"],
        options=list(of_class(case, use, others[:2])),
        certain=bool(failure),
    )


def _failure(case: Case, claim: Object) -> str:
    """Return the last failure that the provisioner reported for the claim, or ""."""
    events = [
        event
        for event in case.store.list("Event", claim.namespace)
        if (event.raw.get("involvedObject") or {}).get("uid") == claim.uid
        and event.raw.get("reason") in ("ProvisioningFailed", "ProvisioningSucceeded")
    ]
    if not events:
        return ""
    last = max(events, key=lambda event: str(event.raw.get("lastTimestamp") or event.raw.get("eventTime") or ""))
    return str(last.raw.get("message") or "") if last.raw.get("reason") == "ProvisioningFailed" else ""


def provisioning(case: Case) -> FoundCause | None:
    """Return the cause, or None: the pod only waits for its volumes to be created."""
    for use in claims_of(case):
        claim = use.claim
        if claim is None or volume_of(claim) or not claim.annotations.get(STORAGE_PROVISIONER):
            continue
        storage_class = case.store.find("StorageClass", "", class_of(claim))
        if storage_class is None:
            continue
        node = claim.annotations.get(SELECTED_NODE)
        if storage_class.raw.get("volumeBindingMode") == WAIT_FOR_FIRST_CONSUMER and node is None:
            continue
        where = f" on {node}" if node else ""
        return FoundCause(
            "OnlyTimeHelps",
            f"{use} waits for its volume ({storage_text(claim.spec)}) of class {storage_class.name}, which provisioner "
            f"{claim.annotations[STORAGE_PROVISIONER]} is to make{where}",
            [named(claim), named(storage_class)],
            passing=True,
        )
    return None


def unscheduled_claims(store: ClusterReader, workload: ExaminedWorkload) -> FoundCause | None:
    """Return the cause: pods set `nodeName`, so that the scheduler chooses no node for their claims."""
    if "nodeName" not in workload.pod_spec:
        return None
    for pod in workload.pods:
        for name in claims_named(pod):
            claim = store.find(CLAIM, pod.namespace, name)
            if claim is None or volume_of(claim) or SELECTED_NODE in claim.annotations:
                continue
            storage_class = store.find("StorageClass", "", class_of(claim))
            if storage_class is None or storage_class.raw.get("volumeBindingMode") != WAIT_FOR_FIRST_CONSUMER:
                continue
            why = f"its class {storage_class.name} has volumeBindingMode WaitForFirstConsumer"
            return skips_scheduler(workload, pod, named(claim), f"claim {name} gets no volume: {why}")
    return None


def skips_scheduler(workload: ExaminedWorkload, pod: Pod, what: ObjectNamed, why: str) -> FoundCause:
    """Return the cause: pods set `nodeName`; `why` is the effect of this setting on the pods."""
    node = str(workload.pod_spec["nodeName"])

    def selecting(spec: Spec) -> None:
        del spec["nodeName"]
        spec["nodeSelector"] = {**(spec.get("nodeSelector") or {}), "kubernetes.io/hostname": node}

    def recreating(manifest: dict[str, Any], spec: Spec) -> None:
        selecting(spec)
        manifest["spec"]["strategy"] = {"type": "Recreate"}

    summary = f"select {node} by nodeSelector kubernetes.io/hostname instead of nodeName"
    options = [RemedyOption(summary, edit=spec_edit(selecting))]
    if workload.kind == "Deployment":
        options.append(RemedyOption(f"{summary}, with strategy Recreate", edit=recreating))
    return FoundCause(
        "NodeNameSkipsScheduler",
        f"the pods name their node by nodeName ({node}), so no scheduler sees them, and {why}",
        [named(pod), what],
        [f"{'.'.join(workload.path)}.nodeName"],
        options=options,
    )
