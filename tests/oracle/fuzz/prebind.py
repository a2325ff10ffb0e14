"""Volumes bound in PreBind, by kube-scheduler and by kschedd: `python -m tests.oracle.fuzz.prebind --oracle PATH`.

A pod is reserved on a node and the scheduler writes its volumes. Then the volume controller, a provisioner and other
clients change the cluster step by step, in expected and unexpected ways, and after each step the scheduler checks
whether all volumes are bound. After an error, another attempt follows. The writes, the checks, and the verdicts of the
next attempt are compared.
"""

import argparse
import copy
import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from kschedd.api.objects import Object, parse
from kschedd.api.pods import Pod
from kschedd.config.loading.load import config_from_raw
from kschedd.config.versions.kube_versions import KubernetesVersion, kube_version
from kschedd.framework.interface import RESERVE
from kschedd.framework.status import Code
from kschedd.framework.writes import Plan, Update
from kschedd.plugins.volumes.volumebinding import VolumeBinding
from kschedd.scheduling.attempt.outcome import FitError, ScheduleResult
from kschedd.scheduling.debug.work import drive
from kschedd.scheduling.machine import SchedulingMachine
from tests.oracle.answers import ask
from tests.oracle.fuzz.cluster import cluster_of, pod
from tests.oracle.fuzz.draws import HOSTNAME, ZONE, Draw, Raw
from tests.oracle.fuzz.volumes import DRIVER, claim, classes, mount

MODE: Final = "prebind"
SELECTED: Final = "volume.kubernetes.io/selected-node"
MIGRATED: Final = "storage.alpha.kubernetes.io/migrated-plugins"
COMPLETED: Final = "pv.kubernetes.io/bind-completed"
BINDING: Final = "binding volumes: "
CLAIM, VOLUME = "PersistentVolumeClaim", "PersistentVolume"


def prebind(seed: int, number: int, minor: int) -> Raw:
    """Return a pod with volumes to bind, and its node, without steps."""
    draw = Draw(f"{seed}/prebind/{number}")
    cluster = cluster_of(draw, minor, draw.randint(1, 6))
    classes(cluster)
    created = pod(cluster)
    created["spec"]["containers"][0]["resources"] = {}
    for _ in range(draw.randint(1, 3)):
        kind = draw.choice(("local", "local", "dynamic", "dynamic", "bound"))
        mount(created, claim(cluster, created["metadata"]["namespace"], kind))
    for one in cluster.others:
        if one["kind"] == VOLUME and draw.chance(25):
            del one["spec"]["csi"]  # A CSI driver serves volumes of this type.
            one["spec"]["awsElasticBlockStore"] = {"volumeID": draw.choice(("vol-1", "aws://zone-a/vol-2", "aws://"))}
    chosen = draw.choice(cluster.nodes)
    chosen["spec"] = {}
    if draw.chance(60):
        created["spec"]["nodeSelector"] = {HOSTNAME: chosen["metadata"]["name"]}
    if draw.chance(40):
        spec = {"drivers": [{"name": DRIVER, "nodeID": "n", "topologyKeys": [HOSTNAME]}]}
        found = cluster.add("CSINode", "storage.k8s.io/v1", chosen["metadata"]["name"], spec=spec)
        found["metadata"]["annotations"] = {MIGRATED: "kubernetes.io/aws-ebs"}
    return {
        "id": f"prebind/{seed}-{number}",
        "config": None,
        "objects": cluster.objects,
        "pod": created,
        "node": chosen["metadata"]["name"],
        "steps": [],
    }


