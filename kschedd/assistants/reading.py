"""Tools that only read: an overview, lists, single objects, events, the queue and attempts."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from kschedd.assistants.command import ServedCluster, one_word, run, session_on
from kschedd.assistants.results import OverviewData
from kschedd.assistants.tool import Answer, Tool, ToolError
from kschedd.printing import documents
from kschedd.printing.columns.by_kind import RowContext
from kschedd.printing.columns.kind_tables import table_of
from kschedd.printing.reports.scheduling import PLACES, decisions_table, events_table, queue_table
from kschedd.printing.terminal.style import TerminalStyle
from kschedd.printing.terminal.tables import Table, render
from kschedd.service.params import Param
from kschedd.verbs.command_line.targets import get_object, kind_of_word, pod_key, where

Raw = Mapping[str, Any]

NAMESPACE: Final = Param("namespace", "string", False, "default", "the object's namespace")
_EVERYWHERE: Final = Param("namespace", "string", False, doc="limit to this namespace; none: all namespaces")
_LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
_GROUPS: Final = 8
_GROUPED: Final = ("STATUS", "NODE", "TYPE", "REASON", "NAMESPACE", "PLACE")


def tools(target: ServedCluster) -> list[Tool]:
    call = target.daemon.call

    def overview(given: Raw) -> Answer:
        status, info = call("scheduler.status"), call("daemon.info")
        usage, queue = call("nodes.usage"), call("queue.list")
        objects = ", ".join(f"{kind} {count:,}" for kind, count in sorted(info["objects"].items()) if count)
        cordoned = f" ({sum(usage['cordoned']):,} cordoned)" if any(usage["cordoned"]) else ""
        lines = [f"objects: {objects}", f"nodes: {status['nodes']:,}{cordoned}; pods with a node: {status['pods']:,}"]
        lines += [f"  {text}" for text in _zones(usage)]
        lines += [f"profiles (schedulerName): {', '.join(info['profiles'])}"]
        counts = {place: count for place, count in queue["counts"].items() if count}
        lines += [f"pods without a node: {sum(counts.values()):,}{_counted(counts)}"]
        reasons = Counter(pod["message"] or "(not tried yet)" for pod in queue["pods"])
        such = {pod["message"] or "(not tried yet)": pod["key"] for pod in reversed(queue["pods"])}
        lines += [f"  {count:,} x {text} Such as {such[text]}" for text, count in reasons.most_common(_GROUPS)]
        if len(reasons) > _GROUPS:
            lines += [f"  and {len(reasons) - _GROUPS:,} more reasons: see `queue`"]
        if status["paused"]:
            lines += ["scheduling is stopped by the debugger"]
        return Answer(lines=lines, data=OverviewData(sum(counts.values()), status["nodes"]))

    def listed(given: Raw) -> Answer:
        kind = kind_of_word(session_on(target, [], []), given["kind"])
        found = call(
            "objects.list",
            kind=kind.name,
            label_selector=given["labels"],
            field_selector=given["fields"],
            **where(kind, given["namespace"]),
        )["items"]
        namespaces = kind.namespaced and given["namespace"] is None
        around = RowContext(target.now(), _requested(call("nodes.usage")) if kind.name == "Node" else {})
        table = table_of(kind.name, found, around, wide=True, namespaces=namespaces)
        return _rows(table, kind.plural)

    def got(given: Raw) -> Answer:
        session = session_on(target, [], [])
        raw = get_object(session, kind_of_word(session, given["kind"]), given["name"], given["namespace"])
        notes = raw["metadata"].get("annotations") or {}
        raw["metadata"]["annotations"] = {key: text for key, text in notes.items() if key != _LAST_APPLIED}
        return Answer.of_text(documents.as_yaml(raw))

    def described(given: Raw) -> Answer:
        words = ["describe", one_word("kind", given["kind"]), one_word("name", given["name"])]
        return Answer.of_text(run(target, [*words, "-n", given["namespace"]]))

    def events(given: Raw) -> Answer:
        about, namespace = given["about"], given["namespace"]
        if about and "/" not in about:
            raise ToolError(f'about "{about}": KIND/NAME is expected, such as pod/web-0')
        if about:
            word, _, name = about.partition("/")
            kind = kind_of_word(session_on(target, [], []), word)
            about, namespace = f"{kind.name}/{name}", namespace if kind.namespaced else None
        found = call("events.list", **{"for": about, "namespace": namespace})["events"]
        found = [event for event in reversed(found) if given["type"] in (None, event["type"])]
        return _rows(events_table(found, target.now(), namespaces=True), "events, the newest first")

    def queue(given: Raw) -> Answer:
        if given["pod"]:
            return Answer.of_text(run(target, ["queue", "pod", pod_key(given["pod"], "default")]))
        answer = call("queue.list", place=given["place"])
        counts = {place: count for place, count in answer["counts"].items() if count}
        found = _rows(queue_table(answer["pods"]), "pods")
        return Answer(f"by place: {_summed(counts) or 'none'}\n{found.head}", found.lines, "pods")

    def decisions(given: Raw) -> Answer:
        pod = pod_key(given["pod"], "default") if given["pod"] else None
        found = call("scheduler.decisions", pod=pod, limit=100_000)
        table = decisions_table(list(reversed(found)), target.now())
        placed = sum(1 for one in found if one["node"])
        rows = _rows(table, "attempts, the newest first")
        return Answer(f"{placed:,} placed, {len(found) - placed:,} not\n{rows.head}", rows.lines, rows.rows)

    kind = Param("kind", "string", doc="a kind: pods, nodes, deployments, pvc, ...")
    name = Param("name", "string", doc="the object's name")
    labels = Param("labels", "string", False, doc="a label selector: app=web,tier!=db")
    fields = Param("fields", "string", False, doc="a field selector: status.phase=Pending,spec.nodeName=n1")
    about = Param("about", "string", False, doc="KIND/NAME, such as pod/web-0")
    of_type = Param("type", "string", False, doc="limit to this type", choices=("Normal", "Warning"))
    place = Param("place", "string", False, doc="limit to this place in the queue", choices=PLACES)
    pod = Param("pod", "string", False, doc="namespace/name of one pod")
    return [
        Tool(
            "overview",
            "Summarise the cluster: numbers of objects, requests by zone, pending pods by reason. Begin here.",
            (),
            overview,
            data=OverviewData,
        ),
        Tool(
            "list",
            "List the objects of a kind: counts by status, node and namespace, then a line for each.",
            (kind, _EVERYWHERE, labels, fields),
            listed,
            limit=30,
        ),
        Tool("get", "Return one object as YAML.", (kind, name, NAMESPACE), got),
        Tool(
            "describe",
            "Describe one object with its events; for a node, also its pods and their requests.",
            (kind, name, NAMESPACE),
            described,
        ),
        Tool("events", "List events, the newest first.", (about, _EVERYWHERE, of_type), events, limit=30),
        Tool(
            "queue",
            "List pods without a node with their place in the scheduling queue; for one pod, its moves in the queue.",
            (place, pod),
            queue,
            limit=30,
        ),
        Tool(
            "decisions",
            "List the scheduler's latest attempts: the selected node, the number of feasible nodes, the margin of "
            "the score.",
            (pod,),
            decisions,
            limit=30,
        ),
    ]


def _rows(table: Table, rows: str) -> Answer:
    """Return the table with its headers on every page, preceded by counts of the values in some columns."""
    head = "".join(
        f"by {header.lower()}: {_summed(counts)}\n"
        for place, header in enumerate(table.headers)
        if header in _GROUPED and (counts := Counter(row[place] for row in table.rows))
    )
    header, _, text = render(table, TerminalStyle()).partition("\n")
    above = f"{rows}: {len(table.rows):,}\n{head if len(table.rows) > 1 else ''}{header}\n"
    return Answer(above, text.splitlines(), rows)


def _summed(counts: Mapping[str, int]) -> str:
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    more = f" and {len(ordered) - _GROUPS:,} others" if len(ordered) > _GROUPS else ""
    return ", ".join(f"{name or '(none)'} {count:,}" for name, count in ordered[:_GROUPS]) + more


def _counted(counts: Mapping[str, int]) -> str:
    return f" ({_summed(counts)})" if counts else ""


def _requested(usage: Raw) -> dict[str, dict[str, int]]:
    """Return the sum of the requests on each node, by node name."""
    return {
        node: {"pods": usage["pods"][place], **{name: amounts[place] for name, amounts in usage["requested"].items()}}
        for place, node in enumerate(usage["nodes"])
    }


def _zones(usage: Raw) -> Iterable[str]:
    """Yield the requested share of each resource, for all nodes together and for each zone."""
    zones: Sequence[str] = usage["zones"]
    for zone in ("", *sorted(set(zones))) if len(set(zones)) > 1 else ("",):
        at = [place for place, here in enumerate(zones) if not zone or here == zone]
        parts = []
        for resource, requested in usage["requested"].items():
            whole = sum(usage["allocatable"][resource][place] for place in at)
            if whole:
                parts.append(f"{resource} {sum(requested[place] for place in at) / whole:.0%}")
        yield f"{f'zone {zone}' if zone else 'all'}, {len(at):,} nodes: requested {', '.join(parts) or 'nothing'}"
