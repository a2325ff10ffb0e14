"""The pods of a workload, where a command that is about one pod is given `deployment/web` instead."""

from collections.abc import Sequence
from typing import Any, Final

from kschedd.api.schemas.kinds import Kind, lookup
from kschedd.api.selecting.selectors import from_map, parse_label_selector
from kschedd.errors import KscheddError
from kschedd.service.errors import RpcError
from kschedd.verbs.command_line.session import VerbSession
from kschedd.verbs.command_line.targets import get_object

Raw = dict[str, Any]

WORKLOADS: Final = ("Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job", "ReplicationController")


class NoPodsError(KscheddError):
    """A workload that has no pods now."""


def workload_named(words: Sequence[str]) -> tuple[Kind, str] | None:
    """The workload that `deployment/web` or `deployment web` names; None where something else is meant."""
    parts = words[0].split("/") if len(words) == 1 else words
    if len(parts) != 2 or not parts[1]:
        return None
    kind = lookup(parts[0])
    return (kind, parts[1]) if kind.name in WORKLOADS else None


def with_workload(session: VerbSession, error: RpcError, name: str, namespace: str | None) -> RpcError:
    """The error; that there is no such pod gets a workload of that name, if there is one."""
    if error.code != "not_found" or "/" in name:
        return error
    for kind in map(lookup, WORKLOADS):
        listed = session.daemon.call("objects.list", kind=kind.name, namespace=namespace or "default")["items"]
        if any(item["metadata"]["name"] == name for item in listed):
            hint = f"; there is a {kind.singular} of that name: {kind.singular}/{name}"
            return RpcError(error.code, error.message + hint, error.data)
    return error


def pod_of_workload(session: VerbSession, kind: Kind, name: str, namespace: str | None) -> str:
    """The name of one of its pods: the first by name of those on no node, else of all; says which, and of how many.

    Raises RpcError, NoPodsError."""
    workload = get_object(session, kind, name, namespace)
    stated = (workload.get("spec") or {}).get("selector")
    selector = from_map(stated) if kind.name == "ReplicationController" else parse_label_selector(stated)
    pods: list[Raw] = session.daemon.call(
        "objects.list",
        kind="Pod",
        namespace=workload["metadata"]["namespace"],
        label_selector=str(selector),
    )["items"]
    if not pods:
        raise NoPodsError(f"{kind.singular}/{name} has no pods now")
    pending: list[str] = [pod["metadata"]["name"] for pod in pods if not (pod.get("spec") or {}).get("nodeName")]
    chosen: str = min(pending or (pod["metadata"]["name"] for pod in pods))
    count = f"{len(pods)} pods" if len(pods) > 1 else "1 pod"
    session.write_error(f"{kind.singular}/{name} has {count}, {len(pending)} of them on no node: this is {chosen}\n")
    return chosen
