"""Causes of missing claims: a quota or a LimitRange rejects a claim, so that a controller cannot create it.

The rejecting object is found by creating the claim in a dry run.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import attrs

from kschedd.api.pods import Pod
from kschedd.causes.answers import ObjectNamed
from kschedd.causes.claimed.claims import CLAIM, Home, changing_template
from kschedd.causes.findings import FoundCause, named
from kschedd.causes.lifecycle.refused import QUOTA, over_quota
from kschedd.causes.words import counted
from kschedd.causes.workload import ExaminedWorkload
from kschedd.controllers.workloads.stateful_pods import missing_claims, replicas_wanted, start_ordinal
from kschedd.devices.claims import generated_claim
from kschedd.storage.claims import ephemeral_claim
from kschedd.store.cluster_api import ClusterWriter
from kschedd.store.errors import ApiError
from kschedd.store.writes import Create

Raw = Mapping[str, Any]
_MOST_TRIED: Final = 32
_BOUND: Final = re.compile(r"(maximum|minimum) storage usage per PersistentVolumeClaim is (\S+), but request is (\S+)")


def claims_refused(store: ClusterWriter, workload: ExaminedWorkload) -> Iterator[FoundCause]:
    """Yield the reasons why claims of the workload's pods were not created.

    No cause is yielded if the claims could be created.
    """
    refused: dict[str, list[tuple[_ToCreate, str]]] = {}
    missing = list(_to_create(store, workload))
    for each in missing[:_MOST_TRIED]:
        try:
            store.create(dict(each.manifest), dry_run=True)
        except ApiError as refusal:
            why = str(refusal)
            quota = QUOTA.search(why)
            refused.setdefault(quota[1] if quota is not None else each.volume, []).append((each, why))
    for those in refused.values():
        # A quota that is used up also rejects the remaining claims.
        rest = max(0, len(missing) - _MOST_TRIED) if len(those) == _MOST_TRIED else 0
        yield _finding(store, workload, *those[0], len(those) + rest)


@attrs.frozen(eq=False)
class _ToCreate:
    """A claim that the workload requires. `volume` is the name of the pod's volume, or of the claim template."""

    manifest: Raw
    volume: str
    home: Home


def _to_create(store: ClusterWriter, workload: ExaminedWorkload) -> Iterator[_ToCreate]:
    if workload.kind == "StatefulSet":
        first = start_ordinal(workload.obj)
        for ordinal in range(first, first + replicas_wanted(workload.obj)):
            for write in missing_claims(
                workload.obj, ordinal, lambda name: store.find(CLAIM, workload.obj.namespace, name)
            ):
                assert isinstance(write, Create), "missing claims are created"
                name = str(write.raw["metadata"]["name"])
                yield _ToCreate(write.raw, name.removesuffix(f"-{workload.obj.name}-{ordinal}"), Home.STATEFUL_SET)
    for pod in workload.pending:
        yield from _of_pod(store, pod)


def _of_pod(store: ClusterWriter, pod: Pod) -> Iterator[_ToCreate]:
    for volume in pod.pod_spec.volumes:
        template = (volume.get("ephemeral") or {}).get("volumeClaimTemplate")
        if template is None:
            continue
        name = ephemeral_claim(pod, str(volume.get("name")))
        if store.find(CLAIM, pod.namespace, name) is None:
            meta = {**(template.get("metadata") or {}), "name": name, "namespace": pod.namespace}
            made = {"apiVersion": "v1", "kind": CLAIM, "metadata": meta, "spec": template.get("spec") or {}}
            yield _ToCreate(made, str(volume.get("name")), Home.EPHEMERAL)
    for entry in pod.pod_spec.raw.get("resourceClaims") or ():
        wanted = entry.get("resourceClaimTemplateName")
        if wanted is None or generated_claim(pod, str(entry.get("name")))[0]:
            continue
        found = store.find("ResourceClaimTemplate", pod.namespace, wanted)
        if found is not None:
            meta = {"generateName": f"{pod.name}-{entry.get('name')}-", "namespace": pod.namespace}
            spec = found.spec.get("spec") or {}
            made = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": meta, "spec": spec}
            yield _ToCreate(made, str(entry.get("name")), Home.OBJECT)


def _finding(store: ClusterWriter, workload: ExaminedWorkload, first: _ToCreate, why: str, count: int) -> FoundCause:
    kind, meta = str(first.manifest["kind"]), first.manifest["metadata"]
    name = str(meta.get("name") or meta.get("generateName"))
    rest = f"{kind} {name} is not created" if count == 1 else f"{count} {kind}s are not created, such as {name}"
    found = QUOTA.search(why)
    if found is not None:
        return over_quota(store, workload, rest, found, count, len(workload.scheduled))
    bound = _BOUND.search(why)
    if bound is not None:
        return _out_of_bounds(store, workload, rest, bound, first.volume, first.home)
    return FoundCause("CreationRefused", f"{rest}: {why}", [named(workload.obj)], ["spec.volumes"])


def _out_of_bounds(
    store: ClusterWriter, workload: ExaminedWorkload, rest: str, found: re.Match[str], volume: str, home: Home
) -> FoundCause:
    way, bound, stated = found.groups()
    namespace = workload.obj.namespace
    ranges = [
        each
        for each in store.list("LimitRange", namespace)
        if any(limit.get("type") == CLAIM for limit in each.spec.get("limits") or ())
    ]
    name = ranges[0].name if ranges else ""

    def change(spec: dict[str, Any]) -> None:
        spec["resources"]["requests"]["storage"] = bound

    most = "at most" if way == "maximum" else "at least"
    option = changing_template(workload, store, volume, home, f"let claims request {bound} of storage", change)
    return FoundCause(
        "LimitRangeViolated",
        f"LimitRange {name} allows {most} {bound} of storage per claim, and {stated} is requested: {rest}",
        [ObjectNamed("LimitRange", namespace, name)],
        ["spec.volumeClaimTemplates[].spec.resources" if home is Home.STATEFUL_SET else "spec.volumes[].ephemeral"],
        [counted(len(workload.pending), "pod") + " of the workload wait"],
        [option],
    )
