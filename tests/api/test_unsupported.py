"""Warnings about features without effect: Jobs that can never complete, conversion by a webhook."""

from typing import Any

import pytest

from kschedd.api.unsupported import ignored, unsupported

ENDLESS = (
    "its pods run forever, so it never completes: simulated containers end only if the pod template has the "
    "annotation kschedd.io/run-seconds (and kschedd.io/exit-code), or with `kschedd run --pod-behavior finish-jobs=5s`"
)


def job(containers: str = "a", parallelism: int | None = None, **annotations: str) -> dict[str, Any]:
    stated = {f"kschedd.io/{name.replace('_', '-')}": value for name, value in annotations.items()}
    template = {"metadata": {"annotations": stated}, "spec": {"containers": [{"name": name} for name in containers]}}
    spec: dict[str, Any] = {"template": template}
    if parallelism is not None:
        spec["parallelism"] = parallelism
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}, "spec": spec}


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        pytest.param(job(), [ENDLESS], id="nothing-says-when-its-pods-end"),
        pytest.param(job(run_seconds="5"), [], id="they-end"),
        pytest.param(job(exit_code="1"), [ENDLESS], id="an-exit-code-alone-ends-nothing"),
        pytest.param(job("ab", **{"run_seconds.a": "5"}), [ENDLESS], id="one-of-two-containers-runs-on"),
        pytest.param(job("ab", **{"run_seconds.a": "5", "run_seconds.b": "9"}), [], id="both-end"),
        pytest.param(
            job(parallelism=0, run_seconds="5"),
            ["parallelism is 0: it creates no pods and cannot complete until that is changed"],
            id="no-pods",
        ),
    ],
)
def test_a_job_that_never_completes(raw: dict[str, Any], why: list[str]) -> None:
    assert [each.why for each in unsupported(raw)] == why
    assert [each.why for each in unsupported(raw, jobs_finish=True)] == [each for each in why if each != ENDLESS]
    cron_job = {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "c"}}
    assert [each.why for each in unsupported({**cron_job, "spec": {"jobTemplate": {"spec": raw["spec"]}}})] == why


def test_what_another_client_can_act_on_is_not_ignored() -> None:
    custom = {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "t"}}
    assert [each.why for each in unsupported(custom)] == ["stored, but no controller acts on it"]
    assert ignored(custom) == ignored(job()) == []
    assert ignored(job(run_seconds="soon")) == unsupported(job(run_seconds="soon"))[-1:] != []


@pytest.mark.parametrize(("strategy", "reported"), [("Webhook", True), ("None", False)])
def test_a_conversion_by_a_webhook_is_not_made(strategy: str, reported: bool) -> None:
    raw = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "a.b.c"}}
    found = unsupported({**raw, "spec": {"conversion": {"strategy": strategy}}})
    assert ["its webhook is not called" in each.why for each in found] == [True] * reported


@pytest.mark.parametrize(
    ("api_version", "kind", "why"),
    [
        ("networking.k8s.io/v1", "Ingress", "it routes no requests"),
        ("networking.k8s.io/v1", "NetworkPolicy", "no traffic"),
        ("networking.k8s.io/v1", "ServiceCIDR", "--service-cluster-ip-range"),
        ("flowcontrol.apiserver.k8s.io/v1", "FlowSchema", "does not limit requests"),
        ("flowcontrol.apiserver.k8s.io/v1", "PriorityLevelConfiguration", "does not limit requests"),
    ],
)
def test_a_kind_that_is_stored_only(api_version: str, kind: str, why: str) -> None:
    raw = {"apiVersion": api_version, "kind": kind, "metadata": {"name": "x"}, "spec": {}}
    assert [why in each.why for each in ignored(raw)] == [True]


def test_a_service_of_type_load_balancer_gets_no_address() -> None:
    raw = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "x"}, "spec": {"type": "LoadBalancer"}}
    assert [each.why for each in ignored(raw)] == ["no load balancer is created, so its external address stays pending"]
    assert ignored({**raw, "spec": {"type": "ClusterIP"}}) == []


def test_a_storage_capacity_over_which_kube_scheduler_crashes() -> None:
    kind = {"apiVersion": "storage.k8s.io/v1", "kind": "CSIStorageCapacity", "metadata": {"name": "c"}}
    [found] = unsupported({**kind, "maximumVolumeSize": "1Gi"})
    assert found.why.startswith("maximumVolumeSize without capacity crashes kube-scheduler 1.37.0 to 1.37.2")
    assert unsupported({**kind, "maximumVolumeSize": "1Gi", "capacity": "5Gi"}) == unsupported(kind) == []
