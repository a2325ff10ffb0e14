"""Tools that say why, and what would help. Each change that they name has been tried on a copy of the cluster."""

from collections.abc import Mapping
from typing import Any, Final

from kschedd.assistants.command import CommandFailed, ServedCluster, checked_words, run, session_on, words_in
from kschedd.assistants.tool import Answer, Tool, ToolError
from kschedd.printing.reports.explaining import explanation
from kschedd.printing.terminal.style import TerminalStyle
from kschedd.service.params import Param
from kschedd.verbs.command_line.grammar import suggest
from kschedd.verbs.scheduler.explain import call_about_pod

Raw = Mapping[str, Any]

_POD: Final = Param("pod", "string", doc="namespace/name, or a name in the namespace default")
_TESTED: Final = "What would help; each was tried on a copy of the cluster, the first is the one to consider first:\n"
_MOST: Final = 5


def tools(target: ServedCluster, *, writes: bool) -> list[Tool]:
    def explain(given: Raw) -> Answer:
        if given["attempt"]:
            return _told(target, _explained(target, given["pod"], attempt=given["attempt"]), "", writes=writes)
        return _told(target, _explained(target, given["pod"]), "", writes=writes)

    def why_not(given: Raw) -> Answer:
        node = given["node"]
        found = _explained(target, given["pod"])
        known = {verdict["node"] for verdict in found["verdicts"]} | set(found["totals"])
        if node not in known:
            hint = suggest(node, known) or f"; there are {', '.join(sorted(known)[:8])}{' ...' * (len(known) > 8)}"
            raise ToolError(f'there is no node "{node}"{hint}')
        return _told(target, found, node, writes=writes)

    def expect(given: Raw) -> Answer:
        time = ["within", given["within"]] if given["within"] else []
        try:
            run(target, checked_words(["expect", *words_in(given["what"]), *time], "", ("expect",)))
        except CommandFailed as unmet:
            return Answer.of_text(f"it is not so\n{unmet}", {"met": False})
        return Answer.of_text("it is so", {"met": True})

    attempt = Param("attempt", "integer", False, doc="as things were at the pod's attempt of that number", minimum=1)
    return [
        Tool(
            "explain",
            "Why a pod is where it is, or pending: the cause, what would place all pods of its workload, nodes by what "
            "rejects them, scores.",
            (_POD, attempt),
            explain,
        ),
        Tool(
            "why_not",
            "Why a pod is not on one node: what each plugin says of it; of a pending pod also the cause, and what "
            "would place it.",
            (_POD, Param("node", "string", doc="the node's name")),
            why_not,
        ),
        Tool(
            "expect",
            "Whether something is so, or will be soon; if not, what is and why. Such as: pod web-0 on node n1; nothing "
            "pending; 3 pods running -l app=web; max skew at most 1 over zone for app=web.",
            (
                Param("what", "string", doc="what is expected"),
                Param("within", "string", False, doc="wait so long for it, such as 30s or 10m"),
            ),
            expect,
        ),
    ]


def _explained(target: ServedCluster, pod: str, **params: Any) -> Raw:
    found: Raw = call_about_pod(session_on(target, [], []), pod, "default", "scheduler.explain", **params)
    return found


def _diagnosed(target: ServedCluster, pod: str) -> Raw:
    """The diagnosis of the pod's workload."""
    namespace, _, name = pod.rpartition("/")
    found: Raw = target.daemon.call("causes.explain", kind="Pod", name=name, namespace=namespace or "default")
    return found


def _told(target: ServedCluster, found: Raw, node: str, *, writes: bool) -> Answer:
    lines = explanation(found, TerminalStyle(), node=node, most=6).splitlines()
    data = {"pod": found["pod"], "node": found["node"], "would_be_on": found["chosen"]}
    if found["attempt"] or (found["node"] and found["node_exists"]):
        return Answer(lines=lines, data={**data, "suggestions": []})
    diagnosis = _diagnosed(target, found["pod"])
    suggestions = [_remedy(each) for each in diagnosis["remedies"][:_MOST]]
    helps = [line for each in suggestions for line in _lines(each)]
    if suggestions:
        how = "`change` does it" if writes else "`plan` shows what else it would do; nothing is changed here"
        helps = [_TESTED.rstrip(), *helps, f"  ({how})"]
    data |= {"suggestions": suggestions, **{key: diagnosis[key] for key in ("workload", "cause", "also", "confidence")}}
    causes = [f"cause: {each['message']} ({each['code']})" for each in (diagnosis["cause"], *diagnosis["also"])]
    # The cause first, then what would help, then who rejects what.
    return Answer(lines=[*causes, *helps, *lines], data=data)


def _remedy(each: Raw) -> dict[str, Any]:
    """A remedy likewise. Its commands are for a shell, with what they read as a here-document."""
    steps = []
    for command in each["commands"]:
        line, _, given = str(command).partition("\n")
        words = line.removesuffix(" <<'EOF'").removeprefix("kschedd ")
        steps.append({"command": words, "input": given.removesuffix("\nEOF")})
    return {
        "sentence": each["summary"],
        "placed": f"then {each['scheduled']} of its workload's pods are scheduled",
        "displaced": each["displaced"],
        "steps": steps,
    }


def _lines(suggestion: Raw) -> list[str]:
    gone = suggestion["displaced"]
    more = f" and {len(gone) - 3:,} more" if len(gone) > 3 else ""
    displaced = f"; {', '.join(gone[:3])}{more} would be gone" if gone else ""
    lines = [f"- {suggestion['sentence']}: {suggestion['placed']}{displaced}"]
    for step in suggestion["steps"]:
        lines += [f"    command: {step['command']}"]
        lines += [f"      input: {line}" for line in step["input"].splitlines()]
    return lines
