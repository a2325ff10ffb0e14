"""Tools that change the cluster. The tools are served only with `mcp --allow-writes`."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from kschedd.assistants.command import WRITING, ServedCluster, checked_words, one_word, run, words_in
from kschedd.assistants.results import ChangedData
from kschedd.assistants.tool import Answer, Tool
from kschedd.assistants.trying import COMMAND, INPUT
from kschedd.service.params import Param

Raw = Mapping[str, Any]

_KIND: Final = Param("kind", "string", doc="a kind: pod, node, deployment, ...")
_NAME: Final = Param("name", "string", doc="the object's name")
_NAMESPACE: Final = Param("namespace", "string", False, "default", "the object's namespace")


def tools(target: ServedCluster) -> list[Tool]:
    def done(words: Sequence[str], given: str = "") -> Answer:
        answer = run(target, checked_words(words, given, WRITING), given)
        target.run_to_rest()
        counts = target.daemon.call("queue.list", limit=0)["counts"]
        pending = ", ".join(f"{place} {count:,}" for place, count in counts.items() if count) or "none"
        return Answer.of_text(f"{answer}pods without a node now: {pending}", ChangedData(sum(counts.values())))

    def apply(given: Raw) -> Answer:
        return done(["apply", "-n", given["namespace"]], given["manifests"])

    def delete(given: Raw) -> Answer:
        return done(["delete", *_named(given), "-n", given["namespace"]])

    def scale(given: Raw) -> Answer:
        return done(["scale", *_named(given), "-n", given["namespace"], "--replicas", str(given["replicas"])])

    def cordon(given: Raw) -> Answer:
        return done(["cordon" if given["on"] else "uncordon", one_word("node", given["node"])])

    def change(given: Raw) -> Answer:
        return done(words_in(given["command"]), given["input"])

    return [
        Tool(
            "apply",
            "Create or change objects from manifests. Use `check` first to find out whether they fit.",
            (Param("manifests", "string", doc="YAML or JSON text"), _NAMESPACE),
            apply,
            writes=True,
            data=ChangedData,
        ),
        Tool("delete", "Delete one object.", (_KIND, _NAME, _NAMESPACE), delete, writes=True, data=ChangedData),
        Tool(
            "scale",
            "Set the number of replicas of a workload.",
            (
                _KIND,
                _NAME,
                _NAMESPACE,
                Param("replicas", "integer", doc="number of pods", minimum=0, maximum=2**31 - 1),
            ),
            scale,
            writes=True,
            data=ChangedData,
        ),
        Tool(
            "cordon",
            "Cordon a node, so that no more pods are scheduled on it, or uncordon it.",
            (Param("node", "string", doc="the object's name"), Param("on", "boolean", False, True, "false: uncordon")),
            cordon,
            writes=True,
            data=ChangedData,
        ),
        Tool(
            "change",
            "Run a command, such as a step of a suggestion of `explain`. Use `plan` first to see its effects.",
            (COMMAND, INPUT),
            change,
            writes=True,
            data=ChangedData,
        ),
    ]


def _named(given: Raw) -> list[str]:
    return [one_word("kind", given["kind"]), one_word("name", given["name"])]
