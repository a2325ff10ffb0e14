"""Comparison of an explanation with the message that the cluster's own scheduler wrote for a pod of a dump."""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from kschedd.api.nodes import Node
from kschedd.api.pods import Pod
from kschedd.api.text.times import stamp
from kschedd.config.versions.kube_versions import KubernetesVersion
from kschedd.dumps.dumped_condition import DumpedCondition, dumped_condition
from kschedd.explain.answers import Dumped
from kschedd.printing.columns.ages import span

_AVAILABLE: Final = re.compile(r"0/(\d+) nodes are available")
_PREEMPTION: Final = re.compile(r"\.? (?:no new claims [a-z ]+, |still not schedulable, )?preemption: .*", re.DOTALL)
_LONGEST_ATTEMPT_S: Final = 60.0  # maximum age of a current condition, relative to the latest time in the dump


def dumped_message(
    pod: Pod, nodes: Sequence[Node], message: str, *, gated: bool, version: KubernetesVersion
) -> Dumped | None:
    """Return the dump's message and the comparison; None if the pod was not pending in a dump.

    `message` is the explanation's message without scheduling gates.
    """
    condition = dumped_condition(pod)
    if condition is None:
        return None
    gated_there = condition.reason == "SchedulingGated"
    same = gated if gated_there else not gated and of_nodes(condition.message) == of_nodes(message)
    why = [] if same else list(_why(condition, nodes, message, pod.scheduler_name, version))
    since, dumped = _stamp(condition.since), _stamp(condition.dumped)
    return Dumped(condition.reason, condition.message, since, dumped, same, why)


def _why(
    condition: DumpedCondition, nodes: Sequence[Node], message: str, profile: str, version: KubernetesVersion
) -> Iterator[str]:
    if condition.reason == "SchedulingGated":  # and not gated here
        yield "it was gated there when that was written: no scheduler had tried it"
        return
    there, here = _AVAILABLE.search(condition.message), len(nodes)
    if there is not None and int(there[1]) != here:
        yield f"its scheduler counted {there[1]} nodes, the dump has {here}: nodes have changed, or the dump lacks some"
    if not message:
        yield "it fits here: its last attempt there was before a change that helps, or that scheduler has other rules"
    release = f"v{version.patch}"
    releases = sorted({_release(node) for node in nodes} - {"", release})
    if releases:
        yield (
            f"the cluster's nodes are {', '.join(releases)}, so its scheduler may be as well; what decides here is "
            f"{release} (--kube-version), whose rules and messages differ"
        )
    if condition.since is not None and condition.dumped is not None:
        age = condition.dumped - condition.since
        if age > _LONGEST_ATTEMPT_S:
            yield (
                f"the condition is False since {span(age)} before the dump: its message may be as old, and pods and "
                "nodes have changed since"
            )
    yield (
        f'a dump does not say how its scheduler is configured: here profile "{profile}" decides (--config FILE gives '
        "another)"
    )


def of_nodes(message: str) -> str:
    """Return the part of the message about nodes, without preemption."""
    return _PREEMPTION.sub("", message).rstrip(". ")


def _release(node: Node) -> str:
    info = node.status.get("nodeInfo")
    text = str(info.get("kubeletVersion") or "") if isinstance(info, dict) else ""
    return re.split("[-+]", text)[0]  # the version without a vendor's suffix


def _stamp(moment: float | None) -> str | None:
    return None if moment is None else stamp(moment)
