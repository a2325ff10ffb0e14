"""The choice of a placement for a PodGroup: the group is tried in each placement, and the scores decide.

PlacementGenerate plugins return the placements, each a set of nodes. The group is tried in each placement in turn, and
each trial is undone. Among the placements where the group fits, the one with the highest sum of weighted scores is
chosen; the seed breaks ties. If the group fits in no placement, the result of the first placement is returned; its
message contains the number of placements.

Source: Kubernetes v1.37, scheduler/schedule_one_podgroup.go (podGroupSchedulingPlacementAlgorithm, findBestPlacement).
Upstream tries the placements in a random order, so its first placement differs from run to run.
"""

from collections.abc import Callable, Sequence

import attrs
import numpy as np

from kschedd.api.objects import Object
from kschedd.framework.interface import PLACEMENT_GENERATE, PLACEMENT_SCORE
from kschedd.framework.placements import PlacedPods, Placement
from kschedd.framework.status import Code, Status, error, unschedulable
from kschedd.scheduling.debug.work import Work
from kschedd.scheduling.gangs.outcome import UNSCHEDULABLE
from kschedd.scheduling.gangs.trial import TriedGroup
from kschedd.scheduling.machine import SchedulingMachine
from kschedd.scheduling.profiles.profile import Framework


def placed(
    machine: SchedulingMachine,
    framework: Framework,
    group: Object,
    tried_in: Callable[[Placement], Work[TriedGroup]],
) -> Work[TriedGroup]:
    """Return the result of the group in the best placement. `tried_in` tries the group in one placement."""
    placements = _placements(machine, framework, group)
    if isinstance(placements, Status):
        return TriedGroup(placements, ())
    metrics, results = machine.metrics, list[tuple[Placement, TriedGroup]]()
    if metrics is not None:
        metrics.placements.add(framework.name, amount=len(placements))
    for placement in placements:
        began_s = 0.0 if metrics is None else metrics.timer()
        tried = yield from tried_in(placement)
        if metrics is not None and tried.status.code is not Code.ERROR:
            is_feasible = tried.status.code is Code.SUCCESS
            metrics.tried_in_placement(is_feasible, framework.name, metrics.timer() - began_s)
        if tried.status.code is Code.ERROR:
            return tried
        results.append((placement, tried))
    fitting = [(placement, tried) for placement, tried in results if tried.status.code is Code.SUCCESS]
    if not fitting:
        _, first = results[0]
        return attrs.evolve(first, status=_nowhere(len(placements), first.status))
    if len(fitting) == 1:
        return fitting[0][1]
    totals = _totals(machine, framework, group, fitting)
    if isinstance(totals, Status):
        return TriedGroup(totals, ())
    best = np.flatnonzero(np.array(totals) == max(totals))
    names = [placement.name for placement, _ in fitting]
    return fitting[int(best[0]) if len(best) == 1 else machine.choose(best, names, None)][1]


def _placements(machine: SchedulingMachine, framework: Framework, group: Object) -> Sequence[Placement] | Status:
    """Return the placements of the profile's plugin; without a plugin, one placement with all nodes."""
    table = machine.cluster.table
    for plugin in framework.at(PLACEMENT_GENERATE):
        found = plugin.generate_placements(group, table)
        return found if isinstance(found, Status) or found else unschedulable("no feasible placements found")
    return [Placement("", table.order)]


def _nowhere(placements: int, first: Status) -> Status:
    # If a status wraps an error, only the error is shown.
    shown = UNSCHEDULABLE if UNSCHEDULABLE in first.reasons else first.message
    return unschedulable(UNSCHEDULABLE, f"0/{placements} placements are available, first placement status: {shown}")


def _totals(
    machine: SchedulingMachine,
    framework: Framework,
    group: Object,
    fitting: Sequence[tuple[Placement, TriedGroup]],
) -> list[int] | Status:
    """Return the sum of weighted scores of each placement."""
    found = [
        PlacedPods(placement, [member.entry.pod for member in tried.members if member.failed is None])
        for placement, tried in fitting
    ]
    weights = {ref.name: ref.weight for ref in framework.profile.at(PLACEMENT_SCORE.name)}
    totals = [0] * len(found)
    for plugin in framework.at(PLACEMENT_SCORE):
        scores = plugin.score_placements(group, found, machine.cluster.table)
        if isinstance(scores, Status):
            return error(f'running PlacementScore plugins: plugin "{plugin.name}" failed with: {scores.message}')
        totals = [total + score * weights[plugin.name] for total, score in zip(totals, scores, strict=True)]
    return totals
