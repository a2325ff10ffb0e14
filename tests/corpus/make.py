"""Files of a release, which every later release must read.

    python -m tests.corpus.make        # writes tests/corpus/VERSION for the present version

| file | content |
|---|---|
| `conversation.jsonl.gz` | requests over the socket and over REST, and command lines, with their answers |
| `config.yaml` | the configuration of the daemon of this conversation |
| `state.tar.gz`, `objects.json.gz` | the state folder of this daemon after a `kill -9`; its objects |
| `snapshot` | the same state as a snapshot |
| `recording.rec`, `recording.jsonl` | the recording of this daemon, and its decisions |
| `dump.json.gz`, `placements.json` | a dump, and the nodes of its pods in a cluster made from it |
| `scenario.txt` | a scenario with expectations and JSON output; written by hand |
| `interface.txt` | the public interface; test_interface.py writes it |

Renew the files of a version only before its release.
"""

import gzip
import io
import json
import shutil
import tarfile
import tempfile
from collections.abc import Iterable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from kschedd import Cluster
from tests.corpus.steps import RELEASED, Conversation, Raw, command, corpus_daemon
from tests.simulation.replay.test_replay import replayed

CONFIG: Final = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
- schedulerName: packing
  pluginConfig:
  - name: NodeResourcesFit
    args: {scoringStrategy: {type: MostAllocated}}
"""


def _node(name: str, cpu: str, **spec: Any) -> Raw:
    room = {"cpu": cpu, "memory": "16Gi", "pods": "110"}
    labels = {"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": f"zone-{name[-1]}"}
    meta = {"name": name, "labels": labels}
    return {"apiVersion": "v1", "kind": "Node", "metadata": meta, "spec": spec, "status": {"capacity": room}}


def _pod(name: str, cpu: str, **spec: Any) -> Raw:
    container = {"name": "app", "image": "example.com/app:1", "resources": {"requests": {"cpu": cpu}}}
    meta = {"name": name, "namespace": "shop", "labels": {"app": name}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {"containers": [container], **spec}}


def _workload(kind: str, name: str, replicas: int, cpu: str, **more: Any) -> Raw:
    template = {"metadata": {"labels": {"app": name}}, "spec": _pod(name, cpu)["spec"]}
    meta = {"name": name, "namespace": "shop"}
    spec = {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": template, **more}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": meta, "spec": spec}


_BASE: Final[list[Raw]] = [
    {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}},
    {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 1000},
    _node("node-a", "4"),
    _node("node-b", "4"),
    _node("node-c", "8", taints=[{"key": "dedicated", "value": "batch", "effect": "NoSchedule"}]),
    {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"minAvailable": 3, "selector": {"matchLabels": {"app": "web"}}},
    },
    {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data", "namespace": "shop"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    },
]
#: each is applied when all work for the previous one is done: decisions must not depend on the speed of the machine
_WORKLOADS: Final = (
    _workload("Deployment", "web", 3, "500m"),
    _workload("StatefulSet", "store", 2, "1", serviceName="store"),
    _pod("packed", "250m", schedulerName="packing"),
    _pod("gated", "100m", schedulingGates=[{"name": "example.com/quota"}]),
    _pod("big", "16"),
)
_PODS: Final = "/api/v1/namespaces/shop/pods"


def steps() -> Iterator[Raw]:
    """Yield the requests of the conversation, in order."""
    yield {"method": "rpc.ping", "params": {}}
    yield {"method": "objects.apply", "params": {"manifests": _BASE}}
    for each in _WORKLOADS:
        yield {"command": ["advance", "30s"]}
        yield {"method": "objects.apply", "params": {"manifests": each}}
    yield {"command": ["advance", "30s"]}
    yield {"method": "objects.list", "params": {"kind": "Pod", "namespace": "shop"}}
    yield {"method": "objects.get", "params": {"kind": "Node", "name": "node-a"}}
    yield {"method": "objects.get", "params": {"kind": "Pod", "name": "none", "namespace": "shop"}}
    yield {"method": "objects.get", "params": {"kind": "Pod", "nmae": "web"}}
    yield {"method": "no.such", "params": {}}
    yield {"method": "queue.list", "params": {}}
    yield {"method": "scheduler.decisions", "params": {}}
    yield {"method": "scheduler.explain", "params": {"pod": "shop/big"}}
    yield {"method": "causes.explain", "params": {"kind": "Pod", "name": "big", "namespace": "shop"}}
    yield {"method": "causes.pending", "params": {}}
    yield {"method": "capacity.pods", "params": {"manifests": [_pod("more", "1")]}}
    yield {"method": "nodes.cordon", "params": {"name": "node-b"}}
    yield {"method": "pods.evict", "params": {"name": "store-0", "namespace": "shop"}}
    yield {"command": ["advance", "60s"]}
    yield {"method": "nodes.uncordon", "params": {"name": "node-b"}}
    yield {"method": "time.get", "params": {}}
    yield {"request": "GET", "path": "/api/v1"}
    yield {"request": "POST", "path": _PODS, "body": _pod("rest", "100m")}
    yield {"command": ["advance", "30s"]}
    yield {"request": "POST", "path": _PODS, "body": _pod("rest", "100m")}
    yield {"request": "GET", "path": f"{_PODS}/none"}
    yield {"request": "GET", "path": f"{_PODS}?labelSelector=app%3Dstore"}
    scale = {"spec": {"replicas": 4}}
    path = "/apis/apps/v1/namespaces/shop/deployments/web"
    yield {"request": "PATCH", "path": path, "body": scale, "type": "application/merge-patch+json"}
    yield {"command": ["advance", "60s"]}
    yield {"request": "GET", "path": "/apis/apps/v1/namespaces/shop/deployments"}
    yield {"request": "DELETE", "path": f"{_PODS}/rest"}
    json_output = ["-o", "json"]
    yield {"command": ["get", "pods", "-n", "shop", *json_output]}
    yield {"command": ["explain", "pod/big", "-n", "shop", *json_output]}
    yield {"command": ["explain", "--pending", "-A", *json_output]}
    yield {"command": ["plan", *json_output, "drain", "node-b"]}
    yield {"command": ["capacity", "deployment/web", "-n", "shop", *json_output]}
    yield {"command": ["queue", *json_output]}
    yield {"command": ["status", *json_output]}
    yield {"command": ["expect", "1", "pods", "gated", "-n", "shop"]}
    yield {"command": ["expect", "9", "pods", "gated", "-n", "shop"]}
    yield {"command": ["get", "pods", "--no-such-flag"]}
    yield {"command": ["get", "pod", "none", "-n", "shop"]}
    yield {"command": ["apply", "-f", "-"], "given": "kind: Pod\n"}


def _write(file: Path, values: Iterable[Any]) -> None:
    lines = "".join(json.dumps(value, sort_keys=True) + "\n" for value in values)
    data = lines.encode()
    file.write_bytes(gzip.compress(data, mtime=0) if file.suffix == ".gz" else data)


def pack(folder: Path, file: Path) -> None:
    """Write a folder as an archive; equal folders give equal archives."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for each in sorted(folder.iterdir()):
            entry = tarfile.TarInfo(each.name)
            entry.size, entry.mode = each.stat().st_size, 0o600
            with each.open("rb") as content:
                archive.addfile(entry, content)
    file.write_bytes(gzip.compress(packed.getvalue(), mtime=0))


