"""Tests of kubectl's messages about the progress of a rollout.

The cases are those of kubectl v1.34, rollout_status_test.go.
"""

from typing import Any

import pytest

from kschedd.printing.describing.rollouts import RolloutError, RolloutProgress, rollout_progress


def a_workload(kind: str, spec: dict[str, Any], status: dict[str, Any], generation: int = 1) -> dict[str, Any]:
    meta = {"name": "foo", "generation": generation, "annotations": {"deployment.kubernetes.io/revision": "2"}}
    status = {"observedGeneration": 1, **status}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": meta, "spec": spec, "status": status}


def counts(kind: str, *numbers: int) -> dict[str, int]:
    names = {
        "Deployment": ("replicas", "updatedReplicas", "availableReplicas"),
        "DaemonSet": ("desiredNumberScheduled", "updatedNumberScheduled", "numberAvailable"),
        "StatefulSet": ("readyReplicas", "updatedReplicas"),
    }
    return dict(zip(names[kind], numbers, strict=True))


ROLLING = {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {}}}
WAITING = 'Waiting for deployment "foo" rollout to finish'
DAEMONS = 'Waiting for daemon set "foo" rollout to finish'


@pytest.mark.parametrize(
    ("raw", "text", "done"),
    [
        pytest.param(
            a_workload("Deployment", {"replicas": 1}, counts("Deployment", 1, 0, 1)),
            f"{WAITING}: 0 out of 1 new replicas have been updated...",
            False,
            id="not-updated",
        ),
        pytest.param(
            a_workload("Deployment", {"replicas": 1}, counts("Deployment", 2, 1, 2)),
            f"{WAITING}: 1 old replicas are pending termination...",
            False,
            id="old-ones-left",
        ),
        pytest.param(
            a_workload("Deployment", {"replicas": 2}, counts("Deployment", 2, 2, 1)),
            f"{WAITING}: 1 of 2 updated replicas are available...",
            False,
            id="not-available",
        ),
        pytest.param(
            a_workload("Deployment", {"replicas": 2}, counts("Deployment", 2, 2, 2)),
            'deployment "foo" successfully rolled out',
            True,
            id="rolled-out",
        ),
        pytest.param(
            a_workload("Deployment", {"replicas": 2}, counts("Deployment", 2, 2, 2), generation=2),
            "Waiting for deployment spec update to be observed...",
            False,
            id="not-observed",
        ),
        pytest.param(
            a_workload("DaemonSet", ROLLING, counts("DaemonSet", 2, 0, 1)),
            f"{DAEMONS}: 0 out of 2 new pods have been updated...",
            False,
            id="daemons-not-updated",
        ),
        pytest.param(
            a_workload("DaemonSet", ROLLING, counts("DaemonSet", 2, 2, 1)),
            f"{DAEMONS}: 1 of 2 updated pods are available...",
            False,
            id="daemons-not-available",
        ),
        pytest.param(
            a_workload("DaemonSet", ROLLING, counts("DaemonSet", 2, 2, 2)),
            'daemon set "foo" successfully rolled out',
            True,
            id="daemons-rolled-out",
        ),
        pytest.param(
            a_workload("DaemonSet", ROLLING, counts("DaemonSet", 2, 2, 2), generation=2),
            "Waiting for daemon set spec update to be observed...",
            False,
            id="daemons-not-observed",
        ),
        pytest.param(
            a_workload("StatefulSet", {**ROLLING, "replicas": 3}, counts("StatefulSet", 2, 0)),
            "Waiting for 1 pods to be ready...",
            False,
            id="not-ready",
        ),
        pytest.param(
            a_workload("StatefulSet", {**ROLLING, "replicas": 3}, counts("StatefulSet", 3, 2)),
            "Waiting for partitioned roll out to finish: 2 out of 3 new pods have been updated...",
            False,
            id="partition-not-updated",
        ),
        pytest.param(
            a_workload(
                "StatefulSet",
                {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 2}}, "replicas": 3},
                counts("StatefulSet", 3, 1),
            ),
            "partitioned roll out complete: 1 new pods have been updated...",
            True,
            id="above-the-partition-only",
        ),
        pytest.param(
            a_workload(
                "StatefulSet",
                {"updateStrategy": {"type": "RollingUpdate"}, "replicas": 3},
                {**counts("StatefulSet", 3, 1), "updateRevision": "foo-2", "currentRevision": "foo-1"},
            ),
            "waiting for statefulset rolling update to complete 1 pods at revision foo-2...",
            False,
            id="without-a-partition",
        ),
        pytest.param(
            a_workload(
                "StatefulSet",
                {"updateStrategy": {"type": "RollingUpdate"}, "replicas": 3},
                {**counts("StatefulSet", 3, 3), "updateRevision": "foo-2", "currentRevision": "foo-2"},
            ),
            "statefulset rolling update complete 3 pods at revision foo-2...",
            True,
            id="complete-without-a-partition",
        ),
        pytest.param(
            a_workload("StatefulSet", {**ROLLING, "replicas": 3}, {"observedGeneration": 0}),
            "Waiting for statefulset spec update to be observed...",
            False,
            id="never-observed",
        ),
    ],
)
def test_progress(raw: dict[str, Any], text: str, done: bool) -> None:
    assert rollout_progress(raw) == RolloutProgress(text, done)


LATE = {"conditions": [{"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded"}]}
ON_DELETE = {"updateStrategy": {"type": "OnDelete"}}


@pytest.mark.parametrize(
    ("raw", "revision", "why"),
    [
        pytest.param(
            a_workload("Deployment", {"replicas": 1}, LATE),
            0,
            'deployment "foo" exceeded its progress deadline',
            id="too-late",
        ),
        pytest.param(
            a_workload("Deployment", {"replicas": 1}, {}),
            3,
            "desired revision (3) is different from the running revision (2)",
            id="another-revision",
        ),
        pytest.param(
            a_workload("DaemonSet", ON_DELETE, {}),
            0,
            "rollout status is only available for RollingUpdate strategy type",
            id="daemons-by-hand",
        ),
        pytest.param(
            a_workload("StatefulSet", ON_DELETE, {}),
            0,
            "rollout status is only available for RollingUpdate strategy type",
            id="by-hand",
        ),
        pytest.param(
            a_workload("ReplicaSet", {}, {}),
            0,
            "no status viewer has been implemented for ReplicaSet.apps",
            id="another-kind",
        ),
    ],
)
def test_there_is_no_progress_to_tell(raw: dict[str, Any], revision: int, why: str) -> None:
    with pytest.raises(RolloutError) as caught:
        rollout_progress(raw, revision)
    assert str(caught.value) == why
