"""Tests of PrioritySort: pods of higher priority come first, then those that have been active longer."""

from typing import Any

import pytest

from kschedd.api.pods import Pod
from kschedd.cache.scheduler_cache import SchedulerCache
from kschedd.framework.handle import Handle
from kschedd.plugins.prioritysort import PrioritySort
from kschedd.queue.entry import QueuedPod


def entry(name: str, priority: int, timestamp: int) -> QueuedPod:
    meta = {"name": name, "namespace": "default", "uid": name}
    pod = Pod.from_raw({"kind": "Pod", "metadata": meta, "spec": {"priority": priority}})
    return QueuedPod(pod, pod.key, timestamp)


@pytest.mark.parametrize(
    ("entries", "order"),
    [
        pytest.param([entry("a", 1, 1), entry("b", 2, 2)], ["b", "a"], id="priority"),
        pytest.param([entry("a", 1, 2), entry("b", 1, 1)], ["b", "a"], id="time"),
        pytest.param([entry("a", 1, 1), entry("b", 1, 1)], ["a", "b"], id="stable"),
    ],
)
def test_the_order_of_pods(entries: list[Any], order: list[str]) -> None:
    plugin = PrioritySort.from_args(None, Handle(SchedulerCache()))
    assert [one.pod.name for one in sorted(entries, key=plugin.sort_key)] == order