class World:
    """Changes of a cluster after the scheduler's writes. `now` has the current objects of the API server."""

    def __init__(self, record: Raw, writes: Sequence[Raw], draw: Draw) -> None:
        self.record, self.draw = record, draw
        self.now = {_key(one): one for one in (*record["objects"], record["pod"])}
        self.unseen = {_key(one): one for one in writes}
        self.written = [_key(one) for one in writes]
        self.now.update(self.unseen)
        self._version = 10

    def step(self) -> list[Raw]:
        """Return the changes of one step, as the scheduler sees them."""
        draw, changes = self.draw, list[Raw]()
        for key in list(self.unseen):
            if draw.chance(70):
                changes.append(_upsert(self.unseen.pop(key)))
        for _ in range(draw.choice((0, 1, 1, 1, 2))):
            changes += draw.choice(self._others if draw.chance(30) else self._usual)()
        return changes

    @property
    def _usual(self) -> list[Callable[[], list[Raw]]]:
        return [self._bind, self._bind, self._bind, self._bind_claim_first, self._fail]

    @property
    def _others(self) -> list[Callable[[], list[Raw]]]:
        return [self._choose_another, self._unbind, self._touch, self._delete, self._relabel, self._move_volume]

    def _put(self, obj: Raw) -> list[Raw]:
        self._version += 1
        obj["metadata"]["resourceVersion"] = str(self._version)
        self.now[_key(obj)] = obj
        self.unseen.pop(_key(obj), None)
        return [_upsert(copy.deepcopy(obj))]

    def _object(self, *kinds: str) -> Raw | None:
        """Return a copy of a written object that still exists."""
        known = [self.now[key] for key in self.written if key in self.now and key[0] in kinds]
        return copy.deepcopy(self.draw.choice(known)) if known else None

    def _claim(self) -> tuple[Raw, Raw] | None:
        """Return an unbound claim with its volume (written by the scheduler, or new)."""
        found = self._object(CLAIM, VOLUME)
        if found is None:
            return None
        if found["kind"] == CLAIM:
            return found, self._provisioned(found)
        reference = found["spec"].get("claimRef") or {}
        key = (CLAIM, reference.get("namespace", ""), reference.get("name", ""))
        return (copy.deepcopy(self.now[key]), found) if key in self.now else None

    def _provisioned(self, owner: Raw) -> Raw:
        draw, meta = self.draw, owner["metadata"]
        name = f"pvc-{meta['name']}"
        if (VOLUME, "", name) in self.now:
            return copy.deepcopy(self.now[VOLUME, "", name])
        reference = {"kind": CLAIM, "apiVersion": "v1", **{key: meta[key] for key in ("namespace", "name", "uid")}}
        spec: Raw = {
            "capacity": {"storage": "1Gi"},
            "accessModes": owner["spec"]["accessModes"],
            "persistentVolumeReclaimPolicy": "Delete",
            "volumeMode": "Filesystem",
            "storageClassName": owner["spec"]["storageClassName"],
            "csi": {"driver": DRIVER, "volumeHandle": name},
            "claimRef": reference,
        }
        if draw.chance(60):
            spec["nodeAffinity"] = self._affinity()
        meta = {"name": name, "uid": f"uid-{name}"}
        return {"apiVersion": "v1", "kind": VOLUME, "metadata": meta, "spec": spec, "status": {"phase": "Available"}}

    def _affinity(self) -> Raw:
        names = [one["metadata"]["name"] for one in self.record["objects"] if one["kind"] == "Node"]
        wanted = self.draw.choice((self.record["node"], self.record["node"], self.draw.choice(names)))
        term = {"key": HOSTNAME, "operator": "In", "values": [wanted]}
        if self.draw.chance(30):
            term = {"key": ZONE, "operator": "In", "values": [self.draw.choice(("zone-a", "zone-b"))]}
        return {"required": {"nodeSelectorTerms": [{"matchExpressions": [term]}]}}

    def _bind(self, *, claim_first: bool = False) -> list[Raw]:
        """Bind a claim to its volume as the volume controller does, sometimes only partly."""
        pair = self._claim()
        if pair is None:
            return []
        owner, volume = pair
        volume["status"]["phase"] = owner["status"]["phase"] = "Bound"
        owner["spec"]["volumeName"] = volume["metadata"]["name"]
        if self.draw.chance(85):
            owner["metadata"].setdefault("annotations", {})[COMPLETED] = "yes"
        made, bound = self._put(volume), self._put(owner)
        return bound if claim_first else [*made, *(bound if self.draw.chance(85) else ())]

    def _bind_claim_first(self) -> list[Raw]:
        return self._bind(claim_first=True)

    def _fail(self) -> list[Raw]:
        """Remove the selected node, as a failing provisioner does."""
        found = self._object(CLAIM)
        if found is None:
            return []
        annotations = found["metadata"].get("annotations") or {}
        annotations.pop(SELECTED, None)
        if self.draw.chance(30):
            annotations["a"] = "b"
        found["metadata"]["annotations"] = annotations
        if not annotations:
            del found["metadata"]["annotations"]  # an API server omits an empty map
        return self._put(found)

    def _choose_another(self) -> list[Raw]:
        found = self._object(CLAIM)
        if found is None:
            return []
        found["metadata"].setdefault("annotations", {})[SELECTED] = self.draw.choice(("another", "node-000"))
        return self._put(found)

    def _unbind(self) -> list[Raw]:
        found = self._object(VOLUME)
        if found is None or not found["spec"].get("claimRef"):
            return []
        if self.draw.chance(50):
            del found["spec"]["claimRef"]
        else:
            found["spec"]["claimRef"].pop("uid", None)
        return self._put(found)

    def _touch(self) -> list[Raw]:
        """Change a label of an object that the scheduler has written."""
        found = self._object(CLAIM, VOLUME)
        if found is None:
            return []
        found["metadata"].setdefault("labels", {})["touched"] = str(self._version)
        return self._put(found)

    def _move_volume(self) -> list[Raw]:
        found = self._object(VOLUME)
        if found is None:
            return []
        found["spec"]["nodeAffinity"] = self._affinity()
        return self._put(found)

    def _delete(self) -> list[Raw]:
        node = ("Node", "", self.record["node"])
        key = self.draw.choice([*self.written, *self.written, _key(self.record["pod"]), node])
        found = self.now.pop(key, None)
        self.unseen.pop(key, None)
        return [] if found is None else [{"op": "delete", "object": found}]

    def _relabel(self) -> list[Raw]:
        key = ("Node", "", self.record["node"])
        if key not in self.now:
            return []
        found = copy.deepcopy(self.now[key])
        found["metadata"]["labels"] |= {self.draw.choice((HOSTNAME, ZONE)): self.draw.choice(("zone-a", "zone-z"))}
        return self._put(found)


