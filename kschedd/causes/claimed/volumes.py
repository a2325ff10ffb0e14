"""Causes of pending pods: a volume for a single pod is in use, or a node can attach no more volumes."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from kschedd.api.objects import Object
from kschedd.api.pods import Pod
from kschedd.causes.answers import ObjectNamed
from kschedd.causes.case import Case
from kschedd.causes.claimed.claims import ClaimUse, as_many_as_scheduled, claims_of
from kschedd.causes.demands.new_nodes import created_nodes, more_nodes
from kschedd.causes.findings import ADD_OBJECT, FoundCause, RemedyOption, fewer_replicas, named, spec_edit
from kschedd.causes.steps import as_new, created
from kschedd.causes.strategies import in_place
from kschedd.causes.words import counted, joined, some, suitable
from kschedd.causes.workload import ExaminedWorkload, label_of, root_of, roots_of
from kschedd.controllers.workloads.pod_state import ready
from kschedd.plugins.volumes.volumerestrictions import conflict, disks
from kschedd.storage.attachable import Attachable, Storage, limits
from kschedd.storage.claims import claims_named, volume_of
from kschedd.storage.migration import in_tree
from kschedd.store.cluster_api import ClusterReader

Spec = dict[str, Any]
_LIMITS: Final = "NodeVolumeLimits"
_RESTRICTIONS: Final = "VolumeRestrictions"
_IN_USE: Final = "ReadWriteOncePod"
_TOO_MANY: Final = "node(s) exceed max volume count"
_MOST_NODES: Final = 16


def claim_in_use(case: Case, among: Collection[str]) -> FoundCause | None:
    """Return the ReadWriteOncePod claim that another pod uses; None if there is none."""
    if not any(_IN_USE in r for n in among for r in case.rejections.get(n, {}).get(_RESTRICTIONS, ())):
        return None
    for use in claims_of(case):
        if use.claim is None or _IN_USE not in (use.claim.spec.get("accessModes") or ()):
            continue
        users = [pod for pod in _placed(case) if use.name in claims_named(pod)]
        if users:
            return _in_use(case, use, users)
    return None


def disk_in_use(case: Case, among: Collection[str]) -> FoundCause | None:
    """Return the cause: pods on otherwise suitable nodes use a disk that is named in the pod's spec."""
    ours = disks(case.pod)
    users = [
        pod
        for name in sorted(among)
        if _RESTRICTIONS in case.rejections.get(name, {})
        for pod in case.store.pods_on(name)
        if not pod.finished and conflict(ours, pod.signature.spec.volumes)
    ]
    if not users:
        return None
    volume = next(each for each in ours if conflict([each], users[0].signature.spec.volumes))
    source = next(key for key in volume if key != "name")
    nodes = {pod.node_name for pod in users}
    holders = sorted({label_of(root) for root in roots_of(case.store, users)})
    return FoundCause(
        "DiskInUse",
        f"the {source} of volume {volume['name']} serves one pod on a node, and {joined(holders)} "
        f"{'uses' if len(holders) == 1 else 'use'} it on {suitable(len(nodes))}",
        [named(pod) for pod in users[:3]],
        ["spec.volumes"],
        [f"used on {some(nodes)}"],
        [*as_many_as_scheduled(case), *more_nodes(case, nodes)],
    )


def on_two_nodes(store: ClusterReader, workload: ExaminedWorkload) -> FoundCause | None:
    """Return the ReadWriteOnce claim that pods on several nodes use, if one of them is a pod of the workload.

    A real cluster could not run such a pod; here it runs, because simulated kubelets attach no disks.
    """
    for name in sorted({name for pod in workload.scheduled for name in claims_named(pod)}):
        namespace = workload.obj.namespace
        claim = store.find("PersistentVolumeClaim", namespace, name)
        if claim is None or list(claim.spec.get("accessModes") or ()) != ["ReadWriteOnce"]:
            continue
        users = [
            pod
            for pod in store.list("Pod", namespace)
            if isinstance(pod, Pod) and pod.node_name and not pod.finished and name in claims_named(pod)
        ]
        users.sort(key=lambda pod: (not ready(pod), str(pod.metadata.get("creationTimestamp")), pod.name))
        waiting = [pod for pod in users if pod.node_name != users[0].node_name and pod.phase in ("", "Pending")]
        if waiting and ready(users[0]) and not ready(waiting[0]):
            first = users[0]
            text = f"pod {first.name} uses it on {first.node_name}, so {waiting[0].name} cannot start on "
            return _on_two_nodes(workload, claim, [waiting[0], first], text + waiting[0].node_name)
        nodes = {pod.node_name for pod in users}
        if len(nodes) > 1 and _is_attached(store, claim):
            text = f"pods on {counted(len(nodes), 'node')} use it ({some(nodes)}), and its volume is attached to one"
            return _on_two_nodes(workload, claim, users, text)
    return None


