"""Causes of pending pods: requests that exceed the capacity of every node."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np

from kschedd.api.quantity import format_milli, format_value, milli_value, value
from kschedd.causes.answers import ObjectNamed
from kschedd.causes.case import Case
from kschedd.causes.demands.excluding import clashing, meeting
from kschedd.causes.demands.tainted import all_tainted, meant_for, untolerated
from kschedd.causes.findings import FoundCause, RemedyOption, spec_edit
from kschedd.causes.near import nearest
from kschedd.causes.words import counted, joined, some

Spec = dict[str, Any]
_BYTES: Final = ("memory", "ephemeral-storage")
_USUAL: Final = ("cpu", *_BYTES)
_LEAST_SHARE: Final = 0.25  # smallest share of the present request that an option may propose
_STEPS: Final = {"cpu": (1_000, 500, 100, 10), "memory": (1 << 30, 1 << 28, 1 << 20), "": (1,)}
_PLAIN_EXCESS: Final = 16  # multiple of the largest node's amount above which the unit is probably wrong


def amount(resource: str, number: int) -> str:
    """Return the amount as a manifest contains it."""
    if resource == "cpu":
        return format_milli(number)
    binary = resource in _BYTES or resource.startswith("hugepages-")
    return format_value(number, "BinarySI" if binary else "DecimalSI")


def shown(resource: str, number: int) -> str:
    """Return the amount for people: cpu in cores, bytes in Gi or Mi with one decimal."""
    if resource == "cpu":
        return f"{number / 1_000:g}"
    if resource in _BYTES or resource.startswith("hugepages-"):
        for unit, size in (("Ti", 1 << 40), ("Gi", 1 << 30), ("Mi", 1 << 20), ("Ki", 1 << 10)):
            if abs(number) >= size:
                return f"{number / size:.4g}{unit}"
    return str(number)


# -- resources that the nodes do not have -----------------------------------------------------------------------------


def no_such_resource(case: Case) -> FoundCause | None:
    """Return the cause: no node, or no node with tolerated taints, offers a requested resource."""
    for resource, number in case.pod.requests.items():
        if not number or resource in _USUAL:
            continue
        offering = case.cluster.offering(resource)
        if offering & case.open:
            continue
        if offering & case.selected:
            return all_tainted(case, offering)
        if not offering:
            return _unknown(case, resource, number)
        against = clashing(case, offering)
        option = meeting(case, offering, against, f"the nodes with {resource}")
        return FoundCause(
            "ResourceOnOtherNodes",
            f"{resource} is on {counted(len(offering), 'node')} only, and the pod selects none of them",
            [ObjectNamed("Node", "", name) for name in sorted(offering)[:3]],
            [each.field for each in against] or ["spec.nodeSelector", "spec.affinity"],
            [f"nodes with {resource}: {some(offering)}", f"nodes that the pod selects: {some(case.selected)}"],
            [option] if option is not None else [],
            certain=True,
        )
    return None


def _unknown(case: Case, resource: str, number: int) -> FoundCause:
    offered = case.cluster.resources
    likely = nearest(resource, offered - {*_USUAL, "pods"})
    text = f"no node offers the resource `{resource}` ({shown(resource, number)} requested)"
    fields = [field for _, field in asking(case.workload.pod_spec, resource)]
    if likely is None:
        listed_ = sorted(name for name in offered if name not in (*_USUAL, "pods"))
        evidence = [f"resources that nodes offer beside cpu and memory: {joined(listed_) if listed_ else 'none'}"]
        idle = [name for name, node in case.nodes.items() if resource in (node.status.get("allocatable") or {})]
        if idle:
            evidence = [
                f"{some(idle)} state 0 of it, as when their device plugin does not run",
                f"next: check the pods of the device plugin on {min(idle)}; no change of the workload helps",
            ]
        return FoundCause(
            "ResourceOnNoNode",
            text,
            fields=fields,
            evidence=evidence,
        )
    with_it = case.cluster.offering(likely)

    def renamed(spec: Spec) -> None:
        for holder, _ in asking(spec, resource):
            holder[likely] = holder.pop(resource)

    return FoundCause(
        "ResourceMisspelled",
        f"{text}; {counted(len(with_it), 'node')} offer{'s' if len(with_it) == 1 else ''} `{likely}`",
        [ObjectNamed("Node", "", name) for name in sorted(with_it)[:3]],
        fields,
        [f"nodes with {likely}: {some(with_it)}"],
        [RemedyOption(f"request {likely}", edit=spec_edit(renamed))],
    )


def asking(spec: Mapping[str, Any], resource: str) -> list[tuple[Any, str]]:
    """Return the maps of the spec that contain the resource, each with its field path."""
    found = [
        (holder, f"spec.resources.{which}[{resource}]")
        for which in ("requests", "limits")
        if resource in (holder := (spec.get("resources") or {}).get(which) or {})
    ]
    for part in ("containers", "initContainers"):
        for place, container in enumerate(spec.get(part) or ()):
            for which in ("requests", "limits"):
                holder = (container.get("resources") or {}).get(which) or {}
                if resource in holder:
                    found.append((holder, f"spec.{part}[{place}].resources.{which}[{resource}]"))
    return found


# -- more than any node has -------------------------------------------------------------------------------------------


def larger_than_every_node(case: Case) -> FoundCause | None:
    """Return the cause: a request exceeds every node that the pod may use, even when the node is empty."""
    if not case.open or case.large_enough:
        return None
    most = {resource: case.most(case.open_names, resource) for resource in case.requested}
    beyond = [resource for resource, (there, _) in most.items() if there < case.pod.requests[resource]]
    if not beyond:
        return _no_node_has_all(case)
    resource = beyond[0]
    largest, name = most[resource]
    requested = case.pod.requests[resource]
    which = "the largest node" if case.open == case.cluster.names else "the largest node that the pod may use"
    message = f"{shown(resource, requested)} {resource} requested, {which} ({name}) has {shown(resource, largest)}"
    slip = _slip(case, resource)
    code = "RequestAboveEveryNode" if slip is None else "QuantityUnit"
    evidence = []
    elsewhere = {name for name in case.cluster.names - case.open if case.holds(case.nodes[name])}
    near = meant_for(case, elsewhere & case.selected)
    if near is not None:
        return near
    overhead = case.pod.pod_spec.raw.get("overhead") or {}
    if resource in overhead:
        runtime = case.pod.pod_spec.raw.get("runtimeClassName")
        evidence.append(f"{overhead[resource]} {resource} of it is overhead of RuntimeClass {runtime}")
    initial = [
        f"{shown(resource, _request_of(each, resource))} {resource} of init container {each['name']}"
        for each in case.workload.pod_spec.get("initContainers") or ()
        if each.get("restartPolicy") != "Always" and _request_of(each, resource) > largest
    ]
    evidence += [*initial, *_summed(case, resource, initial), *by_default(case, resource)]
    evidence += _reserved(case, name, resource, requested)
    if elsewhere and case.workload.kind != "DaemonSet":
        taints = sorted({taint.shown for name in elsewhere for taint in untolerated(case, name)})
        why = f"tainted ({', '.join(taints)})" if taints else "not selected by the pod"
        evidence.append(f"large enough, but {why}: {some(elsewhere)}")
    options = smaller(case, beyond)
    if not options:
        fits = shown(resource, _largest_for_all(case, resource))
        needed = f"a node with {shown(resource, requested)} {resource} is required, or smaller requests"
        evidence.append(f"{needed}: {fits} per pod would fit now")
    return FoundCause(
        code,
        message if slip is None else f"{message}: `{_as_written(*slip)}` may be meant as `{slip[1]}`",
        [ObjectNamed("Node", "", name)],
        [field for _, field in asking(case.workload.pod_spec, resource)],
        [*evidence, *(f"{shown(other, case.pod.requests[other])} {other} is too much as well" for other in beyond[1:])],
        options,
    )


def _summed(case: Case, resource: str, initial: Sequence[str]) -> list[str]:
    """Return the request of each container as evidence; none if only one container runs."""
    spec = case.workload.pod_spec
    if initial or resource in ((spec.get("resources") or {}).get("requests") or {}):
        return []
    sidecars = [c for c in spec.get("initContainers") or () if c.get("restartPolicy") == "Always"]
    parts = [
        f"{shown(resource, number)} of {'sidecar' if container in sidecars else 'container'} {container['name']}"
        for container in (*(spec.get("containers") or ()), *sidecars)
        if (number := _request_of(container, resource))
    ]
    return [f"{resource} requested together: {joined(parts)}"] if len(parts) > 1 else []


def _reserved(case: Case, node: str, resource: str, requested: int) -> list[str]:
    """Return the evidence that the pod would fit if the node reserved no capacity for the system."""
    stated = (case.nodes[node].status.get("capacity") or {}).get(resource)
    whole = 0 if stated is None else read_amount(resource, str(stated))
    if whole < requested:
        return []
    left = shown(resource, whole - case.nodes[node].allocatable.get(resource, 0))
    return [f"{node} has a capacity of {shown(resource, whole)} {resource}, of which {left} is not allocatable to pods"]


def _no_node_has_all(case: Case) -> FoundCause:
    requested = {resource: number for resource, number in case.pod.requests.items() if number}
    parts = [f"{shown(resource, number)} {resource}" for resource, number in requested.items()]
    return FoundCause(
        "RequestAboveEveryNode",
        f"no node that the pod may use has {joined(parts)} together",
        fields=[field for resource in requested for _, field in asking(case.workload.pod_spec, resource)],
        evidence=[
            f"{shown(resource, number)} {resource}: "
            + counted(sum(case.nodes[n].allocatable.get(resource, 0) >= number for n in case.open), "node")
            for resource, number in requested.items()
        ],
        options=smaller(case, list(requested)),
    )


def _slip(case: Case, resource: str) -> tuple[str, str] | None:
    """Return the written amount, and the probably intended amount with a unit added or replaced."""
    largest = int(case.there(case.open_names, resource).max(initial=0))
    for holder, _ in asking(case.workload.pod_spec, resource):
        written = str(holder[resource])
        number = read_amount(resource, written)
        others = case.pod.requests[resource] - number
        for meant in _other_units(resource, written, number, largest):
            if number + others > largest >= read_amount(resource, meant) + others:
                return written, meant
    return None


def _as_written(written: str, meant: str) -> str:
    """Return the amount as the manifest states it; the API server may rewrite it, for example 4000 as 4k."""
    return meant.removesuffix("m") if written.endswith("k") else written


def _other_units(resource: str, written: str, number: int, largest: int) -> Iterator[str]:
    """Yield the amounts that the user probably meant, for an amount that exceeds the largest node."""
    if resource == "cpu":
        if number % 1_000 == 0 and number >= 100_000:  # 100 cores
            yield f"{number // 1_000}m"
        return
    for binary, decimal, smaller in (("Gi", "G", "Mi"), ("Ti", "T", "Gi")):
        if resource in _BYTES and written.endswith(binary):
            yield written.removesuffix(binary) + decimal
            if number > _PLAIN_EXCESS * largest:
                yield written.removesuffix(binary) + smaller
        elif resource in _BYTES and written.endswith(decimal) and number > _PLAIN_EXCESS * largest:
            yield written.removesuffix(decimal) + smaller.removesuffix("i")


def read_amount(resource: str, text: str) -> int:
    return milli_value(text) if resource == "cpu" else value(text)


def smaller(case: Case, resources: Sequence[str], least: float = _LEAST_SHARE) -> list[RemedyOption]:
    """Return options with a smaller request that fits: with the intended unit, or the largest for all replicas."""
    edits: list[Callable[[Spec], None]] = []
    words = []
    for resource in resources:
        slip = _slip(case, resource)
        if slip is not None:
            edits.append(_written(resource, *slip))
            words.append(f"{resource} {slip[1]}")
            continue
        fits = _largest_for_all(case, resource)
        requested = case.pod.requests[resource]
        if fits >= requested:
            continue
        if fits < requested * least or fits < _containers_asking(case, resource):
            return []
        edits.append(_lowered(resource, requested, requested - fits))
        words.append(f"{shown(resource, fits)} {resource}")
    if not edits:
        return []

    def edit(spec: Spec) -> None:
        for each in edits:
            each(spec)

    return [RemedyOption(f"request {joined(words)}", edit=spec_edit(edit))]


def _containers_asking(case: Case, resource: str) -> int:
    """Return the number of containers, each of which requires at least one whole device."""
    if resource in _USUAL:
        return 0
    spec = case.workload.pod_spec
    return sum(_request_of(container, resource) > 0 for container in spec.get("containers") or ())


def _largest_for_all(case: Case, resource: str) -> int:
    """Return the largest request with which all pending and missing pods would fit on these nodes.

    If there are enough nodes, each pod is assumed to have one of its own.
    """
    waiting = max(1, len(case.workload.pending) or case.workload.wanted)
    if case.workload.kind == "DaemonSet":  # each pod is for one node
        waiting = 1
    others = {name: number for name, number in case.pod.requests.items() if number and name != resource}
    names = sorted(case.open & case.rejected_only_by("NodeResourcesFit")) or case.open_names
    enough = np.ones(len(names), dtype=bool)
    for other, number in others.items():
        offered = case.there(names, other) > 0
        enough &= ~offered | (case.frees(names, other) >= number)
    roomy = [name for name, roomy in zip(names, enough.tolist(), strict=True) if roomy] or names
    frees = sorted(case.frees(roomy, resource).tolist(), reverse=True)
    best = 0
    for taken, free in enumerate(frees[:waiting], 1):
        each = -(-waiting // taken)  # pods on one node
        best = max(best, free // each)
    return _round(resource, best)


def _round(resource: str, number: int) -> int:
    for step in _STEPS.get("memory" if resource in _BYTES else resource, _STEPS[""]):
        if number >= 2 * step or step == _STEPS.get(resource, _STEPS[""])[-1]:
            return number - number % step
    return number


def _written(resource: str, written: str, meant: str) -> Callable[[Spec], None]:
    def edit(spec: Spec) -> None:
        for holder, _ in asking(spec, resource):
            if str(holder[resource]) == written:
                holder[resource] = meant

    return edit


def by_default(case: Case, resource: str) -> list[str]:
    """Return the LimitRange that sets the resource's default request, if no container specifies one."""
    template = case.workload.pod_spec
    if asking(template, resource) or resource in (case.pod.pod_spec.raw.get("overhead") or {}):
        return []
    return [
        f"the template states no {resource}: LimitRange {each.name} gives its containers {text}"
        for each in case.store.list("LimitRange", case.pod.namespace)
        for limit in each.spec.get("limits") or ()
        if (text := (limit.get("defaultRequest") or limit.get("default") or {}).get(resource)) is not None
    ]


