"""What to suggest: proposals of the plugins, each tried on the fork; one that does not place the pod is left out. What
preemption asks for was tried by the attempt that is explained.

A proposal that nothing here can carry out (an out-of-tree plugin's reason, say) is not a suggestion; its sentence is
passed on as untried.
"""

from collections.abc import Iterable
from typing import Final

from kschedd.api.pods import Pod
from kschedd.explain.answers import Command, Suggestion
from kschedd.explain.remedies import Proposal
from kschedd.explain.trial import TrialResult, passes, try_changes, try_node
from kschedd.framework.changes import add_node
from kschedd.scheduling.attempt.scheduler import Scheduler
from kschedd.scheduling.nominations.counted import Nominated

_ENOUGH: Final = 3  # that work
_MOST_TRIALS: Final = 5


def missing_node(scheduler: Scheduler, pod: Pod, name: str) -> list[Suggestion]:
    """Of a pod whose spec.nodeName names no node: that there were one, as the largest of those that there are."""
    nodes = [node for node in scheduler.cluster.table.nodes if node is not None]
    like = max(nodes, key=lambda node: (node.allocatable.get("cpu", 0), node.name), default=None)
    change = add_node(name, like)
    result = try_node(scheduler, pod, name, change)
    if result is None:
        return []
    return [_told(Proposal(f"there were a node {name}", (name,), (change,)), result, stored=True)]


def suggestions(
    scheduler: Scheduler,
    pod: Pod,
    nominated: Nominated,
    proposed: Iterable[Proposal],
    *,
    stored: bool,
    node: str = "",
) -> tuple[list[Suggestion], list[str]]:
    """Those that work, and the sentences of those that were not tried. Both in the order of the proposals.

    `node`: what works is what has this node pass, wherever the pod would then go.
    """
    found: list[Suggestion] = []
    untried: list[str] = []
    done: list[set[tuple[str, str]]] = []
    for proposal in proposed:
        if proposal.changes is None:
            untried.append(proposal.sentence)
            continue
        if len(found) >= _ENOUGH or len(done) >= _MOST_TRIALS:
            break
        commands = {(change.command, change.input) for change in proposal.changes}
        if commands in done:
            continue  # a longer sentence for the same
        done.append(commands)
        if node and not passes(scheduler, pod, nominated, proposal.changes, node):
            continue
        result = proposal.result or try_changes(scheduler, pod, nominated, proposal.changes)
        if result is None:
            continue
        found.append(_told(proposal, result, stored=stored))
    return found, untried


def _told(proposal: Proposal, result: TrialResult, *, stored: bool) -> Suggestion:
    changes = proposal.changes or ()
    shown = stored or not any(change.of_pod for change in changes)
    commands = [Command(change.command, change.input) for change in changes] if shown else []
    return Suggestion(proposal.sentence, list(proposal.nodes), commands, result.node, list(result.displaced))