def _is_attached(store: ClusterReader, claim: Object) -> bool:
    """Return whether the claim's volume is a disk that must be attached to a node."""
    volume = store.find("PersistentVolume", "", volume_of(claim))
    if volume is None:
        return False
    driver = store.find("CSIDriver", "", str((volume.spec.get("csi") or {}).get("driver")))
    if "csi" in volume.spec:
        return driver is None or driver.spec.get("attachRequired") is not False
    return in_tree(volume.spec) is not None


def _on_two_nodes(workload: ExaminedWorkload, claim: Object, users: Sequence[Pod], text: str) -> FoundCause:
    return FoundCause(
        "VolumeOnTwoNodes",
        f"claim {claim.name} is ReadWriteOnce: {text}",
        [named(claim), *(named(pod) for pod in users[:3])],
        ["spec.accessModes of the claim"],
        ["a volume that several nodes attach has the access mode ReadWriteMany"],
        in_place(workload) if workload.kind == "Deployment" and workload.wanted == 1 else fewer_replicas(workload, 1),
    )


def _placed(case: Case) -> list[Pod]:
    return [
        pod
        for pod in case.store.list("Pod", case.pod.namespace)
        if isinstance(pod, Pod) and pod.node_name and not pod.finished
    ]


def _in_use(case: Case, use: ClaimUse, users: Sequence[Pod]) -> FoundCause:
    workload, user = case.workload, users[0]
    mine = {pod.uid for pod in workload.pods}
    assert use.claim is not None, "a claim in use is there"
    objects = [named(use.claim), named(user)]
    fields = ["spec.accessModes of the claim"]
    text = f"{use} has the access mode ReadWriteOncePod, and pod {user.key} on {user.node_name} uses it"
    if user.uid not in mine:
        owner = root_of(case.store, user)
        return FoundCause(
            "ClaimInUse",
            f"{text}{'' if owner.kind == 'Pod' else f' (of {label_of(owner)})'}: one pod at a time may",
            objects,
            fields,
            ["it has to wait until that pod ends, or to use a claim of its own"],
            _own_claim(case, use.claim),
        )

    return FoundCause(
        "ClaimInUse",
        f"{text}: one pod at a time may, and {counted(workload.wanted, 'replica')} are to",
        objects,
        [*fields, "spec.replicas"],
        options=fewer_replicas(workload, 1),
    )


def _own_claim(case: Case, claim: Object) -> list[RemedyOption]:
    """Return the option to create a claim for the workload alone, modeled on the claim that other pods use.

    The new claim's volume contains none of the data.
    """
    name = f"{case.workload.obj.name}-{claim.name}"
    if case.workload.wanted != 1 or case.store.find(claim.kind, claim.namespace, name) is not None:
        return []
    made = as_new(claim.raw)
    made["metadata"]["name"] = name

    def edit(spec: Spec) -> None:
        for volume in spec.get("volumes") or ():
            source = volume.get("persistentVolumeClaim") or {}
            if source.get("claimName") == claim.name:
                source["claimName"] = name

    text = f"use a claim of its own, {name}, like {claim.name} (its volume is empty at first)"
    return [RemedyOption(text, ADD_OBJECT, spec_edit(edit), [created(made)], f"persistentvolumeclaim/{name}")]


# -- limits of nodes --------------------------------------------------------------------------------------------------


def volume_limit(case: Case, among: Collection[str]) -> FoundCause | None:
    """Return the cause, or None: the nodes lack the CSI driver or can attach no further volume."""
    reasons_of = {name: case.rejections.get(name, {}).get(_LIMITS, ()) for name in among}
    full = sorted(name for name, reasons in reasons_of.items() if _TOO_MANY in reasons)
    if full:
        return _at_limit(case, full)
    lacking = sorted(name for name, reasons in reasons_of.items() if any("CSI driver is not" in r for r in reasons))
    return _without_driver(case, lacking) if lacking else None


