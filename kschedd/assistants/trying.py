"""Tools that try changes on a copy of the cluster and report the effects; the cluster itself does not change."""

import json
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

import attrs

from kschedd.api.manifests import ManifestReading, read_text
from kschedd.assistants.command import READING, WRITING, CommandFailed, ServedCluster, checked_words, run, words_in
from kschedd.assistants.results import CapacityData, CheckedData, NodesNeededData, PlannedData, ScenarioData
from kschedd.assistants.tool import Answer, Tool, ToolError
from kschedd.printing.reports import checking
from kschedd.printing.reports.forks import diff_text, without_place
from kschedd.printing.terminal.style import TerminalStyle
from kschedd.printing.terminal.tables import render
from kschedd.service.params import Param
from kschedd.verbs.scheduler.capacity import fits_table
from kschedd.verbs.scheduler.checking import check

Raw = Mapping[str, Any]

COMMAND: Final = Param("command", "string", doc="a command in kubectl's grammar: " + ", ".join(WRITING))
INPUT: Final = Param("input", "string", False, "", "the input of the command: the manifests of `apply`, or a patch")
MANIFESTS: Final = Param("manifests", "string|map[]", doc="YAML or JSON text, or an array of objects")
_STEPS: Final = Param(
    "steps",
    "map[]",
    doc='in order, each {"command": ..., "input": ...}: commands that `plan` accepts, reading commands (get, '
    "explain, expect, ...), and `advance 5m` and `rest [1h]`, which advance the time",
)
_NODES: Final = Param("nodes", "string|map[]", doc="manifests of available node shapes, in the format of `manifests`")
_TIMES: Final = ("advance", "rest")
_WITHIN_S: Final = 3600.0
_MOST_STEPS: Final = 100


