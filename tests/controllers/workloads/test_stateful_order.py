"""Tests of a StatefulSet's next action, case by case.

Source of the rules: Kubernetes v1.34, controller/statefulset/stateful_set_control.go and the tables of its tests.

In these tests, a pod is written as its ordinal and a letter: `0` runs and is ready, `0u` runs and is not ready, `0p` is
pending, `0t` is being deleted, `0f` failed, `0s` succeeded, `0y` has been ready for 5 s; `0n` (after another letter)
has the new revision.
"""

from typing import Any

import pytest

from kschedd.api.objects import Object
from kschedd.api.pods import Pod
from kschedd.api.text.times import stamp
from kschedd.controllers.workloads.stateful_order import next_step
from kschedd.controllers.workloads.stateful_tally import StatefulTally, StatefulTerms
from tests.store.manifests import workload

NOW = 1_700_000_000.0


def a_set(replicas: int, **spec: Any) -> Object:
    raw = workload("StatefulSet", replicas=replicas)
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}}
    raw["spec"] = {"podManagementPolicy": "OrderedReady", "updateStrategy": strategy, **raw["spec"], **spec}
    return Object.from_raw(raw)


def rolling(partition: int = 0, **more: Any) -> dict[str, Any]:
    return {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": partition, **more}}}


def a_pod(text: str) -> Pod:
    digits = text.rstrip("uptfsyn")
    letters = text[len(digits) :]
    phase = (
        "Pending" if "p" in letters else "Failed" if "f" in letters else "Succeeded" if "s" in letters else "Running"
    )
    ready = phase == "Running" and "u" not in letters
    meta: dict[str, Any] = {
        "name": f"web-{digits}",
        "uid": digits,
        "labels": {"controller-revision-hash": "web-new" if "n" in letters else "web-old"},
    }
    if "t" in letters:
        meta["deletionTimestamp"] = stamp(NOW)
    since = stamp(NOW - (5 if "y" in letters else 1000))
    condition = {"type": "Ready", "status": "True" if ready else "False", "lastTransitionTime": since}
    status = {"phase": phase, "conditions": [condition]}
    return Pod.from_raw({"kind": "Pod", "metadata": meta, "spec": {"containers": []}, "status": status})


PARALLEL = {"podManagementPolicy": "Parallel"}
ON_DELETE = {"updateStrategy": {"type": "OnDelete"}}
STEADY = "web-old"  # the update revision if there is no update


def tally_of(workload: Object, pods: str) -> StatefulTally:
    tally = StatefulTally(StatefulTerms.of(workload, None))
    for text in pods.split():
        tally.put(a_pod(text), NOW)
    return tally


def step(replicas: int, pods: str, update: str, **more: Any) -> tuple[list[int], list[str]]:
    gate = more.pop("gate", False)
    blocked = more.pop("blocked", ())
    workload = a_set(replicas, **more)
    found = next_step(
        workload,
        tally_of(workload, pods),
        update,
        lambda ordinal: ordinal in blocked,
        max_unavailable_gate=gate,
    )
    return [ordinal for ordinal, _ in found.create], [pod.name for pod in found.delete]


@pytest.mark.parametrize(
    ("replicas", "pods", "spec", "created", "deleted"),
    [
        pytest.param(3, "", {}, [0], [], id="the-first-first"),
        pytest.param(3, "0p", {}, [], [], id="waits-for-it-to-run"),
        pytest.param(3, "0u", {}, [], [], id="waits-for-it-to-be-ready"),
        pytest.param(3, "0", {}, [1], [], id="then-the-second"),
        pytest.param(3, "0y", {"minReadySeconds": 10}, [], [], id="waits-for-it-to-be-available"),
        pytest.param(3, "0", {"minReadySeconds": 10}, [1], [], id="available-long-enough"),
        pytest.param(3, "0 1 2", {}, [], [], id="complete"),
        pytest.param(3, "0 2", {}, [1], [], id="a-gap-is-filled"),
        pytest.param(3, "1 2", {}, [0], [], id="also-the-first"),
        pytest.param(3, "0u 2", {}, [], [], id="a-gap-waits-for-what-is-before-it"),
        pytest.param(3, "0 1t 2", {}, [], [], id="one-that-is-leaving-keeps-its-place"),
        pytest.param(3, "0t", {}, [], [], id="nothing-is-created-while-one-leaves"),
        pytest.param(3, "0 1f 2", {}, [], ["web-1"], id="a-failed-one-is-deleted"),
        pytest.param(3, "0 1s 2", {}, [], ["web-1"], id="and-so-is-one-that-succeeded"),
        pytest.param(3, "0 1ft 2", {}, [], [], id="but-once-only"),
        pytest.param(3, "0f 1f", {}, [], ["web-0"], id="one-failed-one-at-a-time"),
        pytest.param(3, "0u 1f", {}, [], [], id="a-failed-one-waits-for-what-is-before-it"),
        pytest.param(1, "0 1 2", {}, [], ["web-2"], id="scaled-down-from-the-end"),
        pytest.param(1, "0 1 2t", {}, [], [], id="one-at-a-time"),
        pytest.param(0, "0 1", {}, [], ["web-1"], id="down-to-none"),
        pytest.param(1, "0u 1 2", {}, [], [], id="not-while-one-that-stays-is-not-ready"),
        pytest.param(1, "1 2", {}, [0], [], id="what-stays-is-made-first"),
        pytest.param(1, "0 1 2u", {}, [], ["web-2"], id="the-first-unhealthy-may-go"),
        pytest.param(1, "0 1u 2u", {}, [], [], id="but-not-before-a-lower-one-that-is-unhealthy"),
        pytest.param(1, "0 1u 2", {}, [], ["web-2"], id="a-healthy-last-one-goes"),
        pytest.param(0, "0u", {}, [], ["web-0"], id="the-last-of-all-even-unready"),
        pytest.param(2, "5 6", {"ordinals": {"start": 5}}, [], [], id="ordinals-start-elsewhere"),
        pytest.param(2, "", {"ordinals": {"start": 5}}, [5], [], id="the-first-ordinal"),
        pytest.param(2, "5 6 7", {"ordinals": {"start": 5}}, [], ["web-7"], id="above-the-range"),
        pytest.param(2, "0 5 6", {"ordinals": {"start": 5}}, [], ["web-0"], id="below-the-range"),
        pytest.param(2, "0 1", {"ordinals": {"start": 1}}, [2], [], id="the-range-moves-make-first"),
        pytest.param(3, "", PARALLEL, [0, 1, 2], [], id="parallel-all-at-once"),
        pytest.param(3, "0u", PARALLEL, [1, 2], [], id="parallel-waits-for-none"),
        pytest.param(1, "0u 1 2u", PARALLEL, [], ["web-2", "web-1"], id="parallel-down-at-once"),
        pytest.param(1, "0 1t 2", PARALLEL, [], ["web-2"], id="parallel-not-twice"),
        pytest.param(3, "0f 1f", PARALLEL, [2], ["web-0", "web-1"], id="parallel-failed-ones"),
        pytest.param(3, "0t", PARALLEL, [1, 2], [], id="parallel-beside-one-that-leaves"),
        pytest.param(2, "", {"blocked": (0,)}, [], [], id="waits-for-a-claim-to-go"),
        pytest.param(2, "", {"blocked": (0,), **PARALLEL}, [1], [], id="parallel-others-do-not"),
        pytest.param(0, "", {}, [], [], id="nothing-at-all"),
    ],
)
def test_creating_and_scaling(
    replicas: int, pods: str, spec: dict[str, Any], created: list[int], deleted: list[str]
) -> None:
    assert step(replicas, pods, STEADY, **spec) == (created, deleted)


@pytest.mark.parametrize(
    ("replicas", "pods", "spec", "created", "deleted"),
    [
        pytest.param(3, "0 1 2", {}, [], ["web-2"], id="the-highest-first"),
        pytest.param(3, "0 1 2n", {}, [], ["web-1"], id="then-the-next"),
        pytest.param(3, "0 1 2nu", {}, [], [], id="waits-for-the-new-one"),
        pytest.param(3, "0 1 2t", {}, [], [], id="waits-for-the-old-one-to-go"),
        pytest.param(3, "0 1", {}, [2], [], id="the-new-one-is-created"),
        pytest.param(3, "0n 1n 2n", {}, [], [], id="done"),
        pytest.param(3, "0 1n 2n", {}, [], ["web-0"], id="the-last"),
        pytest.param(3, "0 1 2", rolling(2), [], ["web-2"], id="down-to-the-partition"),
        pytest.param(3, "0 1 2n", rolling(2), [], [], id="and-no-further"),
        pytest.param(3, "0 1 2", rolling(3), [], [], id="a-partition-above-all"),
        pytest.param(3, "0 1 2", rolling(7), [], [], id="a-partition-far-above-all"),
        pytest.param(3, "0 1 2", ON_DELETE, [], [], id="on-delete"),
        pytest.param(2, "0 1 2", {}, [], ["web-2"], id="scaling-goes-first"),
        pytest.param(3, "0 1u 2", {}, [], [], id="ordered-waits-for-all-before"),
        pytest.param(3, "0 1u 2", PARALLEL, [], ["web-2"], id="parallel-updates-one-by-one-too"),
        pytest.param(3, "0 1 2u", PARALLEL, [], ["web-2"], id="an-unready-old-one-is-replaced"),
        pytest.param(3, "0u 1 2nu", PARALLEL, [], [], id="parallel-waits-for-the-new-one"),
        pytest.param(2, "0 01u 1n", PARALLEL, [], ["web-0"], id="of-two-with-one-ordinal-the-later-one-counts"),
        pytest.param(5, "0 1 2 3 4", rolling(maxUnavailable=2), [], ["web-4"], id="max-unavailable-without-its-gate"),
        pytest.param(
            5, "0 1 2 3 4", {"gate": True, **rolling(maxUnavailable=2)}, [], ["web-4", "web-3"], id="max-unavailable"
        ),
        pytest.param(
            5, "0 1 2 3 4", {"gate": True, **rolling(maxUnavailable="50%")}, [], ["web-4", "web-3"], id="rounded-down"
        ),
        pytest.param(
            5, "0 1 2 3 4", {"gate": True, **rolling(maxUnavailable="10%")}, [], ["web-4"], id="but-at-least-one"
        ),
        pytest.param(
            5,
            "0u 1 2 3 4",
            {"gate": True, **PARALLEL, **rolling(maxUnavailable=2)},
            [],
            ["web-4"],
            id="unavailable-ones-count",
        ),
        pytest.param(
            5,
            "0 1 2 3 4",
            {"gate": True, **rolling(4, maxUnavailable=3)},
            [],
            ["web-4"],
            id="max-unavailable-above-the-partition",
        ),
    ],
)
def test_updating(replicas: int, pods: str, spec: dict[str, Any], created: list[int], deleted: list[str]) -> None:
    assert step(replicas, pods, "web-new", **spec) == (created, deleted)


@pytest.mark.parametrize(
    ("spec", "of_current"),
    [
        pytest.param(rolling(0), [False, False, False], id="no-partition"),
        pytest.param(rolling(2), [True, True, False], id="below-the-partition"),
        pytest.param(ON_DELETE, [False, False, False], id="on-delete"),
        pytest.param({**rolling(1), "ordinals": {"start": 4}}, [True, False, False], id="counted-from-the-first"),
    ],
)
def test_from_which_revision_a_pod_is_made(spec: dict[str, Any], of_current: list[bool]) -> None:
    workload = a_set(3, **PARALLEL, **spec)
    found = next_step(workload, tally_of(workload, ""), "web-new")
    assert [current for _, current in found.create] == of_current
