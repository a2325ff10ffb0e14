"""Measures of a run with node pools: launches, removals, disruptions, costs and waiting times."""

from collections.abc import Iterable
from typing import Self

import attrs

from kschedd.controllers.running.controller import Controller
from kschedd.controllers.scaling.node_pools import NodePools
from kschedd.simulation.results.measures import RunMeasures
from kschedd.simulation.results.prices import PoolPrices
from kschedd.simulation.simulation import Simulation
from kschedd.simulation.summary import PoolSummary


@attrs.frozen(eq=False)
class ScalingMeasures:
    """The measures; create them before the first event of the run."""

    _controller: NodePools
    _measures: RunMeasures

    @classmethod
    def of(cls, simulation: Simulation, controllers: Iterable[Controller]) -> Self:
        """Observe the run. `controllers` include the controller of node pools."""
        controller = next(each for each in controllers if isinstance(each, NodePools))
        prices = PoolPrices(controller.pools)
        return cls(controller, RunMeasures(simulation, prices=prices, pools=controller))

    def summary(self) -> PoolSummary:
        totals = self._controller.totals
        return PoolSummary(self._controller.pools.autoscaler, totals.removed, totals.refused, self._measures.values())