def _key(raw: Raw) -> tuple[str, str, str]:
    return raw["kind"], raw["metadata"].get("namespace", ""), raw["metadata"]["name"]


def _upsert(raw: Raw) -> Raw:
    return {"op": "update", "object": raw}


def with_steps(record: Raw, writes: Sequence[Raw]) -> Raw:
    """Return the record with two to eight steps after these writes of the scheduler."""
    draw = Draw(f"{record['id']}/steps")
    world = World(record, writes, draw)
    return {**record, "steps": [world.step() for _ in range(draw.randint(2, 8))]}


def with_kinds(writes: Sequence[Raw]) -> list[Raw]:
    """Return written objects with their kinds, which the client's answers leave out."""
    kinds = [VOLUME if "capacity" in one["spec"] else CLAIM for one in writes]
    return [{"apiVersion": "v1", **one, "kind": kind} for one, kind in zip(writes, kinds, strict=True)]


# -- kschedd ---------------------------------------------------------------------------------------------------


class NothingToBind(Exception):
    """No node is feasible for the pod, or all its volumes are bound."""


def decided(record: Raw, version: KubernetesVersion) -> Raw:
    """Return kschedd's writes, checks, and verdicts of the next attempt, in the oracle's form. Raises NothingToBind."""
    machine = SchedulingMachine(config_from_raw(record["config"], version=version))
    cluster = machine.cluster
    cluster.load(map(parse, record["objects"]))
    wanted = Pod.from_raw(record["pod"])
    result = drive(machine.begin(wanted, {}))
    if not isinstance(result, ScheduleResult):
        raise NothingToBind
    scheduler, state, node = machine.schedulers[wanted.scheduler_name], result.state, record["node"]
    assumed = cluster.assume(wanted, node)
    for plugin in scheduler.profile.at(RESERVE):
        status = plugin.reserve(state, assumed, node)
        if status is not None and status.code != Code.SUCCESS:
            return {"reserve": status.message, "writes": [], "checks": []}
    [binder] = [one for one in scheduler.profile.at(RESERVE) if isinstance(one, VolumeBinding)]
    plan = binder.pre_bind(state, assumed, node)
    if not isinstance(plan, Plan):
        raise NothingToBind
    assert plan.ready is not None, "volumes are waited for"
    answer: Raw = {"writes": [dict(one.raw) for one in plan.writes if isinstance(one, Update)], "checks": []}
    for changes in record["steps"]:
        for change in changes:
            _change(machine, change, assumed)
        status = plan.ready(cluster)
        if status is None:
            answer["checks"].append("waits")
        elif status.code is Code.SUCCESS:
            answer["checks"].append("bound")
            break
        else:
            answer["checks"].append(status.message.removeprefix(BINDING))
            for plugin in reversed(scheduler.profile.at(RESERVE)):
                plugin.unreserve(state, assumed, node)
            cluster.forget(assumed)
            answer["again"] = _verdicts(drive(machine.begin(wanted, {}))) if len(cluster.table.row_of) else {}
            break
    return answer


