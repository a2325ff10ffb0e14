"""Tests of APIServices of other servers with missing parts, with the messages of kube-apiserver 1.34.9."""

from typing import Any

import pytest

from kschedd.controllers.api_services import APIServiceAvailability
from kschedd.controllers.runner import ControllerRunner
from kschedd.store.store import Store
from tests.store.manifests import Clock

Raw = dict[str, Any]
META: Raw = {"name": "s", "namespace": "default"}
SLICE: Raw = {
    "apiVersion": "discovery.k8s.io/v1",
    "kind": "EndpointSlice",
    "metadata": {**META, "labels": {"kubernetes.io/service-name": "s"}},
    "addressType": "IPv4",
    "endpoints": [{"addresses": ["10.1.2.3"], "conditions": {"ready": True}}],
    "ports": [{"name": "a", "port": 8443}],
}


def service(port: int = 443, **spec: Any) -> Raw:
    ports = [{"name": "a", "port": port}]
    return {"apiVersion": "v1", "kind": "Service", "metadata": META, "spec": {"ports": ports, **spec}}


def api_service(**spec: Any) -> Raw:
    spec = {"group": "x.io", "version": "v1", "groupPriorityMinimum": 100, "versionPriority": 10, **spec}
    api = "apiregistration.k8s.io/v1"
    return {"apiVersion": api, "kind": "APIService", "metadata": {"name": "v1.x.io"}, "spec": spec}


REMOTE = api_service(service={"namespace": "default", "name": "s"})
UNREADY = {**SLICE, "endpoints": [{"addresses": ["10.1.2.3"], "conditions": {"ready": False}}]}
OTHER_PORT = {**SLICE, "ports": [{"name": "b", "port": 8443}]}
OTHERS = {**SLICE, "metadata": {**META, "labels": {"kubernetes.io/service-name": "t"}}}


@pytest.mark.parametrize(
    ("there", "reason", "message"),
    [
        pytest.param([], "ServiceNotFound", 'service/s in "default" is not present', id="no-service"),
        pytest.param(
            [service(80)], "ServicePortError", 'service/s in "default" is not listening on port 443', id="no-port"
        ),
        *(
            pytest.param(
                there,
                "EndpointsNotFound",
                'cannot find endpointslices for service/s in "default"',
                id=f"no-slices-{len(there)}",
            )
            for there in ([service()], [service(), OTHERS])
        ),
        *(
            pytest.param(
                [service(), unfit],
                "MissingEndpoints",
                'endpointslices for service/s in "default" have no addresses with port name "a"',
                id=name,
            )
            for name, unfit in (("not-ready", UNREADY), ("another-port", OTHER_PORT))
        ),
        pytest.param([service(), SLICE], "FailedDiscoveryCheck", "failing or missing response from https", id="all"),
        pytest.param(
            [service(type="ExternalName", externalName="a.b")],
            "FailedDiscoveryCheck",
            "failing or missing response from https://a.b:443/apis/x.io/v1",
            id="of-another-name",
        ),
    ],
)
def test_what_is_missing_is_the_reason(there: list[Raw], reason: str, message: str) -> None:
    clock = Clock()
    store = Store(now=clock)
    for raw in there:
        store.create(raw)
    assert store.create(REMOTE).status == {}
    ControllerRunner(store, [APIServiceAvailability()]).run_until_idle()
    (condition,) = store.get("APIService", "", "v1.x.io").status["conditions"]
    assert (condition["type"], condition["status"], condition["reason"]) == ("Available", "False", reason)
    assert condition["message"].startswith(message)


def test_the_condition_follows_the_service_and_keeps_its_time() -> None:
    clock = Clock()
    store = Store(now=clock)
    runner = ControllerRunner(store, [APIServiceAvailability()])
    store.create(REMOTE)
    store.create({**api_service(group="y.io"), "metadata": {"name": "v1.y.io"}})
    seen = []
    for number, raw in enumerate((None, service(), SLICE)):
        if raw is not None:
            store.create(raw)
        clock.now = 60.0 * number
        runner.run_until_idle()
        (condition,) = store.get("APIService", "", "v1.x.io").status["conditions"]
        seen.append((condition["reason"], condition["lastTransitionTime"]))
    at = "1970-01-01T00:00:00Z"
    assert seen == [("ServiceNotFound", at), ("EndpointsNotFound", at), ("FailedDiscoveryCheck", at)]
    version = store.version
    clock.now = 600.0
    runner.run_until_idle()
    assert store.version == version
    (local,) = store.get("APIService", "", "v1.y.io").status["conditions"]
    assert (local["status"], local["reason"]) == ("True", "Local")
