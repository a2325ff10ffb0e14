"""The function `judge`: returns one plugin's verdicts on a pod and some nodes, without a scheduler.

verdicts = judge(OnePerTeam, pod("b", labels={"team": "x"}), [node("n1"), node("n2")], [pod("a", node_name="n1", ...)])
assert verdicts["n1"].reason == "node(s) had enough pods of the team"
assert verdicts["n2"].score == 100
"""

from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import numpy as np

from kschedd.api.objects import parse
from kschedd.api.pods import Pod
from kschedd.cache.scheduler_cache import SchedulerCache
from kschedd.framework.cycle_state import CycleState
from kschedd.framework.status import Code, Status
from kschedd.testing.calls import PluginCalls, made

Raw = Mapping[str, Any]


@attrs.frozen
class Judgement:
    """The verdict on a node.

    `reason`: why the node is infeasible; "" for a feasible node. `score`: the normalised score of a feasible node; None
    without a score.
    """

    reason: str = ""
    score: int | None = None

    @property
    def fits(self) -> bool:
        return not self.reason


def judge(
    plugin_class: type[Any], pod: Raw, nodes: Sequence[Raw], pods: Sequence[Raw] = (), args: Any = None
) -> dict[str, Judgement]:
    """Return the verdicts by the name of the node. `pods`: existing pods; a pod with a nodeName is on that node.

    PreFilter, Filter, PreScore, Score and normalize run if the plugin has them. A pod that PreFilter rejects is
    rejected on every node, with the same reason.
    """
    cluster = SchedulerCache()
    for raw in (*nodes, *pods):
        cluster.put(parse(_identified(raw)))
    calls = PluginCalls(made(plugin_class, args, cluster), cluster)
    submitted = Pod.from_raw(_identified(pod))
    names = cluster.table.names
    rows = calls.rows
    state = CycleState()
    verdicts: Sequence[Status | None] = [None] * len(rows)
    answer = calls.plugin.pre_filter(state, submitted, cluster) if calls.has("pre_filter") else None
    if isinstance(answer, Status) and answer.code not in (Code.SUCCESS, Code.SKIP):
        return {names[row]: Judgement(answer.message) for row in rows.tolist()}
    skipped = isinstance(answer, Status) and answer.code is Code.SKIP
    if calls.has("filter", "filter_rows") and not skipped:
        verdicts = calls.verdicts(state, submitted, rows)
    found = {
        names[row]: Judgement(status.message if status is not None else "")
        for row, status in zip(rows.tolist(), verdicts, strict=True)
    }
    fit = np.array([row for row in rows.tolist() if found[names[row]].fits], dtype=np.int64)
    scores = calls.scores(submitted, fit) if calls.has("score", "score_rows") and len(fit) else None
    for row, score in zip(fit.tolist(), scores or (), strict=False):
        found[names[row]] = Judgement(score=score)
    return found


def _identified(raw: Raw) -> Raw:
    """Return the manifest with a UID, which all objects in a cluster have."""
    meta = raw["metadata"]
    return {**raw, "metadata": {"uid": f"{raw.get('kind')}/{meta.get('namespace', '')}/{meta['name']}", **meta}}
