"""Tests of a daemon whose plugin filters and scores in worker processes, which end with the daemon."""

import os
from pathlib import Path

from kschedd.config.in_tree import IN_TREE
from kschedd.config.loading.load import config_from_raw
from kschedd.daemon import cluster_actors
from kschedd.framework.guarding.guarded import GuardedRegistry
from kschedd.framework.registry import Registry
from kschedd.scheduling.driver import SchedulingDriver
from tests.actors.clusters import node, placed, pod, rejected

PLUGIN = """
import os

from kschedd.plugin import unschedulable

DAEMON = {daemon}


class Elsewhere:
    name = "Elsewhere"
    worker_processes = 2

    def filter(self, state, pod, node):
        if pod.name == "dies":
            os._exit(3)
        return unschedulable("in the daemon") if os.getpid() == DAEMON else None

    def score(self, state, pod, node):
        return 100 if node.name == "n2" and os.getpid() != DAEMON else 0
"""


async def test_they_filter_and_score_and_end_with_the_daemon(tmp_path: Path) -> None:
    file = tmp_path / "elsewhere.py"
    file.write_text(PLUGIN.format(daemon=os.getpid()))
    registry = Registry(start_limit_s=300.0)
    registry.add_file(file)
    enabled = {"multiPoint": {"enabled": [{"name": "Elsewhere", "weight": 100, "timeoutSeconds": 300}]}}
    raw = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"plugins": enabled}],
    }
    config = config_from_raw(raw, catalogue={**IN_TREE, **registry.catalogue()})

    def guarded(driver: SchedulingDriver) -> GuardedRegistry:
        assert isinstance(driver.machine.registry, GuardedRegistry)
        return driver.machine.registry

    async with cluster_actors(config, registry=registry) as cluster:
        await cluster.store.create_many([node("n1"), node("n2")])
        await cluster.store.create(pod("web"))
        assert await placed(cluster, "web") == {"web": "n2"}
        await cluster.store.create(pod("dies"))
        why = 'running plugin "Elsewhere", filter: its worker process ended during filter (exit status 3)'
        assert await rejected(cluster, "dies") == why
        processes = (await cluster.scheduler.query(guarded)).processes
        assert processes is not None
    assert processes.count == 0
