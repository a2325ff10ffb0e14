"""Summaries of explanations: nodes are counted by filter and reason, and only the best nodes keep their scores.

The size of a summary does not depend on the number of nodes.
"""

from collections.abc import Sequence
from typing import Final

import attrs

from kschedd.explain.answers import Explanation, FunnelStepAnswer, ReasonAnswer, VerdictAnswer

MOST_SCORED: Final = 30
_MOST_REASONS: Final = 30
_MOST_NODES: Final = 5


def summarized(found: Explanation) -> Explanation:
    """Return the explanation with `funnel` in place of the verdicts, and with the scores of the best nodes."""
    best = sorted(found.totals, key=lambda node: (-found.totals[node], node))[:MOST_SCORED]
    shown = dict.fromkeys((*best, *(node for node in (found.chosen, found.node) if node and node in found.totals)))
    return attrs.evolve(
        found,
        verdicts=[],
        funnel=funnel(found.verdicts, found.filters),
        totals={node: found.totals[node] for node in shown},
        ties=found.ties[:MOST_SCORED],
        scores={
            plugin: {node: scores[node] for node in shown if node in scores} for plugin, scores in found.scores.items()
        },
    )


def funnel(verdicts: Sequence[VerdictAnswer], filters: Sequence[str]) -> list[FunnelStepAnswer]:
    """Return the plugins that reject nodes, in the order of `filters`; others, such as extenders, are last."""
    rejected: dict[str, dict[str, list[str]]] = {}
    for verdict in verdicts:
        if verdict.plugin is not None:
            reasons = rejected.setdefault(verdict.plugin, {})
            reasons.setdefault(", ".join(verdict.reasons), []).append(verdict.node)
    place = {plugin: number for number, plugin in enumerate(filters)}
    steps, left = [], len(verdicts)
    for plugin in sorted(rejected, key=lambda each: place.get(each, len(place))):
        reasons = rejected[plugin]
        count = sum(map(len, reasons.values()))
        left -= count
        ordered = sorted(reasons.items(), key=lambda each: -len(each[1]))[:_MOST_REASONS]
        answers = [ReasonAnswer(reason, len(nodes), nodes[:_MOST_NODES]) for reason, nodes in ordered]
        steps.append(FunnelStepAnswer(plugin, count, left, answers))
    return steps
