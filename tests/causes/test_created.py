"""Tests of pods that controllers cannot create: each cause is named, and the remedy solves all of them."""

from pathlib import Path
from typing import Any

from kschedd.scenarios.commands import ScenarioCluster

REFUSED = """
apiVersion: v1
kind: Node
metadata: {name: n1}
status: {allocatable: {cpu: "4", memory: 8Gi, pods: "9"}, capacity: {cpu: "4", memory: 8Gi, pods: "9"}}
---
apiVersion: v1
kind: Namespace
metadata: {name: ps, labels: {pod-security.kubernetes.io/enforce: restricted}}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: sts, namespace: ps}
spec:
  serviceName: s
  selector: {matchLabels: {app: s}}
  template:
    metadata: {labels: {app: s}}
    spec: {priorityClassName: nosuch, nodeSelector: {kubernetes.io/os: lunix}, containers: [{name: c, image: i}]}
"""


def diagnosed(folder: Path, manifests: str, kind: str, name: str, namespace: str = "default") -> dict[str, Any]:
    cluster = ScenarioCluster(folder)
    assert "error" not in cluster.do("apply", manifests)
    cluster.do("advance 60s", "")
    found: dict[str, Any] = cluster.connect().call("causes.explain", kind=kind, name=name, namespace=namespace)
    return found


def test_causes_that_show_one_after_the_other_are_all_named(tmp_path: Path) -> None:
    found = diagnosed(tmp_path, REFUSED, "StatefulSet", "sts", "ps")
    codes = [cause["code"] for cause in (found["cause"], *found["also"])]
    assert codes == ["PriorityClassMissing", "PodSecurityViolated", "NodeLabelMisspelled"]
    first = found["remedies"][0]
    assert first["scheduled"] == "1 of 1"
    assert first["summary"].startswith("name no PriorityClass, meet PodSecurity restricted:latest in the template and ")


LIMITED = """
apiVersion: v1
kind: Node
metadata: {name: m}
status: {allocatable: {cpu: "4", memory: 8Gi, pods: "9"}, capacity: {cpu: "4", memory: 8Gi, pods: "9"}}
spec: {taints: [{key: hello, effect: NoExecute}]}
---
apiVersion: v1
kind: Pod
metadata: {name: a}
spec:
  tolerations: [{key: hello, operator: Exists, effect: NoExecute, tolerationSeconds: 100}]
  containers: [{name: c, image: i}]
"""


def test_only_the_toleration_of_the_taint_loses_its_limit(tmp_path: Path) -> None:
    found = diagnosed(tmp_path, LIMITED, "Pod", "a")
    assert found["cause"]["code"] == "EvictedInALoop"
    (command,) = found["remedies"][0]["commands"]
    assert "tolerationSeconds: 100" not in command
    assert found["remedies"][0]["manifest_diff"].count("-    tolerationSeconds") == 1
    assert "nodeName" not in command, "the scheduler chooses again"


SPARE = """
apiVersion: v1
kind: Node
metadata: {name: %s, labels: {kubernetes.io/hostname: %s}}
status: {allocatable: {cpu: "4", memory: 8Gi, pods: "9"}, capacity: {cpu: "4", memory: 8Gi, pods: "9"}}
---
"""
APART = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      affinity:
        podAntiAffinity:
          requiredDuringSchedulingIgnoredDuringExecution:
          - {topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: web}}}
      containers: [{name: c, image: i}]
"""


def test_a_strategy_that_a_remedy_needs_is_the_old_one_again_afterwards(tmp_path: Path) -> None:
    first = diagnosed(tmp_path, "".join(SPARE % (name, name) for name in ("a", "b")) + APART, "Deployment", "web")
    commands = first["remedies"][0]["commands"]
    assert '"maxSurge":0,"maxUnavailable":2' in commands[0]
    assert commands[-2] == "kschedd rollout status deployment/web -n default --timeout=5m"
    assert '"maxSurge":"25%"' in commands[-1]
    assert "strategy" not in first["remedies"][0]["manifest_diff"]


def test_a_cluster_without_nodes_is_named(tmp_path: Path) -> None:
    found = diagnosed(tmp_path, APART, "Deployment", "web")
    assert found["cause"]["code"] == "NoNodes"
