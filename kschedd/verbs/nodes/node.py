"""node: add, stop, start and initialize nodes, simulate pressure; list zones, and pods that will be evicted."""

import argparse
from collections.abc import Mapping
from typing import Any, Final

from kschedd.api.simulation.annotations import PRESSURES
from kschedd.api.text.similar import allowed_names
from kschedd.printing import documents
from kschedd.printing.columns.ages import seconds_of, span
from kschedd.printing.terminal.tables import Table, render
from kschedd.service.errors import RpcError
from kschedd.verbs.command_line.grammar import (
    UsageError,
    VerbParser,
    output_flag,
    output_of,
    verb,
    whole_number,
)
from kschedd.verbs.command_line.session import VerbSession
from kschedd.verbs.command_line.targets import with_near_name
from kschedd.verbs.nodes.nodes import NODE, each_node, node_names

CHANGES: Final = {"stop": "stopped", "start": "started", "initialize": "initialized"}
ADD, PRESSURE, ZONES, LEAVING = "add", "pressure", "zones", "leaving"
WORDS: Final = (ADD, *CHANGES, PRESSURE, ZONES, LEAVING)
SWITCH: Final = ("on", "off")
_FORMS: Final = ("table", "json", "yaml")
_NONE: Final = "<none>"


def _words(words: VerbParser) -> None:
    words.add_argument(
        "what",
        nargs="*",
        metavar="COMMAND",
        help="add NODE; stop, start or initialize NODE...; pressure NODE... memory|disk|pid [on|off]; zones (states, "
        "and what happens next to nodes); leaving (pods that will be evicted)",
    )
    words.add_argument("-l", "--selector", metavar="LABELS", help="nodes with these labels, such as a zone")
    words.add_argument("--all", action="store_true", help="all nodes")
    words.add_argument("--count", type=whole_number, metavar="N", help="number of nodes to add (1)")
    words.add_argument(
        "--prefix", metavar="NAME", help="name prefix of added nodes (default: the name of the copied node)"
    )
    output_flag(words, _FORMS)


@verb(
    "node",
    "Add nodes, stop and start kubelets, simulate node pressure; show zones and pods that will leave.",
    _words,
    examples=(
        "node add node-a --count 20",
        "node stop node-a",
        "node stop -l topology.kubernetes.io/zone=zone-a",
        "node start --all",
        "node pressure node-a memory",
        "node pressure node-a memory off",
        "node zones",
        "node leaving",
    ),
    completes="kubelet",
)
def node(session: VerbSession, options: argparse.Namespace) -> int:
    if not options.what:
        raise UsageError(f"a command is required: {', '.join(WORDS)}", "node")
    word, names = options.what[0], options.what[1:]
    form = output_of(options.output, _FORMS).form
    if word == ADD:
        return _add(session, options, names)
    if options.count is not None or options.prefix is not None:
        raise UsageError("--count and --prefix require `node add NODE`", "node")
    if word in CHANGES:
        done = CHANGES[word]
        named = node_names(session, options, names)
        failed = each_node(
            session,
            named,
            lambda name: session.daemon.call(f"nodes.{word}", name=name),
            lambda changed: done if changed else f"already {done}",
        )
        if named and not failed:
            session.hint(_next_step(session, word, named))
        return failed
    if word == PRESSURE:
        return _pressure(session, options, names)
    if word not in WORDS:
        hint = (
            "; `delete node NAME` deletes nodes" if word in ("delete", "remove", "rm") else allowed_names(word, WORDS)
        )
        raise UsageError(f'node: unknown command "{word}"{hint}', "node")
    if names or options.selector or options.all:
        raise UsageError(f"node {word} accepts no names", "node")
    answer = session.daemon.call(f"nodes.{word}")
    if form == "json":
        session.write(documents.as_json(answer))
    elif form == "yaml":
        session.write(documents.as_yaml(answer))
    elif word == ZONES:
        _write_zones(session, answer)
    else:
        _write_leaving(session, answer)
    return 0


def _add(session: VerbSession, options: argparse.Namespace, names: list[str]) -> int:
    """Create nodes like an existing node."""
    if options.selector or options.all or len(names) != 1:
        raise UsageError("node add requires the name of one node to copy; other nodes: apply -f NODE.yaml", "node")
    (like,) = node_names(session, options, names)
    try:
        added = session.daemon.call("nodes.add", like=like, count=options.count or 1, prefix=options.prefix)
    except RpcError as error:
        session.error(str(with_near_name(session, error, NODE, like, None)))
        return 1
    for name in added:
        session.write(f"node/{name} created\n")
    return 0