def _at_limit(case: Case, full: Sequence[str]) -> FoundCause:
    wanted = _drivers(case)
    at_most = {name: _limits_of(case, name) for name in full}
    driver = next((d for d in wanted if any(d in at_most[name] for name in full)), next(iter(wanted), ""))
    most = Counter(at_most[name].get(driver) for name in full).most_common(1)[0][0]
    waiting = max(1, len(case.workload.pending))
    each = max(1, (most or 1) // max(1, wanted.get(driver, 1)))
    return FoundCause(
        "NodeVolumeLimit",
        f"{suitable(len(full))} {'has' if len(full) == 1 else 'have'} as many volumes as driver {driver} can attach "
        f"({most} each)",
        [ObjectNamed("CSINode", "", name) for name in full[:3]],
        ["spec.volumes"],
        [
            f"at the limit: {some(full)}",
            *_idle_attachments(case, full, driver),
        ],
        [
            *_more_nodes(case, full[-1], min(-(-waiting // each), _MOST_NODES)),
            *as_many_as_scheduled(case),
        ],
    )


def _drivers(case: Case) -> Counter[str]:
    """Return the number of the pod's volumes of each driver."""
    objects = (case.store.list(kind) for kind in ("PersistentVolumeClaim", "PersistentVolume", "StorageClass"))
    claims, volumes, classes = ({each.key: each for each in listed_} for listed_ in objects)
    found = Storage(claims, volumes, classes).attachables(case.pod, new=True)
    return Counter(each.driver for each in found if isinstance(each, Attachable))


def _limits_of(case: Case, node: str) -> Mapping[str, int]:
    csi_node = case.store.find("CSINode", "", node)
    return {} if csi_node is None else limits(csi_node)


def _idle_attachments(case: Case, full: Sequence[str], driver: str) -> list[str]:
    """Return the VolumeAttachments without a pod on the node.

    An attachment without a pod counts towards the driver's limit.
    """
    used = {
        (pod.node_name, volume_of(claim))
        for pod in case.store.list("Pod")
        if isinstance(pod, Pod) and pod.node_name in full
        for name in claims_named(pod)
        if (claim := case.store.find("PersistentVolumeClaim", pod.namespace, name)) is not None
    }
    idle = [
        each
        for each in case.store.list("VolumeAttachment")
        if each.spec.get("attacher") == driver
        and each.spec.get("nodeName") in full
        and (each.spec.get("nodeName"), (each.spec.get("source") or {}).get("persistentVolumeName")) not in used
    ]
    names = some([each.name for each in idle])
    return (
        [f"{counted(len(idle), 'VolumeAttachment')} without a pod on the node count as well: {names}"] if idle else []
    )


def _more_nodes(case: Case, like: str, count: int) -> list[RemedyOption]:
    steps = [step for place in range(count) for step in created_nodes(case, case.nodes[like].raw, place)]
    return [RemedyOption(f"add {counted(count, 'node')} like {like}", ADD_OBJECT, steps=steps, target=f"node/{like}")]


def _without_driver(case: Case, lacking: Sequence[str]) -> FoundCause:
    reasons = [r for n in lacking for r in case.rejections[n][_LIMITS]]
    driver = reasons[0].partition(" CSI driver")[0]
    having = sorted(name for name in case.nodes if _has_driver(case.store, name, driver))
    return FoundCause(
        "DriverMissingOnNodes",
        f"CSI driver {driver} is not installed on {suitable(len(lacking))}",
        [ObjectNamed("CSIDriver", "", driver), *(ObjectNamed("CSINode", "", name) for name in lacking[:3])],
        ["spec.volumes"],
        [f"nodes without it: {some(lacking)}", f"nodes with it: {some(having) if having else 'none'}"],
    )


def placed_without_driver(store: ClusterReader, workload: ExaminedWorkload) -> FoundCause | None:
    """Return the cause, or None: a pod's node lacks the CSI driver of its volume.

    The scheduler checks this only if the CSIDriver requires it, and simulated kubelets start such a pod.
    """
    attached: set[tuple[str, str]] | None = None  # volumes with their nodes; None: not read yet
    with_driver: dict[str, list[str]] = {}
    for pod in workload.scheduled:
        for name in sorted(claims_named(pod)):
            claim = store.find("PersistentVolumeClaim", pod.namespace, name)
            volume = None if claim is None else store.find("PersistentVolume", "", volume_of(claim))
            driver = "" if volume is None else str((volume.spec.get("csi") or {}).get("driver") or "")
            csi_node = store.find("CSINode", "", pod.node_name)
            if volume is None or not driver or csi_node is None or _has_driver(store, pod.node_name, driver):
                continue
            if driver not in with_driver:
                names = (each.name for each in store.list("CSINode"))
                with_driver[driver] = sorted(each for each in names if _has_driver(store, each, driver))
            having, known = with_driver[driver], store.find("CSIDriver", "", driver)
            if attached is None:
                attached = _attached(store)
            if (known is None and not having) or (volume.name, pod.node_name) in attached:
                continue
            return FoundCause(
                "DriverMissingOnNodes",
                f"{pod.key} is on {pod.node_name}, where CSI driver {driver} of claim {name} is not installed, so its "
                "volume cannot be mounted",
                [named(pod), ObjectNamed("CSIDriver", "", driver), ObjectNamed("CSINode", "", pod.node_name)],
                ["spec.volumes"],
                [
                    f"nodes with it: {some(having) if having else 'none'}",
                    f"next: check the driver's pod on {pod.node_name}; the scheduler does not look at the driver",
                ],
            )
    return None


def _attached(store: ClusterReader) -> set[tuple[str, str]]:
    """Return the volumes that a VolumeAttachment reports as attached, each with its node."""
    return {
        (str((each.spec.get("source") or {}).get("persistentVolumeName")), str(each.spec.get("nodeName")))
        for each in store.list("VolumeAttachment")
        if (each.raw.get("status") or {}).get("attached")
    }


def _has_driver(store: ClusterReader, name: str, driver: str) -> bool:
    csi_node = store.find("CSINode", "", name)
    return csi_node is not None and any(d.get("name") == driver for d in csi_node.spec.get("drivers") or ())
