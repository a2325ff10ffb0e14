"""Tests of volumes in use: disks for a single pod on a node, and claims for a single node."""

from pathlib import Path

from kschedd.clusters.virtual import VirtualCluster, VirtualDaemon
from kschedd.methods import cluster_methods
from kschedd.sdk.objects import node, pod
from tests.causes.test_created import diagnosed

NODE = """
apiVersion: v1
kind: Node
metadata: {name: n1}
status: {allocatable: {cpu: "4", memory: 8Gi, pods: "9"}, capacity: {cpu: "4", memory: 8Gi, pods: "9"}}
---
"""
DISK = "volumes: [{name: data, gcePersistentDisk: {pdName: data-1}}], containers: [{name: c, image: i}]"


def test_a_disk_that_another_pod_uses_is_named(tmp_path: Path) -> None:
    manifests = (
        NODE
        + f"""
apiVersion: apps/v1
kind: Deployment
metadata: {{name: db}}
spec:
  replicas: 2
  selector: {{matchLabels: {{app: db}}}}
  template: {{metadata: {{labels: {{app: db}}}}, spec: {{{DISK}}}}}
"""
    )
    found = diagnosed(tmp_path, manifests, "Deployment", "db")
    assert found["cause"]["code"] == "DiskInUse"
    assert found["cause"]["message"].startswith("the gcePersistentDisk of volume data serves one pod on a node, and ")
    assert found["remedies"][0]["scheduled"] in ("1 of 1", "2 of 2")


def test_a_volume_that_two_nodes_would_have_to_attach_is_named() -> None:
    cluster = VirtualCluster(controlled=False)
    store, labels = cluster.engine.store, {"app": "wiki"}
    for name in ("n1", "n2"):
        store.create(node(name))
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, "volumeName": "pv"}
    meta = {"name": "data", "namespace": "default"}
    store.create({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": meta, "spec": spec})
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    template = {"metadata": {"labels": labels}, "spec": {**pod("x")["spec"], "volumes": volumes}}
    wiki = {"replicas": 2, "selector": {"matchLabels": labels}, "template": template}
    named = {"name": "wiki", "namespace": "default"}
    owner = store.create({"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": named, "spec": wiki})
    reference = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "wiki", "uid": owner.uid, "controller": True}
    for number, state in ((1, "True"), (2, "False")):
        raw = pod(f"wiki-{number}")
        raw["metadata"] |= {"labels": labels, "ownerReferences": [reference]}
        raw["spec"] |= {"volumes": volumes, "nodeName": f"n{number}"}
        store.create(raw)
        status = {"phase": "Running" if number == 1 else "Pending", "conditions": [{"type": "Ready", "status": state}]}
        store.update({**raw, "status": status}, with_status=True)
    cluster.engine.run_until_idle()
    found = VirtualDaemon(cluster, cluster_methods).call("causes.explain", kind="ReplicaSet", name="wiki")
    assert found["cause"]["code"] == "VolumeOnTwoNodes"
    assert found["cause"]["message"] == (
        "claim data is ReadWriteOnce: pod wiki-1 uses it on n1, so wiki-2 cannot start on n2"
    )


def test_a_disk_for_pods_on_two_nodes_is_named_though_the_kubelets_here_run_them(tmp_path: Path) -> None:
    other = NODE.replace("n1", "n2")
    disk = """
apiVersion: v1
kind: PersistentVolume
metadata: {name: pv}
spec:
  capacity: {storage: 1Gi}
  accessModes: [ReadWriteOnce]
  storageClassName: disks
  %s
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec: {accessModes: [ReadWriteOnce], storageClassName: disks, volumeName: pv, resources: {requests: {storage: 1Gi}}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: wiki}
spec:
  replicas: 2
  selector: {matchLabels: {app: wiki}}
  template:
    metadata: {labels: {app: wiki}}
    spec:
      containers: [{name: c, image: i, resources: {requests: {cpu: "3"}}}]
      volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]
"""
    for source, code in (
        ("csi: {driver: disks.example.com, volumeHandle: pv}", "VolumeOnTwoNodes"),
        ("nfs: {server: files.example.com, path: /}", "NothingIsWrong"),
    ):
        found = diagnosed(tmp_path, NODE + other + disk % source, "Deployment", "wiki")
        assert found["cause"]["code"] == code


def test_a_lost_claim_names_the_claim_that_its_volume_refers_to(tmp_path: Path) -> None:
    restored = """
apiVersion: v1
kind: PersistentVolume
metadata: {name: pv1, uid: 8d9ab5c0-0000-4000-8000-000000000001}
spec:
  capacity: {storage: 1Gi}
  accessModes: [ReadWriteOnce]
  storageClassName: gp3
  persistentVolumeReclaimPolicy: Retain
  volumeMode: Filesystem
  csi: {driver: d, volumeHandle: h}
  claimRef: {kind: PersistentVolumeClaim, namespace: default, name: data, uid: 8d9ab5c0-0000-4000-8000-00000000000a}
status: {phase: Released}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata:
  name: data
  namespace: default
  uid: 8d9ab5c0-0000-4000-8000-00000000000b
  annotations: {pv.kubernetes.io/bind-completed: "yes"}
spec:
  accessModes: [ReadWriteOnce]
  storageClassName: gp3
  volumeName: pv1
  volumeMode: Filesystem
  resources: {requests: {storage: 1Gi}}
status: {phase: Lost}
---
apiVersion: v1
kind: Pod
metadata: {name: db}
spec: {volumes: [{name: d, persistentVolumeClaim: {claimName: data}}], containers: [{name: c, image: i}]}
"""
    found = diagnosed(tmp_path, NODE + restored, "Pod", "db")
    assert found["cause"]["code"] == "VolumeReleased"
    assert "an earlier claim of that name, which was deleted" in found["cause"]["message"]
    assert found["remedies"][0]["scheduled"] == "1 of 1"
