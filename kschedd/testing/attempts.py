"""Whole attempts with one plugin, by a scheduler with the evaluation cache and by a scheduler without it."""

from typing import Any

import attrs

from kschedd.api.pods import Pod
from kschedd.cache.scheduler_cache import SchedulerCache
from kschedd.config.in_tree import IN_TREE
from kschedd.config.loading.load import config_from_raw
from kschedd.framework.handle import Handle
from kschedd.framework.interface import QUEUE_SORT
from kschedd.framework.registry import Registry
from kschedd.scheduling.attempt.node_search import StartNode
from kschedd.scheduling.attempt.outcome import FitError
from kschedd.scheduling.attempt.scheduler import Scheduler
from kschedd.scheduling.attempt.ties import by_name
from kschedd.scheduling.debug.work import drive
from kschedd.scheduling.profiles.profile import build_profile


class TwoSchedulers:
    """Two schedulers with the same plugin, one of them with the evaluation cache."""

    def __init__(self, cluster: SchedulerCache, plugin_class: type[Any], args: Any) -> None:
        name = plugin_class.name
        registry = Registry() if name in IN_TREE else Registry({name: plugin_class})
        sorts = QUEUE_SORT.has(plugin_class)
        enabled = list(dict.fromkeys((name, *(() if sorts else ("PrioritySort",)), "DefaultBinder")))
        plugins = {"multiPoint": {"disabled": [{"name": "*"}], "enabled": [{"name": each} for each in enabled]}}
        raw = {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "profiles": [{"plugins": plugins}],
        }
        config = config_from_raw(raw, catalogue=IN_TREE | registry.catalogue())
        profile = config.profiles[0]
        if args is not None:
            profile = attrs.evolve(profile, plugin_args={**profile.plugin_args, name: args})
        running = build_profile(config, profile, registry, Handle(cluster))
        self._both = [Scheduler(running, cluster, by_name, StartNode(), remember) for remember in (True, False)]

    def outcomes(self, pod: Pod) -> list[object]:
        return [_outcome(scheduler, pod) for scheduler in self._both]


def _outcome(scheduler: Scheduler, pod: Pod) -> object:
    result = drive(scheduler.attempt(pod, {}))
    if isinstance(result, FitError):
        return result.message, sorted(result.diagnosis.unschedulable_plugins)
    totals = None if result.totals is None else result.totals.tolist()
    assert result.verdicts is not None, "of a whole attempt"
    statuses = [(name, status) for name, status in result.verdicts.by_node() if status is not None]
    return result.node_name, result.feasible.tolist(), totals, statuses
