"""What a change of the version changes in the cache: what pods count with that are being resized."""

from kschedd.api.objects import parse
from kschedd.config.kube_versions import V1_34, V1_36
from kschedd.config.load import default_config
from kschedd.scheduling.machine import SchedulingMachine
from tests.actors.clusters import node, pod


def test_a_change_of_version_changes_how_pods_being_resized_count() -> None:
    machine = SchedulingMachine(default_config(version=V1_36))
    resized = pod(nodeName="n1", resources={"requests": {"cpu": "1"}})
    resized = {**resized, "status": {"resources": {"requests": {"cpu": "3"}}}}
    machine.cluster.load(map(parse, (node(), resized)))
    table = machine.cluster.table
    cpu = table.resource("cpu")
    assert table.requested[cpu, 0] == 3000
    machine.reconfigure(default_config(version=V1_34))
    assert table.requested[cpu, 0] == 1000
