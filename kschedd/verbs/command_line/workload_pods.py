"""Workloads as arguments of verbs about pods, such as `deployment/web`."""

from collections.abc import Callable, Sequence
from typing import Any, Final

from kschedd.api.schemas.kinds import Kind, lookup
from kschedd.service.errors import RpcError

WORKLOADS: Final = ("Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job", "ReplicationController")


def workload_named(words: Sequence[str], others: Sequence[str] = ()) -> tuple[Kind, str] | None:
    """Return the workload for `deployment/web` or `deployment web`; None for other words.

    `others` are additional kinds that are accepted.
    """
    parts = words[0].split("/") if len(words) == 1 else words
    if len(parts) != 2 or not parts[1]:
        return None
    kind = lookup(parts[0])
    return (kind, parts[1]) if kind.name in (*WORKLOADS, *others) else None


def with_workload(call: Callable[..., Any], error: RpcError, name: str, namespace: str | None) -> RpcError:
    """Return the error.

    If the pod was not found, add the workload or node with this name, or the object to which KIND/NAME refers.
    """
    if error.code != "not_found":
        return error
    word, slash, own = name.partition("/")
    if slash:
        kind = lookup(word)
        if not kind.known or kind.name in ("Pod", *WORKLOADS):
            return error
        place = f" -n {namespace}" if kind.namespaced and namespace else ""
        return RpcError(
            error.code,
            f"{name} is a {kind.name}; allowed: a pod, a workload, a node or a quota. `describe {word} {own}{place}` "
            "shows it, `explain --pending` explains all pending pods",
        )
    for kind in map(lookup, (*WORKLOADS, "Node")):
        within = {"namespace": namespace or "default"} if kind.namespaced else {}
        listed = call("objects.list", kind=kind.name, metadata_only=True, **within)["items"]
        if any(item["metadata"]["name"] == name for item in listed):
            hint = f"; there is a {kind.singular} of that name: {kind.singular}/{name}"
            return RpcError(error.code, error.message + hint, error.data)
    return error