def _lowered(resource: str, requested: int, excess: int) -> Callable[[Spec], None]:
    """Return the edit that lowers the pod's request of the resource by `excess`.

    No init container may request more than the new amount. If one container requests more than all others together,
    only its request is lowered. If no container does, the requests of all containers are lowered by the same share. A
    limit that must equal its request is lowered as well.
    """

    def edit(spec: Spec) -> None:
        initial = [c for c in spec.get("initContainers") or () if c.get("restartPolicy") != "Always"]
        sidecars = [c for c in spec.get("initContainers") or () if c.get("restartPolicy") == "Always"]
        running = [c for c in (*sidecars, *(spec.get("containers") or ())) if _request_of(c, resource)]
        together = sum(_request_of(container, resource) for container in running)
        level = (spec.get("resources") or {}).get("requests") or {}
        whole = _request_of(spec, resource) if resource in level else together
        fits = max([whole, *(_request_of(container, resource) for container in initial)]) - excess
        if resource in level:
            _state(spec, resource, fits)
        for container in initial:
            if _request_of(container, resource) > fits:
                _state(container, resource, fits)
        if not running and not initial and resource not in level:  # a LimitRange requests it
            containers = spec.get("containers") or ()
            for container in containers:
                container.setdefault("resources", {}).setdefault("requests", {})[resource] = amount(
                    resource, (requested - excess) // len(containers)
                )
        elif together > fits:
            largest = max(running, key=lambda container: _request_of(container, resource))
            most = _request_of(largest, resource)
            left = most - together + fits
            if most > together - most and left >= most * _LEAST_SHARE:
                _state(largest, resource, left)
                return
            for container in running:
                _state(container, resource, rounded_down(resource, _request_of(container, resource) * fits // together))

    return edit


def rounded_down(resource: str, number: int) -> int:
    """Return the amount rounded down to a plain number; bytes to whole Mi."""
    return number - number % (1 << 20) if resource in _BYTES and number >= 1 << 20 else number


def _state(container: dict[str, Any], resource: str, number: int) -> None:
    held = container["resources"]
    text = amount(resource, number)
    if resource in (held.get("requests") or {}):
        held["requests"][resource] = text
    if resource in (held.get("limits") or {}) and (
        resource not in _USUAL or resource not in (held.get("requests") or {})
    ):
        held["limits"][resource] = text


def _request_of(container: Mapping[str, Any], resource: str) -> int:
    held = container.get("resources") or {}
    text = (held.get("requests") or {}).get(resource, (held.get("limits") or {}).get(resource))
    return 0 if text is None else read_amount(resource, str(text))
