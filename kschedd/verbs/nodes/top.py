"""top nodes, top pods: the resources requested on each node and by each pod, in kubectl's grammar.

kubectl shows the usage of containers. Simulated pods have no running containers, so kschedd shows resource requests
instead. The headers say so.
"""

import argparse
from collections.abc import Callable, Mapping
from typing import Any

from kschedd.printing.terminal.tables import render
from kschedd.verbs.command_line.grammar import UsageError, VerbParser, namespace_flags, namespace_of, verb
from kschedd.verbs.command_line.session import VerbSession
from kschedd.verbs.command_line.targets import get_object, targets_of, where

Raw = dict[str, Any]


def _words(words: VerbParser) -> None:
    words.add_argument("what", nargs="*", metavar="nodes [NAME...] | pods [NAME...]")
    words.add_argument("-l", "--selector", metavar="LABELS", help="objects with these labels")
    words.add_argument(
        "--sort-by", choices=("cpu", "memory"), help="sort by this resource, largest first; default: by name"
    )
    words.add_argument("--no-headers", action="store_true", help="omit the header line")
    namespace_flags(words, everywhere=True)


@verb(
    "top",
    "Show the resources requested on each node or by each pod. Containers do not run, so no usage is measured.",
    _words,
    examples=("top nodes", "top pods -A --sort-by cpu"),
    completes="kinds",
)
def top(session: VerbSession, options: argparse.Namespace) -> int:
    targets = targets_of(session, options.what) if options.what else []
    kinds = {target.kind.name for target in targets}
    if len(kinds) != 1 or not kinds <= {"Node", "Pod"}:
        raise UsageError("either `top nodes` or `top pods` is expected")
    names = [target.name for target in targets if target.name]
    if names and options.selector:
        raise UsageError("a name excludes selectors")
    kind, namespace = targets[0].kind, namespace_of(session, options)
    if names:
        found = [get_object(session, kind, name, namespace) for name in names]
    else:
        found = session.daemon.call(
            "objects.list", kind=kind.name, label_selector=options.selector, **where(kind, namespace)
        )["items"]
    return (_nodes if kind.name == "Node" else _pods)(session, options, found, namespace)


def _nodes(session: VerbSession, options: argparse.Namespace, nodes: list[Raw], namespace: str | None) -> int:
    from kschedd.printing.columns.usage import nodes_table
    from kschedd.printing.describing.node import requested_by_node

    if not nodes:
        session.write_error("No resources found.\n")
        return 0
    requested = requested_by_node(session.daemon.call("objects.list", kind="Pod")["items"])
    _sort(nodes, options.sort_by, lambda node: requested.get(node["metadata"]["name"], {}))
    session.write(render(nodes_table(nodes, requested), session.style, headers=not options.no_headers))
    return 0


def _pods(session: VerbSession, options: argparse.Namespace, pods: list[Raw], namespace: str | None) -> int:
    from kschedd.printing.columns.usage import pod_name, pods_table
    from kschedd.printing.describing.node import requests_of

    going_on = [pod for pod in pods if (pod.get("status") or {}).get("phase") not in ("Succeeded", "Failed")]
    if not going_on:
        session.write_error(f"No resources found{f' in {namespace} namespace' if namespace else ''}.\n")
        return 0
    requests = {pod_name(pod): requests_of(pod) for pod in going_on}
    _sort(going_on, options.sort_by, lambda pod: requests[pod_name(pod)])
    table = pods_table(going_on, requests, namespaces=namespace is None)
    session.write(render(table, session.style, headers=not options.no_headers))
    return 0


def _sort(objects: list[Raw], resource: str | None, amounts: Callable[[Raw], Mapping[str, int]]) -> None:
    if resource:
        objects.sort(key=lambda raw: -amounts(raw).get(resource, 0))