def tools(target: ServedCluster) -> list[Tool]:
    call = target.daemon.call

    def plan(given: Raw) -> Answer:
        words = checked_words(words_in(given["command"]), given["input"], WRITING)
        with _fork(target) as fork:
            answer = run(target, words, given["input"], fork=fork)
            at_rest = call("fork.advance", fork=fork, seconds=None, limit_s=_WITHIN_S)["at_rest"]
            diff = call("fork.diff", fork=fork)
        lost = without_place(diff)
        lines = [f"tried on a copy: {f'pods without a place: {len(lost):,}' if lost else 'all pods have a place'}"]
        lines += [] if at_rest else ["work was left after an hour of virtual time"]
        lines += [*answer.splitlines(), *diff_text(diff, TerminalStyle(), len(diff["pods"])).splitlines()]
        return Answer(lines=lines, data=PlannedData(not lost, Counter(pod["change"] for pod in diff["pods"])))

    def checked(given: Raw) -> Answer:
        report = check(call, _reading(given["manifests"]), _WITHIN_S)
        data = CheckedData(report.fits and not report.errors, [pod.pod for pod in report.unplaced])
        return Answer.of_text(checking.as_text(report), data)

    def capacity(given: Raw) -> Answer:
        shapes = [{"manifest": raw} for raw in _raws(given["nodes"])]
        raws = _raws(given["manifests"])
        if not raws:
            raise ToolError("manifests: they contain no pods or workloads")
        found = call("capacity.pods", manifests=raws, together=given["together"], shapes=shapes)
        fits = {"+".join(spec["name"] for spec in each["specs"]): each["fits"] for each in found}
        return Answer.of_text(render(fits_table(found), TerminalStyle()), CapacityData(fits))

    def nodes_needed(given: Raw) -> Answer:
        shapes = [{"manifest": raw} for raw in _raws(given["nodes"])]
        found = call("capacity.nodes", manifests=_raws(given["manifests"]), shapes=shapes)
        if found["unplaced"]:
            lines = ["these pods stay pending with any number of these nodes:"]
            lines += [f"{pod['pod']}: {pod['why']}" for pod in found["unplaced"]]
        else:
            lines = [f"{each['count']} x {each['name']}" for each in found["nodes"] if each["count"]]
            lines = lines or ["no other node is needed"]
        return Answer(lines=lines, data=NodesNeededData({each["name"]: each["count"] for each in found["nodes"]}))

    def scenario(given: Raw) -> Answer:
        steps = [_read_step(number, step) for number, step in enumerate(given["steps"], 1)]
        if not 0 < len(steps) <= _MOST_STEPS:
            raise ToolError(f"steps: {len(steps)} were given; 1 to {_MOST_STEPS} are allowed")
        lines, failed = list[str](), list[int]()
        with _fork(target) as fork:
            for number, (words, text) in enumerate(steps, 1):
                lines.append(f"{number}. {shlex.join(words)}")
                try:
                    lines += [f"   {line}" for line in run(target, words, text, fork=fork).splitlines()]
                except CommandFailed as wrong:
                    failed.append(number)
                    lines += [f"   {line}" for line in f"FAILED: {wrong}".splitlines()]
        lines.append(f"failed: {', '.join(map(str, failed))}" if failed else "every step worked")
        return Answer(lines=lines, data=ScenarioData(failed))

    return [
        Tool(
            "plan",
            "Test a command on a copy of the cluster and report its effects: the nodes that pods would get, and "
            "pods that would be pending.",
            (COMMAND, INPUT),
            plan,
            data=PlannedData,
        ),
        Tool(
            "check",
            "Test on a copy whether these manifests fit: pods that stay pending with the smallest change that "
            "would schedule them, displaced pods, requests before and after.",
            (MANIFESTS,),
            checked,
            data=CheckedData,
        ),
        Tool(
            "capacity",
            "Count how many more pods of each of these specs fit, also with one more node of a shape.",
            (
                MANIFESTS,
                Param("together", "boolean", False, False, "count sets that contain one pod of each spec"),
                attrs.evolve(
                    _NODES, required=False, default="", doc="manifests of node shapes; one more node of each is tried"
                ),
            ),
            capacity,
            data=CapacityData,
        ),
        Tool(
            "nodes_needed",
            "Compute how many more nodes of some shapes are needed so that manifests, or the pending pods, fit.",
            (
                _NODES,
                attrs.evolve(
                    MANIFESTS, required=False, default="", doc="the workload that must fit; none: the pending pods"
                ),
            ),
            nodes_needed,
            data=NodesNeededData,
        ),
        Tool(
            "scenario",
            "Run commands one after the other on a copy of the cluster and return their output: what-if analysis "
            "in several steps, with virtual time and expectations (`expect pod web-0 on node n1 within 5m`).",
            (_STEPS,),
            scenario,
            data=ScenarioData,
        ),
    ]


@contextmanager
def _fork(target: ServedCluster) -> Iterator[str]:
    """Yield the name of a copy of the cluster; the copy is deleted at the end."""
    name = target.daemon.call("fork.create", what_if=True)["name"]
    try:
        yield name
    finally:
        target.daemon.call("fork.discard", fork=name)


def _read_step(number: int, step: Raw) -> tuple[list[str], str]:
    """Return the words and the input of a step. Raises ToolError."""
    command, text = step.get("command"), step.get("input") or ""
    if not isinstance(command, str) or not isinstance(text, str) or step.keys() - {"command", "input"}:
        raise ToolError(f'step {number}: {{"command": TEXT, "input": TEXT}} is expected, input only where it is read')
    try:
        words = words_in(command)
        if words[:1] in ([time] for time in _TIMES):
            return words, ""
        return checked_words(words, text, tuple(dict.fromkeys((*READING, *WRITING, *_TIMES)))), text
    except ToolError as wrong:
        raise ToolError(f"step {number}: {wrong}") from wrong


def _reading(manifests: Any) -> ManifestReading:
    if not isinstance(manifests, str):
        manifests = json.dumps({"apiVersion": "v1", "kind": "List", "items": manifests})
    return read_text(manifests, "manifests")


def _raws(manifests: Any) -> list[dict[str, Any]]:
    """Return the objects of manifests. Raises ToolError if a manifest cannot be read."""
    reading = _reading(manifests)
    if reading.errors:
        raise ToolError("; ".join(map(str, reading.errors)))
    return [dict(manifest.raw) for manifest in reading.manifests]
