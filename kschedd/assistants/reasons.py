"""Tools that explain decisions and suggest changes. Each suggested change was tested on a copy of the cluster."""

from collections.abc import Mapping
from typing import Any, Final

from kschedd.api.text.similar import did_you_mean
from kschedd.assistants.command import CommandFailed, ServedCluster, checked_words, run, session_on, words_in
from kschedd.assistants.results import ExpectedData, ExplainedData, SuggestedStep, Suggestion
from kschedd.assistants.tool import Answer, Tool, ToolError
from kschedd.printing.reports.explaining import explanation
from kschedd.printing.terminal.style import TerminalStyle
from kschedd.service.params import Param
from kschedd.verbs.scheduler.explain import call_about_pod

Raw = Mapping[str, Any]

_POD: Final = Param("pod", "string", doc="namespace/name, or a name in namespace default")
_TESTED: Final = "Suggestions, each tested on a copy of the cluster, the best first:\n"
_MOST: Final = 5


def tools(target: ServedCluster, *, writes: bool) -> list[Tool]:
    def explain(given: Raw) -> Answer:
        if given["attempt"]:
            return _blocked_node(target, _explained(target, given["pod"], attempt=given["attempt"]), "", writes=writes)
        return _blocked_node(target, _explained(target, given["pod"]), "", writes=writes)

    def why_not(given: Raw) -> Answer:
        node = given["node"]
        found = _explained(target, given["pod"])
        known = {verdict["node"] for verdict in found["verdicts"]} | set(found["totals"])
        if node not in known:
            hint = did_you_mean(node, known) or f"; there are {', '.join(sorted(known)[:8])}{' ...' * (len(known) > 8)}"
            raise ToolError(f'there is no node "{node}"{hint}')
        return _blocked_node(target, found, node, writes=writes)

    def expect(given: Raw) -> Answer:
        time = ["within", given["within"]] if given["within"] else []
        try:
            run(target, checked_words(["expect", *words_in(given["what"]), *time], "", ("expect",)))
        except CommandFailed as unmet:
            return Answer.of_text(f"not true\n{unmet}", ExpectedData(False))
        return Answer.of_text("true", ExpectedData(True))

    attempt = Param("attempt", "integer", False, doc="use the state at the pod's attempt with this number", minimum=1)
    return [
        Tool(
            "explain",
            "Explain why a pod has its node or is pending: the cause, changes with which all pods of its workload "
            "would be scheduled, rejected nodes by reason, scores.",
            (_POD, attempt),
            explain,
            data=ExplainedData,
        ),
        Tool(
            "why_not",
            "Explain why a pod is not on a given node: the result of each plugin; for a pending pod also the "
            "cause, and changes with which it would be scheduled.",
            (_POD, Param("node", "string", doc="name of the node")),
            why_not,
            data=ExplainedData,
        ),
        Tool(
            "expect",
            "Check whether a condition is true, or becomes true soon; if not, return the actual state and the "
            "reason. Examples: pod web-0 on node n1; nothing pending; 3 pods running -l app=web; max skew at most "
            "1 over zone for app=web.",
            (
                Param("what", "string", doc="the condition"),
                Param("within", "string", False, doc="the longest time to wait for the condition, such as 30s or 10m"),
            ),
            expect,
            data=ExpectedData,
        ),
    ]


def _explained(target: ServedCluster, pod: str, **params: Any) -> Raw:
    found: Raw = call_about_pod(session_on(target, [], []), pod, "default", "scheduler.explain", **params)
    return found


def _diagnosed(target: ServedCluster, pod: str) -> Raw:
    """Return the diagnosis of the pod's workload."""
    namespace, _, name = pod.rpartition("/")
    found: Raw = target.daemon.call("causes.explain", kind="Pod", name=name, namespace=namespace or "default")
    return found


def _blocked_node(target: ServedCluster, found: Raw, node: str, *, writes: bool) -> Answer:
    lines = explanation(found, TerminalStyle(), node=node, most=6).splitlines()
    data = {"pod": found["pod"], "node": found["node"], "would_be_on": found["chosen"]}
    if found["attempt"] or (found["node"] and found["node_exists"]):
        return Answer(lines=lines, data=ExplainedData(**data, suggestions=()))
    diagnosis = _diagnosed(target, found["pod"])
    suggestions = [_remedy(each) for each in diagnosis["remedies"][:_MOST]]
    helps = [line for each in suggestions for line in _lines(each)]
    if suggestions:
        how = "`change` does it" if writes else "`plan` shows its other effects; this server changes nothing"
        helps = [_TESTED.rstrip(), *helps, f"  ({how})"]
    more = {key: diagnosis[key] for key in ("workload", "cause", "also", "confidence")}
    causes = [f"cause: {each['message']} ({each['code']})" for each in (diagnosis["cause"], *diagnosis["also"])]
    # First come the causes, then the suggestions, then the rejections by plugin.
    return Answer(lines=[*causes, *helps, *lines], data=ExplainedData(**data, **more, suggestions=suggestions))


def _remedy(each: Raw) -> Suggestion:
    """Return a remedy as a suggestion.

    The suggestion contains its shell commands and, separate from them, their input (a here-document in the original).
    """
    steps = []
    for command in each["commands"]:
        line, _, given = str(command).partition("\n")
        words = line.removesuffix(" <<'EOF'").removeprefix("kschedd ")
        steps.append(SuggestedStep(words, given.removesuffix("\nEOF")))
    placed = f"then {each['scheduled']} of its workload's pods are scheduled"
    return Suggestion(each["summary"], placed, each["displaced"], steps)


def _lines(suggestion: Suggestion) -> list[str]:
    gone = suggestion.displaced
    more = f" and {len(gone) - 3:,} more" if len(gone) > 3 else ""
    displaced = f"; {', '.join(gone[:3])}{more} would be gone" if gone else ""
    lines = [f"- {suggestion.sentence}: {suggestion.placed}{displaced}"]
    for step in suggestion.steps:
        lines += [f"    command: {step.command}"]
        lines += [f"      input: {line}" for line in step.input.splitlines()]
    return lines
