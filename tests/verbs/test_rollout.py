"""Tests of waiting in `rollout status`; tests/scenarios/rollouts.txt covers the rest of `rollout`."""

import copy
from typing import Any

import pytest


def deployment(updated: int, version: int, **meta: Any) -> dict[str, Any]:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "default", "generation": 1, "resourceVersion": str(version), **meta},
        "spec": {"replicas": 2},
        "status": {"observedGeneration": 1, "replicas": 2, "updatedReplicas": updated, "availableReplicas": 2},
    }


def changes(*raws: dict[str, Any], last: str = "MODIFIED") -> list[dict[str, Any]]:
    types = ["MODIFIED"] * (len(raws) - 1) + [last]
    pairs = zip(raws, types, strict=True)
    return [{"type": t, "object": raw, "resource_version": int(raw["metadata"]["resourceVersion"])} for raw, t in pairs]


WAITS = 'Waiting for deployment "web" rollout to finish: {} out of 2 new replicas have been updated...\n'
DONE = 'deployment "web" successfully rolled out\n'


def test_status_waits_until_the_rollout_is_done(typed, daemon) -> None:
    daemon.objects.append(deployment(0, 5))
    other = deployment(0, 6, name="other")
    daemon.streams["objects.watch"] = changes(other, deployment(1, 7), deployment(2, 8), deployment(2, 9))
    assert typed("rollout status deployment/web") == 0
    assert typed.out == WAITS.format(0) + WAITS.format(1) + DONE
    assert ("objects.watch", {"kind": "Deployment", "since": 5, "namespace": "default"}) in daemon.calls


def test_status_does_not_wait_if_it_is_told_so(typed, daemon) -> None:
    daemon.objects.append(deployment(0, 5))
    assert typed("rollout status deployment web --watch=false") == 0
    assert typed.out == WAITS.format(0)


def test_status_ends_with_the_object(typed, daemon) -> None:
    daemon.objects.append(deployment(0, 5))
    daemon.streams["objects.watch"] = changes(deployment(1, 7), last="DELETED")
    assert typed("rollout status deployment/web") == 1
    assert typed.err == "error: object has been deleted\n"


def test_status_fails_when_the_deadline_passes(typed, daemon) -> None:
    daemon.objects.append(deployment(0, 5))
    late = deployment(0, 6)
    late["status"]["conditions"] = [{"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded"}]
    daemon.streams["objects.watch"] = changes(late)
    assert typed("rollout status -w deployment/web") == 1
    assert typed.err == 'error: deployment "web" exceeded its progress deadline\n'


@pytest.mark.parametrize(("timeout", "looks"), [("2s", 4), ("1m", 120), ("300ms", 1)])
def test_status_waits_no_longer_than_it_is_told(typed, daemon, timeout: str, looks: int) -> None:
    daemon.objects.append(deployment(0, 5))
    assert typed(f"rollout status deployment/web --timeout {timeout}") == 1
    assert typed.err == "error: timed out waiting for the condition\n"
    assert len(typed.slept) == looks


def test_status_with_a_limit_of_time_sees_changes(typed, daemon) -> None:
    daemon.objects.append(deployment(0, 5))
    answers = iter([deployment(0, 5), deployment(0, 5), deployment(1, 6), deployment(2, 7)])
    daemon.objects_get = lambda **params: {"object": copy.deepcopy(next(answers))}
    assert typed("rollout status deployment/web --timeout 10s") == 0
    assert typed.out == WAITS.format(0) + WAITS.format(1) + DONE
