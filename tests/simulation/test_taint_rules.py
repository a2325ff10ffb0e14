"""Tests that a DeviceTaintRule of 1.37 blocks a device until the rule is deleted; 1.36 has no such rules."""

import pytest

from kschedd.config.loading.load import default_config
from kschedd.config.versions.kube_versions import V1_36, V1_37, KubernetesVersion
from kschedd.framework.registry import Registry
from kschedd.sdk.objects import node, pod
from kschedd.simulation.simulation import Simulation
from tests.devices.made import DRIVER, claim_raw, class_raw, device, exact, slice_raw


def asking() -> dict[str, object]:
    made = pod("p")
    made["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimName": "c"}]
    return made


@pytest.mark.parametrize(("version", "kept"), [(V1_36, False), (V1_37, True)])
def test_a_rule_keeps_a_pod_from_its_device_until_it_goes(version: KubernetesVersion, kept: bool) -> None:
    simulation = Simulation(default_config(version=version), seed=1, registry=Registry(), controllers=())
    store = simulation.store
    taint = {"key": "example.com/broken", "effect": "NoSchedule"}
    rule = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceTaintRule",
        "metadata": {"name": "broken"},
        "spec": {"deviceSelector": {"driver": DRIVER, "device": "gpu-0"}, "taint": taint},
    }
    for raw in (node("n1"), class_raw("gpu"), slice_raw("s1", device("gpu-0"), nodeName="n1"), rule):
        store.create(raw)
    store.create(claim_raw("c", exact("gpu")))
    store.create(asking())
    simulation.run_until_idle()
    assert ("nodeName" not in store.get("Pod", "default", "p").spec) is kept
    store.delete("DeviceTaintRule", "", "broken")
    simulation.advance(simulation.now + 20)
    simulation.run_until_idle()
    assert store.get("Pod", "default", "p").spec["nodeName"] == "n1"
