"""Causes of pending pods: a host port is in use on every otherwise suitable node."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import attrs

from kschedd.api.pods import Pod, PodSpec
from kschedd.causes.case import Case
from kschedd.causes.demands.neighbors import owner_labels
from kschedd.causes.demands.new_nodes import more_nodes
from kschedd.causes.findings import WORKAROUND, FoundCause, RemedyOption, fewer_replicas, named, spec_edit
from kschedd.causes.words import counted, some, suitable
from kschedd.causes.workload import root_of

Spec = dict[str, Any]


def port_taken(case: Case, among: Collection[str]) -> FoundCause | None:
    """Return the cause: pods use a host port on every otherwise suitable node."""
    rejected = case.rejected_by("NodePorts")
    taken = [name for name in among if name in rejected]
    if not taken:
        return None
    for ip, protocol, port in case.pod.pod_spec.host_ports:
        holders = _holders(case, taken, (ip, protocol, port))
        if not holders:
            continue
        mine = {pod.uid for pod in case.workload.pods}
        if all(pod.uid in mine for pod in holders):
            return _port_of_own(case, taken, port)
        owners = owner_labels(case, [pod for pod in holders if pod.uid not in mine])
        free = _free_port(case, protocol, port)
        where = suitable(len(taken)) if len(taken) > 1 else taken[0]
        first = root_of(case.store, next(pod for pod in holders if pod.uid not in mine))
        return FoundCause(
            "HostPortTaken",
            f"host port {port} ({protocol}) is held on {where} by {some(owners)}",
            [named(first)],
            _port_fields(case, port),
            [f"such as {holders[0].key} on {holders[0].node_name}"] if len(taken) > 1 else [],
            [
                RemedyOption(f"use host port {free}", edit=spec_edit(_with_port(port, free))),
                _portless(port),
            ],
        )
    return None


def _holders(case: Case, nodes: Sequence[str], port: tuple[str, str, int]) -> list[Pod]:
    """Return the pods that use the port on these nodes, one for each node."""
    holds: dict[PodSpec, bool] = {}
    found = []
    table = case.engine.machine.cluster.table
    for name in nodes:
        for pod in table.pods[table.row_of[name]]:
            spec = pod.signature.spec
            held = holds.get(spec)
            if held is None:
                held = holds[spec] = any(_clash(one, port) for one in spec.host_ports)
            if held:
                found.append(pod)
                break
    return found


def _port_of_own(case: Case, taken: Sequence[str], port: int) -> FoundCause:
    nodes = len(case.open)
    wanted = case.workload.wanted
    fewer = fewer_replicas(case.workload, len(case.workload.scheduled))
    return FoundCause(
        "MoreReplicasThanDomains",
        f"each of the {counted(wanted, 'replica')} needs host port {port} on a node of its own, and there "
        f"{'is' if nodes == 1 else 'are'} {counted(nodes, 'suitable node')}",
        [named(case.workload.obj)],
        _port_fields(case, port),
        [f"nodes where a replica holds the port: {some(taken)}"],
        [
            *(attrs.evolve(option, less=False) for option in fewer),
            *more_nodes(case, taken),
            _portless(port),
        ],
    )


def _portless(port: int) -> RemedyOption:
    """Return the option to remove the host port.

    This option is the last one, because without the host port clients can no longer use the node's port.
    """
    summary = f"use no host port {port} (clients reach the pods by a Service only)"
    return RemedyOption(summary, WORKAROUND, edit=spec_edit(_without_port(port)))


def _clash(one: tuple[str, str, int], other: tuple[str, str, int]) -> bool:
    same = one[1:] == other[1:]
    return same and (one[0] == other[0] or "0.0.0.0" in (one[0], other[0]))


def _free_port(case: Case, protocol: str, port: int) -> int:
    """Return the next higher port that is free on all nodes."""
    there = set().union(*case.engine.machine.cluster.table.ports.values())
    used = {number for _, kind, number in there if kind == protocol}
    own = {number for _, _, number in case.pod.pod_spec.host_ports}
    found: int = next(number for number in (*range(port + 1, 65_536), *range(1_024, port)) if number not in used | own)
    return found


def _port_fields(case: Case, port: int) -> list[str]:
    return [
        f"spec.containers[{place}].ports[{number}].hostPort"
        for place, container in enumerate(case.workload.pod_spec.get("containers") or ())
        for number, each in enumerate(container.get("ports") or ())
        if _holds(case.workload.pod_spec, each, port)
    ]


def _holds(spec: Mapping[str, Any], each: Mapping[str, Any], port: int) -> bool:
    """With hostNetwork, each container port is also a host port, even if the template does not set hostPort."""
    return bool((each.get("hostPort") or (spec.get("hostNetwork") and each.get("containerPort"))) == port)


def _with_port(port: int, free: int) -> Any:
    def edit(spec: Spec) -> None:
        for container in spec["containers"]:
            for each in container.get("ports") or ():
                if _holds(spec, each, port):
                    for field in ("hostPort", "containerPort") if spec.get("hostNetwork") else ("hostPort",):
                        if field in each:
                            each[field] = free

    return edit


def _without_port(port: int) -> Any:
    def edit(spec: Spec) -> None:
        for container in spec["containers"]:
            for each in container.get("ports") or ():
                if _holds(spec, each, port) and not spec.get("hostNetwork"):
                    del each["hostPort"]

    return edit
