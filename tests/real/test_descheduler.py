"""A cycle of the real descheduler against a daemon evicts the pods that `kschedd deschedule` names.

DESCHEDULER names the program; without it, the tests are skipped. CONTRIBUTING.md describes how to build it.
"""

import json
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.command_line_daemons import CommandLineDaemon, command_line_daemon
from tests.real.test_components import items, program

HEAD = """\
apiVersion: descheduler/v1alpha2
kind: DeschedulerPolicy
profiles:
- name: p
  pluginConfig:
  - {name: DefaultEvictor, args: {nodeFit: true}}
"""
STRATEGIES = {
    "PodLifeTime": ("deschedule", "{maxPodLifeTimeSeconds: 0, labelSelector: {matchLabels: {app: old}}}"),
    "RemovePodsViolatingNodeTaints": ("deschedule", "{}"),
    "RemovePodsViolatingNodeAffinity": (
        "deschedule",
        "{nodeAffinityType: [requiredDuringSchedulingIgnoredDuringExecution]}",
    ),
    "RemoveDuplicates": ("balance", "{}"),
    "LowNodeUtilization": ("balance", "{thresholds: {cpu: 5}, targetThresholds: {cpu: 10}}"),
}
AFFINITY = {
    "nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [{"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}]
        }
    }
}


def deployment(name: str, replicas: int, **spec: Any) -> dict[str, Any]:
    container = {"name": "c", "image": "a", "resources": {"requests": {"cpu": "500m"}}}
    template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [container], **spec}}
    selector = {"matchLabels": {"app": name}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"replicas": replicas, "selector": selector, "template": template},
    }


def prepare(daemon: CommandLineDaemon) -> None:
    """Place all pods on two of four nodes, and then change the nodes so that each strategy has something to evict."""
    daemon.kschedd("label", "node", "n1", "disk=ssd")
    daemon.kschedd("cordon", "n3", "n4")
    workloads = [deployment("web", 5), deployment("old", 2), deployment("fast", 2, affinity=AFFINITY)]
    daemon.kschedd("apply", "-f", "-", given=json.dumps({"apiVersion": "v1", "kind": "List", "items": workloads}))
    for each in workloads:
        daemon.kschedd("rollout", "status", f"deployment/{each['metadata']['name']}", "--timeout=60s")
    daemon.kschedd("uncordon", "n3", "n4")
    daemon.kschedd("label", "node", "n1", "disk-")
    daemon.kschedd("label", "node", "n3", "disk=ssd")
    daemon.kschedd("taint", "node", "n2", "dedicated=db:NoSchedule")


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_real_descheduler_evicts_the_same_pods(strategy: str, tmp_path: Path) -> None:
    path = program("DESCHEDULER")
    point, args = STRATEGIES[strategy]
    policy = tmp_path / "policy.yaml"
    enabled = f"{{{point}: {{enabled: [{strategy}]}}}}"
    policy.write_text(f"{HEAD}  - {{name: {strategy}, args: {args}}}\n  plugins: {enabled}\n")
    with command_line_daemon(tmp_path, nodes=4) as daemon:
        prepare(daemon)
        expected = json.loads(daemon.kschedd("deschedule", "-f", str(policy), "--dry-run", "-o", "json"))["evicted"]
        before = {pod["metadata"]["name"]: pod["spec"]["nodeName"] for pod in items(daemon, "pods")}
        daemon.kubeconfig()
        flags = ("--descheduling-interval=0", "--secure-port=0", "-v=2")
        log = subprocess.run(
            [path, f"--kubeconfig={tmp_path / 'kubeconfig'}", f"--policy-config-file={policy}", *flags],
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert log.returncode == 0, log.stderr[-2000:]
        after = {pod["metadata"]["name"] for pod in items(daemon, "pods") if "deletionTimestamp" not in pod["metadata"]}
    evicted = {name: node for name, node in before.items() if name not in after}
    named = {each["name"]: each["node"] for each in expected}
    assert named
    if point == "deschedule":
        assert evicted == named, log.stderr[-3000:]
    else:  # the choice among equal pods of a node is random
        assert Counter(evicted.values()) == Counter(named.values()), log.stderr[-3000:]