def _change(machine: SchedulingMachine, change: Raw, assumed: Pod) -> None:
    obj: Object = parse(change["object"])
    if isinstance(obj, Pod):
        machine.cluster.mark_deleted(assumed)
    elif change["op"] == "delete":
        machine.cluster.remove(obj)
    else:
        machine.cluster.put(obj)


def _verdicts(result: ScheduleResult | FitError) -> Raw:
    verdicts = result.verdicts if isinstance(result, ScheduleResult) else result.diagnosis.verdicts
    if verdicts is None:
        assert isinstance(result, FitError), "an attempt that ends in PreFilter has no node"
        rejected = result.diagnosis.pre_filter
        return {"prefilter": result.status.message if rejected is None else rejected.message}
    return {name: None if status is None else status.message for name, status in verdicts.by_node()}


# -- the comparison ----------------------------------------------------------------------------------------------


def differences(wanted: Raw, found: Raw) -> Iterator[str]:
    """Yield the differences, for writes only in fields that VolumeBinding sets."""
    for name, seen in (("reserve", _same), ("writes", _written), ("checks", _same), ("again", _same)):
        want, got = seen(wanted.get(name)), seen(found.get(name))
        if want != got:
            yield f"{name}: want {want!r}, got {got!r}"


def _same(value: Any) -> Any:
    return value or None


def _written(writes: Sequence[Raw] | None) -> Any:
    return [
        (
            one["metadata"]["name"],
            one["metadata"].get("annotations") or {},
            (one["spec"].get("claimRef") or {}).get("name"),
        )
        for one in writes or ()
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    minor = int(options.kube_version.name.split(".")[1])
    counts, different = Counter[str](), list[Raw]()
    for start in range(options.first, options.first + options.inputs, 100):
        numbers = range(start, min(start + 100, options.first + options.inputs))
        made = [prebind(options.seed, number, minor) for number in numbers]
        first = ask(options.oracle, MODE, made)
        usable = [one for one in made if not first[one["id"]].get("refused")]
        counts["without work"] += len(made) - len(usable)
        full = [with_steps(one, with_kinds(first[one["id"]]["writes"])) for one in usable]
        answers = ask(options.oracle, MODE, full)
        for record in full:
            wanted = answers[record["id"]]
            found = list(differences(wanted, decided(record, options.kube_version)))
            counts["differ" if found else "equal"] += 1
            counts[f"ends: {_end(wanted)}"] += 1
            for text in found:
                print(f"{record['id']}: {text}", flush=True)
            if found:
                different.append({**record, "want": wanted})
    for name, count in sorted(counts.items()):
        print(f"{count:>6} {name}")
    if options.out:
        options.out.write("".join(json.dumps(one) + "\n" for one in different))
    return 1 if different else 0


def _end(wanted: Raw) -> str:
    last = (wanted["checks"] or ["nothing"])[-1]
    return " ".join(word for word in last.split() if '"' not in word)


def _parser() -> argparse.ArgumentParser:
    found = argparse.ArgumentParser(prog="python -m tests.oracle.fuzz.prebind", description=__doc__)
    found.add_argument("--oracle", required=True, help="path of an oracle that tests/oracle/build has made")
    found.add_argument("--kube-version", required=True, type=kube_version, help="its release, e.g. 1.36")
    found.add_argument("--inputs", type=int, default=200, help="number of pods (default: 200)")
    found.add_argument("--seed", type=int, default=1, help="seed of all draws (default: 1)")
    found.add_argument("--first", type=int, default=0, help="number of the first pod")
    found.add_argument("--out", type=argparse.FileType("w"), help="file for the records that differ")
    return found


if __name__ == "__main__":
    sys.exit(main())
