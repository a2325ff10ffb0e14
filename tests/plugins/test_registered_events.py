"""Tests of the events for which the in-tree plugins are registered, as in their `EventsToRegister` upstream.

Source: Kubernetes v1.34 and v1.37, EventsToRegister of each plugin.
"""

import pytest

from kschedd.config.loading.load import default_config
from kschedd.config.versions.kube_versions import V1_34, V1_37, KubernetesVersion
from kschedd.framework.events import ActionType
from kschedd.scheduling.machine import SchedulingMachine

ADD, DELETE, UPDATE = ActionType.ADD, ActionType.DELETE, ActionType.UPDATE
NODE_LABEL, NODE_TAINT = ActionType.UPDATE_NODE_LABEL, ActionType.UPDATE_NODE_TAINT
NODE_ALLOCATABLE = ActionType.UPDATE_NODE_ALLOCATABLE
POD_LABEL, TOLERATION = ActionType.UPDATE_POD_LABEL, ActionType.UPDATE_POD_TOLERATION

#: By plugin: the resource, the actions, and True if a hint decides about the event.
REGISTERED = {
    "SchedulingGates": [("Pod", ActionType.UPDATE_POD_SCHEDULING_GATES_ELIMINATED, True)],
    "DynamicResources": [
        ("Node", ADD | NODE_LABEL | NODE_ALLOCATABLE, False),
        ("ResourceClaim", ADD | UPDATE, True),
        ("Pod", ActionType.UPDATE_POD_GENERATED_RESOURCE_CLAIM, True),
        ("DeviceClass", ADD | UPDATE, False),
        ("ResourceSlice", ADD | UPDATE, False),
    ],
    "DefaultPreemption": [("AssignedPod", DELETE, True)],
    "NodeName": [("Node", ADD, False)],
    "NodeAffinity": [("Node", ADD | NODE_LABEL, True)],
    "NodePorts": [("Pod", DELETE, True), ("Node", ADD, False)],
    "NodeResourcesFit": [
        ("Pod", DELETE | ActionType.UPDATE_POD_SCALE_DOWN, True),
        ("Node", ADD | NODE_ALLOCATABLE, True),
    ],
    "VolumeRestrictions": [("Pod", DELETE, True), ("Node", ADD, False), ("PersistentVolumeClaim", ADD, True)],
    "NodeVolumeLimits": [
        ("CSINode", ADD, False),
        ("CSINode", UPDATE, True),
        ("Pod", DELETE, True),
        ("PersistentVolumeClaim", ADD, True),
        ("VolumeAttachment", DELETE, True),
    ],
    "VolumeBinding": [
        ("StorageClass", ADD | UPDATE, True),
        ("PersistentVolumeClaim", ADD | UPDATE, True),
        ("PersistentVolume", ADD | UPDATE, False),
        ("Node", ADD | NODE_LABEL, False),
        ("CSINode", ADD | UPDATE, True),
        ("CSIDriver", UPDATE, True),
        ("CSIStorageCapacity", ADD | UPDATE, True),
    ],
    "VolumeZone": [
        ("StorageClass", ADD, True),
        ("Node", ADD | NODE_LABEL, False),
        ("PersistentVolumeClaim", ADD | UPDATE, True),
        ("PersistentVolume", ADD | UPDATE, True),
    ],
    "PodTopologySpread": [
        ("Pod", ADD | DELETE | POD_LABEL | TOLERATION, True),
        ("Node", ADD | DELETE | NODE_LABEL | NODE_TAINT, True),
    ],
    "InterPodAffinity": [("Pod", ADD | DELETE | POD_LABEL, True), ("Node", ADD | NODE_LABEL, True)],
    "NodeUnschedulable": [("Node", ADD | NODE_TAINT, True), ("Pod", TOLERATION, True)],
    "TaintToleration": [("Node", ADD | NODE_TAINT, True), ("Pod", TOLERATION, True)],
}
OF_1_37 = {
    **REGISTERED,
    "DynamicResources": [
        REGISTERED["DynamicResources"][0],
        ("ResourceClaim", ADD | UPDATE | DELETE, True),
        *REGISTERED["DynamicResources"][2:],
        ("DeviceTaintRule", ADD | UPDATE | DELETE, True),
    ],
    "NodeResourcesFit": [*REGISTERED["NodeResourcesFit"], ("DeviceClass", ADD | UPDATE, True)],
    "NodeDeclaredFeatures": [
        ("Node", ADD | ActionType.UPDATE_NODE_DECLARED_FEATURE, True),
        ("Pod", UPDATE, True),
    ],
}


@pytest.mark.parametrize(
    ("version", "registered"), [pytest.param(V1_34, REGISTERED, id="1.34"), pytest.param(V1_37, OF_1_37, id="1.37")]
)
def test_each_plugin_is_registered_for_the_events_that_may_make_its_pods_schedulable(
    version: KubernetesVersion, registered: dict[str, list[tuple[str, ActionType, bool]]]
) -> None:
    machine = SchedulingMachine(default_config(version=version), seed=1)
    plugins = machine.schedulers["default-scheduler"].profile.plugins.values()
    assert {
        plugin.name: [
            (one.event.resource.value.rpartition("/")[2], one.event.action, one.hint is not None)
            for one in plugin.events_to_register()
        ]
        for plugin in plugins
        if hasattr(plugin, "events_to_register")
    } == registered
