"""Tests that events observed in one batch, which omits some of them, have the same effect as one by one."""

from collections.abc import Sequence
from random import Random
from typing import Any

import pytest

from kschedd.scheduling.driver import SchedulingDriver
from kschedd.scheduling.inputs import Observe
from kschedd.store.errors import ApiError
from kschedd.store.objects.log import WatchEvent
from kschedd.store.store import Store
from tests.scheduling.driven import Driven, node, pod

NODES = ("n1", "n2", "n3")


def _change(store: Store, dice: Random, number: int) -> None:
    """Make one request of a user, a kubelet or a binding, which may be rejected."""
    name, on = f"p{dice.randrange(number + 1)}", dice.choice(NODES)
    match dice.randrange(8):
        case 0 | 1:
            store.create(pod(f"p{number}", cpu="100m", on=on if dice.random() < 0.5 else ""))
        case 2 | 3:
            store.delete("Pod", "default", name, grace_period_s=dice.choice((0, 0, 30)))
        case 4:
            store.bind("default", name, on)
        case 5:
            store.merge_patch("Pod", "default", name, {"metadata": {"labels": {"app": dice.choice(("web", "db"))}}})
        case 6:
            store.merge_patch("Pod", "default", name, {"status": {"phase": "Succeeded"}}, subresource="status")
        case _:
            _change_node(store, dice, on)


def _change_node(store: Store, dice: Random, name: str) -> None:
    if store.find("Node", "", name) is None:
        store.create(node(name))
    elif dice.random() < 0.3:
        store.merge_patch("Node", "", name, {"metadata": {"labels": {"disk": dice.choice(("ssd", "hdd"))}}})
    elif dice.random() < 0.3:
        store.delete("Node", "", name)


def _events(dice: Random) -> list[WatchEvent]:
    store = Store(now=lambda: 0.0)
    for name in NODES:
        store.create(node(name))
    for number in range(150):
        try:
            _change(store, dice, number)
        except ApiError:
            continue
    return store.log.written_after(0)


def _known(driver: SchedulingDriver) -> Any:
    """Return the driver's view of the cluster."""
    cluster = driver.machine.cluster
    table = cluster.table
    on_nodes = {
        name: (
            [(one.uid, one.resource_version, one.deletion_timestamp) for one in table.pods[row]],
            table.requested[:, row].tolist(),
            table.nonzero[:, row].tolist(),
            table.pod_count.item(row),
        )
        for name, row in table.row_of.items()
    }
    pending = {key: one.resource_version for key, one in driver.pending.pods.items()}
    return on_nodes, pending, cluster.pod_count, [node.raw for node in table.nodes if node is not None]


def _observed(batches: Sequence[Sequence[WatchEvent]]) -> Any:
    driver = Driven().driver
    for batch in batches:
        driver.step(Observe(batch))
    return _known(driver)


@pytest.mark.parametrize("seed", range(20))
def test_batches_come_to_the_same_as_one_event_after_the_other(seed: int) -> None:
    dice = Random(seed)
    events = _events(dice)
    ends = sorted({*dice.sample(range(1, len(events)), 20), len(events)})
    batches = [events[start:end] for start, end in zip([0, *ends], ends, strict=False)]
    assert _observed(batches) == _observed([[event] for event in events])


def test_a_version_that_is_deleted_next_is_not_put_into_the_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(now=lambda: 0.0)
    store.create(node("n1"))
    store.create(pod("p", on="n1"))
    version = store.version
    store.delete("Pod", "default", "p", grace_period_s=0)
    marked, gone = store.log.written_after(version)
    run = Driven()
    run.driver.step(Observe(store.log.written_after(0)[:-2]))
    seen: list[WatchEvent] = []
    observe = run.machine.observe_each

    def noted(event: WatchEvent, now: float) -> None:
        seen.append(event)
        observe(event, now)

    monkeypatch.setattr(run.machine, "observe_each", noted)
    run.driver.step(Observe((marked, gone)))
    assert seen == [gone]
    assert run.machine.cluster.pod_count == 0