def _next_step(session: VerbSession, word: str, names: list[str]) -> str:
    """Return a line about the next change of these nodes, with the command that shows it."""
    if word == "stop":
        try:
            found = session.daemon.call("nodes.zones")["nodes"]
        except RpcError as without:  # a cluster without controllers
            return f"Pods stay on the node: {without}"
        upcoming = [each for each in found if each["node"] in names]
        times = [_ahead(session, each["at"]) for each in upcoming if each["next"] == "Unknown"]
        soon = f"in {times[0]}" if times else "after the grace period"
        return (
            f"NotReady {soon}; then pods leave when their tolerations end (after 5m by default). "
            f"`{session.program}node zones` shows what comes next, `{session.program}node leaving` the pods."
        )
    return f"`{session.program}get nodes` shows the nodes' state; pending pods that fit are scheduled at once."


def _pressure(session: VerbSession, options: argparse.Namespace, words: list[str]) -> int:
    """Start or end simulated pressure on nodes."""
    on = words[-1:] != ["off"]
    rest = words[:-1] if words[-1:] in (["on"], ["off"]) else words
    *names, what = rest or [""]
    if what not in PRESSURES:
        if not names:
            why = f"node {PRESSURE} requires a node and {', '.join(PRESSURES)}, such as: node {PRESSURE} node-a memory"
            raise UsageError(why, "node")
        raise UsageError(f'no pressure "{what}"{allowed_names(what, PRESSURES)}', "node")

    def result(changed: bool) -> str:
        if on:
            return f"{'is now' if changed else 'is already'} short of {what}"
        return f"is {'no longer' if changed else 'not'} short of {what}"

    failed = each_node(
        session,
        node_names(session, options, names),
        lambda name: session.daemon.call("nodes.pressure", name=name, pressure=what, on=on),
        result,
    )
    if on and not failed:
        session.hint(
            f"A taint keeps new pods away, and the kubelet evicts pods. `{session.program}events` shows evictions, "
            f"`{session.program}node pressure {' '.join(names)} {what} off` ends the pressure."
        )
    return failed


def _write_zones(session: VerbSession, answer: Mapping[str, Any]) -> None:
    if not answer["zones"]:
        session.write_error("No resources found.\n")
        return
    rows: list[tuple[str, ...]] = []
    for zone in answer["zones"]:
        size = zone["ready"] + zone["not_ready"]
        waiting = ",".join(zone["waiting"][:3]) + (f",... ({len(zone['waiting'])})" if len(zone["waiting"]) > 3 else "")
        rows.append(
            (
                zone["zone"] or _NONE,
                zone["region"] or _NONE,
                zone["state"],
                f"{zone['ready']}/{size}",
                f"{zone['rate']:g}/s",
                waiting or _NONE,
            )
        )
    heads = ("ZONE", "REGION", "STATE", "READY", "TAINT RATE", "WAITING FOR A TAINT")
    session.write(render(Table(heads, tuple(rows)), session.style))
    if answer["nodes"]:
        upcoming: list[tuple[str, ...]] = []
        for each in answer["nodes"]:
            upcoming.append((each["node"], each["zone"] or _NONE, each["next"], _ahead(session, each["at"])))
        session.write("\n" + render(Table(("NODE", "ZONE", "NEXT", "IN"), tuple(upcoming)), session.style))


def _write_leaving(session: VerbSession, answer: Mapping[str, Any]) -> None:
    if not answer["pods"]:
        session.write_error("No pod is being evicted. Pods of a stopped node are listed once it is NotReady.\n")
        return
    rows: list[tuple[str, ...]] = []
    for pod in answer["pods"]:
        since = span(max(0.0, session.cluster_now() - (seconds_of(pod["since"]) or 0.0)))
        key = f"{pod['namespace']}/{pod['name']}"
        rows.append((key, pod["node"], _ahead(session, pod["at"]), since, ",".join(pod["taints"])))
    session.write(render(Table(("POD", "NODE", "LEAVES IN", "SINCE", "TAINTS"), tuple(rows)), session.style))


def _ahead(session: VerbSession, time: str | None) -> str:
    """Return the duration from now until `time`, as text."""
    at = seconds_of(time)
    return "never" if at is None else span(max(0.0, at - session.cluster_now()))