def objects_of(conversation: Conversation) -> Raw:
    """Return the objects that a daemon serves, by kind and name, except Events, which the journal does not keep."""
    kinds = conversation.call("objects.kinds", {})["result"]
    found: Raw = {}
    for kind in (each for each in kinds if each["count"] and each["name"] != "Event"):
        listed = conversation.call("objects.list", {"kind": kind["name"]})["result"]["items"]
        for each in listed:
            meta = each["metadata"]
            found[f"{kind['name']}/{meta.get('namespace', '')}/{meta['name']}"] = each
    return found


def placements_of(dump: Path) -> Raw:
    """Return the nodes of the pods of a dump in a cluster made from it, and the causes of pending pods."""
    with Cluster.from_dump(dump) as cluster:
        causes = sorted([each.code, each.count] for each in cluster.causes())
        return {"placements": cluster.placements(), "causes": causes}


def main() -> None:
    folder = RELEASED / version("kschedd")
    folder.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary:
        work = Path(temporary)
        (folder / "config.yaml").write_text(CONFIG, encoding="utf-8")
        flags = ("--config", str(folder / "config.yaml"), "--record", str(work / "recording.rec"))
        with corpus_daemon(work, *flags) as conversation:
            _write(
                folder / "conversation.jsonl.gz", ({**step, "answer": conversation.answer(step)} for step in steps())
            )
            _write(folder / "objects.json.gz", [objects_of(conversation)])
            saved = (
                ("snapshot", "save", str(work / "snapshot")),
                ("save", str(work / "dump.json.gz")),
                ("record", "stop"),
            )
            for words in saved:
                assert command(work / "k.sock", words)[0] == 0, words
        for name in ("recording.rec", "snapshot", "dump.json.gz"):
            shutil.copyfile(work / name, folder / name)
        pack(work / "state", folder / "state.tar.gz")
    (folder / "recording.jsonl").write_text(replayed(folder / "recording.rec")[0], encoding="utf-8")
    _write(folder / "placements.json", [placements_of(folder / "dump.json.gz")])


if __name__ == "__main__":
    main()
