"""What would have to change for a pod to fit: plain sentences, each naming everything that one node lacks.

For every node that was rejected each rejecting plugin is asked for the smallest change that would content it; the
sentence joins them with "and". The nodes that need least come first; nodes that need the same are named together.
What would content a plugin it says itself (`kschedd.framework.remedies`); where it does not, its reason is repeated.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, cast

import attrs

from kschedd.explain.judging import NodeVerdict
from kschedd.explain.trial import TrialResult
from kschedd.framework.changes import Change, delete_pods
from kschedd.framework.interface import Plugin
from kschedd.framework.remedies import Remedy, RemedyContext, RemedyPlugin
from kschedd.framework.status import Status

_MOST: Final = 8  # proposals
_MOST_NODES: Final = 256  # looked at closely
_NAMED_NODES: Final = 4


@attrs.frozen(eq=False)
class Proposal:
    """`sentence` completes "it would fit if"; `changes` None: nothing here does all of what it says.

    `result`: what comes of it, where the attempt that is explained has shown that.
    """

    sentence: str
    nodes: tuple[str, ...] = ()  # that need this; the changes are those of the first
    changes: tuple[Change, ...] | None = None
    result: TrialResult | None = None


def proposals(
    plugins: Mapping[str, Plugin],
    context: RemedyContext,
    gated: Status | None,
    status: Status | None,
    verdicts: list[NodeVerdict],
    *,
    fits: bool,
) -> list[Proposal]:
    """The least change first; none if the pod fits as things are."""
    always = list(_gate(plugins, context, gated)) if gated is not None else []
    if status is not None:
        return [_proposal([*always, *_of(plugins, context, None, status)])]
    if fits:
        return [_proposal(always)] if always else []
    if not verdicts:
        return [_proposal([*always, Remedy("the cluster had a node for it", 1)])]
    found: dict[str, tuple[float, Proposal, list[str]]] = {}
    for verdict in sorted(verdicts, key=lambda verdict: len(verdict.rejections))[:_MOST_NODES]:
        changes = list(always)
        if not verdict.nominated:
            for rejection in verdict.rejections:
                changes += _of(plugins, context, verdict.row, rejection)
        else:  # without them it would fit
            waiting = ", ".join(other.key for other in verdict.nominated)
            text = f"{waiting} did not wait for {context.name(verdict.row)}"
            changes.append(Remedy(text, 1, delete_pods(verdict.nominated)))
        cost = sum({change.text: change.cost for change in changes}.values())
        proposal = _proposal(changes)
        _, _, nodes = found.setdefault(proposal.sentence, (cost, proposal, []))
        nodes.append(context.name(verdict.row))
    ordered = sorted(found.values(), key=lambda item: item[0])
    return [
        attrs.evolve(proposal, sentence=_with_nodes(proposal.sentence, nodes), nodes=tuple(nodes))
        for _, proposal, nodes in ordered[:_MOST]
    ]


def _proposal(remedies: Iterable[Remedy]) -> Proposal:
    """What has to change together. A change that two plugins ask for is made once."""
    different = {remedy.text: remedy for remedy in remedies}
    sentence = ", and ".join(different)
    if not all(remedy.changes for remedy in different.values()):
        return Proposal(sentence)
    changes = {(c.command, c.input): c for remedy in different.values() for c in remedy.changes}
    return Proposal(sentence, (), tuple(changes.values()))


def _with_nodes(text: str, nodes: list[str]) -> str:
    if len(nodes) == 1 and re.search(rf"(?<![\w.=-]){re.escape(nodes[0])}(?![\w-])", text):
        return text  # the sentence names it itself
    named = ", ".join(nodes[:_NAMED_NODES])
    more = f" and {len(nodes) - _NAMED_NODES} more" if len(nodes) > _NAMED_NODES else ""
    return f"{text} ({named}{more})"


# -- where a plugin knows nothing better -----------------------------------------------------------------------------


def _of(plugins: Mapping[str, Plugin], context: RemedyContext, row: int | None, status: Status) -> Sequence[Remedy]:
    """What the plugin that rejected the pod says would content it."""
    plugin = plugins.get(status.plugin)
    changes: Sequence[Remedy] = ()
    if plugin is not None and hasattr(plugin, "remedies"):
        changes = cast(RemedyPlugin, plugin).remedies(context, row, status)
    return changes or [_repeated(context, row, status)]


def _repeated(context: RemedyContext, row: int | None, status: Status) -> Remedy:
    said = status.message or status.code.label
    if row is not None:
        return Remedy(f'{status.plugin} did not say "{said}" of {context.name(row)}', 4)
    narrowed = re.fullmatch(r"node\(s\) didn't satisfy plugin\(?s?\)? \[?([^]]*)\]?(?: simultaneously)?", said)
    if narrowed is not None:
        return Remedy(f"{narrowed[1]} left it a node that exists", 1)
    return Remedy(f'{status.plugin} did not say "{said}"', 2)


def _gate(plugins: Mapping[str, Plugin], context: RemedyContext, status: Status) -> Sequence[Remedy]:
    plugin = plugins.get(status.plugin)
    if plugin is not None and hasattr(plugin, "remedies"):
        return cast(RemedyPlugin, plugin).remedies(context, None, status) or [_held_back(status)]
    return [_held_back(status)]


def _held_back(status: Status) -> Remedy:
    return Remedy(f'{status.plugin} did not hold it back with "{status.message}"', 1)
