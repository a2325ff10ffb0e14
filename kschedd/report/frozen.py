"""The answers of methods in a report's file, which its views read as the page of a daemon reads those of the daemon.

Answers about decisions contain only the fields that the views read.
"""

from collections.abc import Iterator
from typing import Any

from kschedd.answers import plain
from kschedd.api.text.times import stamp
from kschedd.page.files import Answers
from kschedd.report.decisions import Decision
from kschedd.report.history import history
from kschedd.report.model import Checked, Report
from kschedd.report.page_parts import lasting


def answers_of(report: Report) -> Answers:
    """Return the answers by method, each with the parameters that identify the answer."""
    at_end = report.at_end
    decisions = report.decisions.values()
    found: dict[str, list[tuple[dict[str, Any], Any]]] = {
        "nodes.usage": [({}, at_end.usage)],
        "nodes.history": [
            ({}, history(report.columns, report.groups, report.maps, report.by_column, report.decisions))
        ],
        "objects.list": [
            (
                {"kind": "Pod", "field_selector": f"spec.nodeName={node}"},
                {"items": [_listed(pod.key, pod.phase) for pod in pods]},
            )
            for node, pods in at_end.pods.items()
        ],
        "queue.list": [
            ({"place": place}, {"counts": at_end.counts, "pods": [pod for pod in at_end.queued if pod.place == place]})
            for place in at_end.counts
        ],
        "waiting.list": [({}, at_end.waiting)],
        "causes.pending": [({}, at_end.pending)],
        "causes.explain": [(plain(each.workload), each) for each in at_end.diagnoses],
        "scheduler.decisions": [({}, [_decision(report, each) for each in decisions])],
        "scheduler.explain": [
            *(({"pod": each.pod, "attempt": each.attempt}, _explained(report, each)) for each in decisions),
            *(({"pod": each.pod}, each) for each in at_end.explanations),
        ],
        **({} if report.checked is None else _fork(report.checked)),
    }
    return {method: [(params, plain(answer)) for params, answer in answers] for method, answers in found.items()}


def _listed(key: str, phase: str) -> dict[str, Any]:
    namespace, _, name = key.partition("/")
    return {"metadata": {"namespace": namespace, "name": name}, "status": {"phase": phase}}


def _decision(report: Report, each: Decision) -> dict[str, Any]:
    return {
        "time": stamp(report.columns.start_s + each.time_s),
        "pod": each.pod,
        "attempt": each.attempt,
        "node": each.node or None,
        "feasible": each.feasible,
        "score": each.score,
        "message": each.message,
    }


def _explained(report: Report, each: Decision) -> dict[str, Any]:
    steps = () if each.funnel is None else each.funnel.steps
    victims = {"node": each.nominated, "victims": each.victims}
    weights = {} if report.scores is None else dict(zip(report.scores.plugins, report.scores.weights, strict=True))
    return {
        "pod": each.pod,
        "node": each.node or None,
        "message": each.message,
        "notes": [*_notes(each)],
        "preemption": victims if each.victims else None,
        "search": {"nodes": 0 if each.funnel is None else each.funnel.nodes, "feasible": each.feasible},
        "funnel": [
            {
                "plugin": step.what,
                "rejected": step.lost,
                "left": step.left,
                "reasons": [{"reason": reason, "count": count} for count, reason in step.reasons],
            }
            for step in steps
        ],
        "totals": {node.node: node.total for node in each.best},
        "scores": {
            plugin: {node.node: {"weighted": node.scores[n]} for node in each.best}
            for n, plugin in enumerate(each.plugins)
        },
        "weights": {plugin: weights.get(plugin, 1) for plugin in each.plugins},
    }


def _notes(each: Decision) -> Iterator[str]:
    if each.waited_s is not None:
        yield f"waited {lasting(each.waited_s)}"
    if each.took_s is not None:
        yield f"took {each.took_s * 1000:,.2f} ms"
    if each.node:
        ties = f"; {each.ties - 1} more have it" if each.ties > 1 else ""
        score = "" if each.score is None else f", with the score {each.score:,}{ties}"
        yield f"one of {each.feasible:,} feasible nodes{score}"
    if each.nominated:
        yield f"nominated to {each.nominated}"


def _fork(checked: Checked) -> dict[str, list[tuple[dict[str, Any], Any]]]:
    """Return the answers about the copy of the cluster in which `check` applied the manifests."""
    pods = []
    for each in checked.changes:
        namespace, _, name = each.pod.partition("/")
        pods.append(
            {
                "sign": each.sign,
                "change": each.change,
                "namespace": namespace,
                "name": name,
                "node": each.node or None,
                "to": each.to or None,
                "why": each.cause,
            }
        )
    usage = [{"resource": name, "before": before, "after": after} for name, before, after in checked.usage]
    fork = {"name": "check", "user": "", "writes": checked.applied, "pending": len(checked.unplaced)}
    diff = {"pods": pods, "nodes": [], "objects": [], "config": [], "usage": usage}
    return {"fork.list": [({}, [fork])], "fork.diff": [({"fork": "check"}, diff)]}
