"""Tests of loading a dump: missing parts are created and reported, invalid parts are left out and reported."""

import json
from pathlib import Path
from typing import Any

import pytest

from kschedd.api.pods import Pod
from kschedd.config.loading.load import default_config
from kschedd.controllers.embedded import embedded_controllers
from kschedd.dumps.assumptions import MOST_KEPT
from kschedd.dumps.loading import LoadOptions, Prepared, prepare, read_dump
from kschedd.dumps.sources import DumpedObject, Sources
from kschedd.framework.registry import Registry
from kschedd.simulation.simulation import Simulation
from tests.dumps.objects import AT, kept, node, pod, uid

Raw = dict[str, Any]
WEB = ("ReplicaSet", "web-abc", 900)


def _prepared(*raws: Raw, **options: Any) -> Prepared:
    sources = Sources([DumpedObject(raw, f"dump:{number}") for number, raw in enumerate(raws)])
    return prepare(sources, lambda key: key[0] == "Namespace" and key[2] == "default", 0.0, LoadOptions(**options))


def _loaded(*raws: Raw, frozen: bool = False, **options: Any) -> Simulation:
    """Return a cluster that has loaded the dump and has no work pending."""
    prepared = _prepared(*raws, **options)
    simulation = Simulation(
        default_config(),
        seed=1,
        registry=Registry(),
        controllers=() if frozen else embedded_controllers(),
        start_s=prepared.taken_at or 0.0,
    )
    simulation.take(prepared)
    assert simulation.finish()
    return simulation


def _by_name(prepared: Prepared, kind: str) -> dict[str, Raw]:
    return {obj.name: dict(obj.raw) for obj in prepared.objects if obj.kind == kind}


def test_objects_stay_what_they_are() -> None:
    raws = [node("n1", 10), pod("a", 30, "n1"), pod("b", 20)]
    simulation = _loaded(*raws, frozen=True)
    a = simulation.store.get("Pod", "default", "a")
    assert isinstance(a, Pod)
    assert (a.uid, a.node_name, a.metadata["creationTimestamp"], a.phase) == (uid(30), "n1", AT, "Running")
    assert a.raw["spec"]["volumes"][0]["name"] == "kube-api-access-00030"
    assert a.raw["spec"]["containers"][0]["volumeMounts"][0]["name"] == "kube-api-access-00030"
    assert simulation.placed == 1
    assert simulation.applied.errors == []


def test_an_object_with_the_uid_of_another_is_named() -> None:
    first, second = node("n1", 10), pod("a", 20)
    second["metadata"]["uid"] = first["metadata"]["uid"]
    prepared = _prepared(first, second, complete=False)
    assert [obj.name for obj in prepared.objects] == ["n1", "a"]
    assert len({obj.uid for obj in prepared.objects}) == 2
    [note] = [text for text in prepared.assumptions.texts() if "UID" in text]
    assert note.startswith("the UID of another object was replaced by a new UID")
    assert note.endswith(": Pod default/a")
    unique = _prepared(first, pod("b", 30), complete=False)
    assert [text for text in unique.assumptions.texts() if "UID" in text] == []


def test_a_pod_keeps_its_ephemeral_containers() -> None:
    plain, debugged = pod("plain", 20, "n1"), pod("debugged", 30, "n1")
    debugged["spec"] |= {"ephemeralContainers": [{"name": "debugger", "image": "busybox"}]}
    simulation = _loaded(node("n1", 10), plain, debugged)
    kept = simulation.store.get("Pod", "default", "debugged").raw["spec"]["ephemeralContainers"]
    assert [(each["name"], each["image"]) for each in kept] == [("debugger", "busybox")]
    assert "ephemeralContainers" not in simulation.store.get("Pod", "default", "plain").raw["spec"]
    assert simulation.applied.errors == []


def test_versions_keep_their_order() -> None:
    prepared = _prepared(pod("late", 300, "n1"), node("n1", 200), pod("early", 100, "n1"), complete=False)
    assert [obj.name for obj in prepared.objects] == ["early", "n1", "late"]


def test_pods_with_token_volumes_share_their_spec() -> None:
    found = [obj for obj in _prepared(pod("a", 1), pod("b", 2)).objects if isinstance(obj, Pod)]
    assert found[0].signature is found[1].signature
    assert found[0].raw["spec"] != found[1].raw["spec"]


def test_workloads_adopt_what_is_theirs_and_make_nothing() -> None:
    labels = {"app": "web", "pod-template-hash": "abc"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"replicas": 2, "selector": {"matchLabels": labels}, "template": template}
    owned = [pod(f"web-abc-{n}", 10 + n, "n1", owner=WEB, labels=labels) for n in range(2)]
    # The ReplicaSet comes last, as the order in a file does not matter.
    raws = [*owned, node("n1", 1), kept("ReplicaSet", "web-abc", 900, api="apps/v1", namespace="default", spec=spec)]
    simulation = _loaded(*raws)
    assert [one.name for one in simulation.store.list("Pod")] == ["web-abc-0", "web-abc-1"]
    assert simulation.decisions == 0


def test_finished_pods_hold_nothing_and_terminating_ones_end() -> None:
    ending = {"deletionTimestamp": AT, "deletionGracePeriodSeconds": 30}
    raws = [
        node("n1", 1, cpu="2"),
        pod("done", 2, "n1", cpu="2", phase="Succeeded"),
        pod("going", 3, "n1", cpu="1", metadata=ending),
        pod("waits", 4, cpu="2"),
    ]
    simulation = _loaded(*raws)
    pods = {one.name: one.raw["spec"].get("nodeName") for one in simulation.store.list("Pod")}
    assert pods == {"done": "n1", "waits": "n1"}


def test_a_silent_node_stays_silent() -> None:
    simulation = _loaded(node("n1", 1, ready="Unknown"), node("n2", 2, ready="False"), pod("a", 3, "n1"))
    for name, status in (("n1", "Unknown"), ("n2", "False")):
        conditions = simulation.store.get("Node", "", name).status["conditions"]
        assert [one["status"] for one in conditions if one["type"] == "Ready"] == [status]
    assert "nodes without heartbeats: their kubelets are stopped: n1" in simulation.applied.warnings


def test_what_pods_name_and_is_not_there_is_made_up() -> None:
    spec = {
        "priorityClassName": "gold",
        "priority": 7000,
        "preemptionPolicy": "Never",
        "volumes": [{"name": "d", "persistentVolumeClaim": {"claimName": "data"}}],
    }
    raws = [
        pod("a", 2, "gone", cpu="3", namespace="shop", spec=spec, owner=WEB),
        pod("b", 3, namespace="shop", owner=WEB),
    ]
    prepared = _prepared(*raws)
    assert prepared.errors == []
    assert _by_name(prepared, "Namespace").keys() == {"shop"}
    gold = _by_name(prepared, "PriorityClass")["gold"]
    assert (gold["value"], gold["preemptionPolicy"]) == (7000, "Never")
    gone = _by_name(prepared, "Node")["gone"]
    assert gone["status"]["allocatable"] == {"cpu": "3", "pods": "1"}
    assert gone["spec"]["unschedulable"] is True
    claim, volume = _by_name(prepared, "PersistentVolumeClaim")["data"], _by_name(prepared, "PersistentVolume")
    assert volume[claim["spec"]["volumeName"]]["spec"]["claimRef"]["uid"] == claim["metadata"]["uid"]
    owner = _by_name(prepared, "ReplicaSet")["web-abc"]
    assert (owner["metadata"]["uid"], owner["spec"]["replicas"]) == (uid(900), 2)
    assert "volumeMounts" not in json.dumps(
        owner["spec"]["template"]["spec"]["containers"][0].get("volumeMounts") or ""
    )
    answer = "\n".join(prepared.assumptions.texts())
    for word in ("shop", "gold", "gone", "shop/data", "shop/web-abc"):
        assert word in answer
    assert _by_name(_prepared(*raws, complete=False), "Node") == {}


def test_nothing_is_made_up_for_a_pending_pods_claim() -> None:
    volumes = {"volumes": [{"name": "d", "persistentVolumeClaim": {"claimName": "data"}}]}
    prepared = _prepared(pod("a", 2, spec=volumes), node("n1", 1))
    assert _by_name(prepared, "PersistentVolumeClaim") == {}


def test_a_volume_without_a_uid_is_taken_and_not_made_up() -> None:
    asks = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "5Gi"}}, "volumeName": "disk"}
    claim = kept("PersistentVolumeClaim", "data", 2, namespace="default", spec=asks, status={"phase": "Bound"})
    terms = [{"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": ["n2"]}]}]
    volume = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": "disk"},
        "spec": {
            "capacity": {"storage": "5Gi"},
            "accessModes": ["ReadWriteOnce"],
            "hostPath": {"path": "/disk"},
            "claimRef": {"kind": "PersistentVolumeClaim", "namespace": "default", "name": "data", "uid": uid(2)},
            "nodeAffinity": {"required": {"nodeSelectorTerms": terms}},
        },
    }
    user = pod("a", 3, spec={"volumes": [{"name": "d", "persistentVolumeClaim": {"claimName": "data"}}]})
    simulation = _loaded(node("n1", 10), node("n2", 11), claim, volume, user)
    assert simulation.applied.errors == []
    assert simulation.applied.warnings == []
    assert simulation.summary(0.0).placements == {"default/a": "n2"}


def test_the_namespaces_that_manifests_need_are_made_up() -> None:
    plain = {"containers": [{"name": "c", "image": "i"}]}
    a = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "namespace": "shop"}, "spec": plain}
    b = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "b", "namespace": "own"}, "spec": plain}
    own = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "own", "labels": {"team": "x"}}}
    simulation = _loaded(node("n1", 1), a, b, own)
    assert simulation.applied.errors == []
    assert simulation.applied.warnings == ["missing namespaces were added: shop"]
    assert simulation.store.get("Namespace", "", "own").labels["team"] == "x"
    assert simulation.summary(0.0).placements == {"shop/a": "n1", "own/b": "n1"}


def test_successors_come_from_what_was_made_up() -> None:
    labels = {"app": "web", "pod-template-hash": "abc"}
    simulation = _loaded(node("n1", 1), node("n2", 2), pod("web-abc-x", 3, "n1", owner=WEB, labels=labels))
    simulation.store.delete("Pod", "default", "web-abc-x", grace_period_s=0)
    assert simulation.finish()
    (successor,) = simulation.store.list("Pod")
    assert successor.name != "web-abc-x"
    assert successor.raw["spec"]["nodeName"] in ("n1", "n2")
    assert successor.labels == labels


def test_a_made_up_deployment_does_not_roll_out() -> None:
    labels = {"app": "web", "pod-template-hash": "abc"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"replicas": 1, "selector": {"matchLabels": labels}, "template": template}
    reference = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": uid(800), "controller": True}
    owned = kept(
        "ReplicaSet",
        "web-abc",
        900,
        api="apps/v1",
        namespace="default",
        spec=spec,
        metadata={"ownerReferences": [reference], "labels": labels},
    )
    simulation = _loaded(node("n1", 1), owned, pod("web-abc-x", 3, "n1", owner=WEB, labels=labels))
    assert [one.name for one in simulation.store.list("ReplicaSet")] == ["web-abc"]
    assert [one.name for one in simulation.store.list("Pod")] == ["web-abc-x"]
    assert simulation.store.get("Deployment", "default", "web").uid == uid(800)


def test_earlier_versions_are_taken_as_the_present_one() -> None:
    budget = kept("PodDisruptionBudget", "b", 5, api="policy/v1beta1", namespace="default", spec={"minAvailable": 1})
    budget["spec"]["selector"] = {"matchLabels": {"app": "web"}}
    device = {
        "name": "gpu-0",
        "basic": {"attributes": {"model": {"string": "x"}}, "capacity": {"memory": {"value": "8Gi"}}},
    }
    pool = {"name": "p", "generation": 1, "resourceSliceCount": 1}
    slice_spec = {"driver": "gpu.example.com", "nodeName": "n1", "pool": pool, "devices": [device]}
    old_slice = kept("ResourceSlice", "s", 6, api="resource.k8s.io/v1beta1", spec=slice_spec)
    request = {"name": "r", "deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1}
    claim = kept(
        "ResourceClaim",
        "c",
        7,
        api="resource.k8s.io/v1beta1",
        namespace="default",
        spec={"devices": {"requests": [request]}},
    )
    prepared = _prepared(budget, old_slice, claim)
    assert prepared.errors == []
    assert _by_name(prepared, "PodDisruptionBudget")["b"]["apiVersion"] == "policy/v1"
    assert _by_name(prepared, "ResourceSlice")["s"]["spec"]["devices"][0]["attributes"] == {"model": {"string": "x"}}
    (wanted,) = _by_name(prepared, "ResourceClaim")["c"]["spec"]["devices"]["requests"]
    assert wanted["exactly"]["deviceClassName"] == "gpu"
    assert "policy/v1beta1 PodDisruptionBudget loaded as policy/v1: default/b" in prepared.assumptions.texts()


def test_what_is_wrong_is_left_out_and_the_rest_is_taken() -> None:
    absurd = node("n2", 2)
    absurd["status"]["allocatable"]["cpu"] = "-4"
    odd = kept("ConfigMap", "c", 7, namespace="default", data={"a": "b"}, colour="red")
    prepared = _prepared(
        node("n1", 1), absurd, {"kind": "Pod", "apiVersion": "v1"}, {**pod("x", 3), "metadata": {}}, odd
    )
    assert [obj.name for obj in prepared.objects] == ["n1", "c"]
    assert len(prepared.errors) == 3
    assert any("dump:1: Node n2 was left out" in error for error in prepared.errors)
    answer = "\n".join(prepared.assumptions.texts())
    assert 'ConfigMap: unknown field "colour", dropped: default/c' in answer
    assert "the data of ConfigMaps was dropped (--keep-secrets keeps it)" in answer
    assert "data" not in prepared.objects[1].raw
    assert _prepared(odd, keep_secrets=True).objects[0].raw["data"] == {"a": "b"}


def test_of_two_the_later_is_taken() -> None:
    later = node("n1", 9)
    later["metadata"]["uid"] = uid(1)
    other = node("n2", 8)
    prepared = _prepared(later, node("n1", 1), node("n2", 3), other, node("n3", 4), node("n3", 4))
    assert {obj.name: obj.uid for obj in prepared.objects} == {"n1": uid(1), "n2": uid(8), "n3": uid(4)}
    answer = "\n".join(prepared.assumptions.texts())
    assert "two versions of one object, the later one is loaded: n1" in answer
    assert "two objects with the same name and different uids, the later one is loaded: n2" in answer
    assert "the same object twice: n3" in answer


def test_events_and_leases_are_not_taken_and_custom_objects_are_kept() -> None:
    event = kept("Event", "e", 3, namespace="default")
    custom = kept("Rollout", "r", 4, api="argoproj.io/v1alpha1", namespace="default", spec={"steps": [1]})
    prepared = _prepared(event, custom)
    assert [(obj.kind, obj.raw["spec"]) for obj in prepared.objects] == [("Rollout", {"steps": [1]})]
    assert "Events are not loaded" in prepared.assumptions.texts()


def test_custom_kinds_are_named_once_each() -> None:
    rollouts = [
        kept("Rollout", f"r{n}", 4 + n, api="argoproj.io/v1alpha1", namespace="default", spec={}) for n in range(5)
    ]
    answer = _prepared(*rollouts, kept("Old", "o", 20, api="example.com/v1", namespace="default")).assumptions.texts()
    assert answer.count("Rollout.argoproj.io is a kind without any effect here: kept unchanged (5 times)") == 1
    assert answer.count("Old.example.com is a kind without any effect here: kept unchanged") == 1


def test_fields_and_kinds_of_1_20_are_dropped_or_left_out_and_said() -> None:
    old = pod("a", 2, "n1")
    old["metadata"] |= {"selfLink": "/api/v1/namespaces/default/pods/a", "clusterName": "c"}
    psp = kept("PodSecurityPolicy", "p", 8, api="policy/v1beta1", spec={"privileged": True})
    prepared = _prepared(node("n1", 1), old, psp, kept("ComponentStatus", "etcd-0", 9))
    assert [obj.name for obj in prepared.objects] == ["n1", "a", "p"]
    assert len(prepared.errors) == 1
    assert "dump:3: ComponentStatus etcd-0 was left out" in prepared.errors[0]
    answer = "\n".join(prepared.assumptions.texts())
    assert 'Pod: unknown field "metadata.clusterName", dropped: default/a' in answer
    assert "PodSecurityPolicy.policy is a kind without any effect here" in answer


def test_what_cannot_be_counted_is_left_out_and_what_nobody_has_is_said() -> None:
    raws = [pod("minus", 2, cpu="-1"), pod("words", 3, cpu="lots"), pod("huge", 4, cpu="1e30"), node("n2", 5, "1e40")]
    prepared = _prepared(node("n1", 1), *raws)
    assert [obj.name for obj in prepared.objects] == ["n1", "huge", "n2"]
    assert ["minus" in prepared.errors[0], "words" in prepared.errors[1], len(prepared.errors)] == [True, True, 2]
    answer = prepared.assumptions.texts()
    assert "very large quantities in the requests of Pods, counted as kube-scheduler counts: default/huge" in answer
    assert "very large quantities in the allocatable of Nodes, counted as kube-scheduler counts: n2" in answer


def test_two_clusters_in_one_dump_are_said() -> None:
    raws = [kept("Namespace", "kube-system", 50), kept("Namespace", "kube-system", 60)]
    versions = ("v1.27.1", "v1.33.0")
    for number, version in enumerate(versions, 1):
        raw = node(f"n{number}", number)
        raw["status"]["nodeInfo"] = {"kubeletVersion": version}
        raws.append(raw)
    answer = _prepared(*raws).assumptions.texts()
    assert "objects of two clusters: of two objects with the same name, one is loaded" in answer
    assert "nodes of several versions: v1.27, v1.33" in answer


def test_pods_of_unknown_schedulers_are_named() -> None:
    raws = [node("n1", 1), pod("a", 2, spec={"schedulerName": "volcano"})]
    simulation = _loaded(*raws)
    assert simulation.store.get("Pod", "default", "a").raw["spec"].get("nodeName") is None
    assert any('scheduler "volcano"' in text and "default/a" in text for text in simulation.applied.warnings)


def test_a_scheduler_that_is_given_a_profile_schedules(tmp_path: Path, scenario: Any) -> None:
    owner, labels = ("ReplicaSet", "web-abc", 900), {"app": "web", "pod-template-hash": "abc"}
    spec = {"schedulerName": "volcano"}
    raws = [node("n1", 1), node("n2", 2), pod("web-abc-x", 3, "n1", owner=owner, labels=labels, spec=spec)]
    raws.append(pod("a", 4, spec=spec))
    source = tmp_path / "dump.json"
    source.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": raws}))
    wrong = scenario.do(f"load {source} --scheduler volcano=b", "")
    assert '"b"' in wrong
    assert "no such profile" in wrong
    assert "default-scheduler" in wrong
    assert "they are not scheduled" not in scenario.do(f"load {source} --scheduler volcano=default-scheduler", "")
    assert scenario.expect("expect pod a running within 1m").met
    # The pods' successors name it as well.
    scenario.do("delete pod web-abc-x --force --grace-period 0", "")
    assert scenario.expect("expect 2 pods running within 1m").met, scenario.do("get pods -o wide", "")
    assert "volcano" in scenario.do("get pod a -o yaml", "")


def test_objects_without_a_uid_are_manifests() -> None:
    bare = {key: value for key, value in node("n1", 1).items() if key != "metadata"}
    bare["metadata"] = {"name": "n1"}
    wish = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p"},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    }
    simulation = _loaded(bare, wish)
    tolerations = simulation.store.get("Pod", "default", "p").raw["spec"]["tolerations"]
    assert len(tolerations) == 2  # admission has seen it
    assert simulation.applied.errors == []


@pytest.mark.parametrize("name", ["cluster.json", "cluster.yaml.gz"])
def test_load_and_save_are_verbs(name: str, tmp_path: Path, scenario: Any) -> None:
    source = tmp_path / "dump.json"
    raws = [node("n1", 1), pod("a", 2, "n1"), pod("b", 3, namespace="shop", owner=WEB)]
    source.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": raws}))
    answer = scenario.do(f"load {source}", "")
    assert "loaded: Namespace 1, Node 1, Pod 2, ReplicaSet 1" in answer
    assert "missing ReplicaSets were added from their pods: shop/web-abc" in answer
    assert "n1" in scenario.do("get pods -A -o wide", "")
    assert "objects saved" in scenario.do(f"save {tmp_path / name}", "")
    assert "already exists; --force overwrites it" in scenario.do(f"save {tmp_path / name}", "")
    assert "the name must end with .json" in scenario.do(f"save {tmp_path / 'x.txt'}", "")
    assert "cannot be read" in scenario.do(f"load {tmp_path / 'missing.json'}", "")
    assert "kubectl get -A -o json" in scenario.do("load --how", "")
    again = scenario.do(f"load {tmp_path / name}", "")
    assert "error" not in again


def test_the_time_of_a_scenario_moves_to_the_latest_time_in_the_dump(tmp_path: Path, scenario: Any) -> None:
    bound = pod("a", 2, "n1")
    bound["metadata"]["creationTimestamp"] = "2031-05-01T10:00:00Z"
    source = tmp_path / "dump.json"
    source.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [node("n1", 1), bound]}))
    assert "the cluster's time moved to 2031-05-01T10:00:00Z" in scenario.do(f"load {source}", "")
    assert scenario.do("rest", "") == "+0s at rest\n"
    scenario.do("advance 1m", "")
    assert "time moved" not in scenario.do(f"load {source}", "")


@pytest.mark.parametrize("text", ["", "null", "[]", '{"apiVersion": "v1", "kind": "List", "items": []}', '{"a": 1}'])
def test_what_has_no_object_is_said_to_have_none(text: str, tmp_path: Path, scenario: Any) -> None:
    source = tmp_path / "dump.json"
    source.write_text(text)
    assert "no Kubernetes objects found" in scenario.do(f"load {source}", "")


def test_of_many_errors_the_first_are_told_and_the_others_counted(tmp_path: Path) -> None:
    source = tmp_path / "dump.json"
    source.write_text(json.dumps([1] * (MOST_KEPT + 1_234)))
    errors = read_dump([str(source)]).errors
    assert errors[0] == f"{source}[0]: an object is a map with apiVersion and kind, not a JSON number"
    assert errors[MOST_KEPT:] == ["and 1,234 more errors"]


def _pending(message: str, reason: str = "Unschedulable", **more: Any) -> Raw:
    """Return a pod that requests more than a node has, with the condition that its cluster's scheduler wrote."""
    condition = {"type": "PodScheduled", "status": "False", "lastTransitionTime": "2026-11-20T09:00:00Z"}
    status = {"phase": "Pending", "conditions": [{**condition, "reason": reason, "message": message}]}
    return {**pod("big", 7, cpu="8", **more), "status": status}


_SHORT_OF_CPU = "0/2 nodes are available: 2 Insufficient cpu."
_NO_VICTIMS = "preemption: 0/2 nodes are available: 2 No preemption victims found for incoming pod."


@pytest.mark.parametrize(
    ("dumped", "reasons"),
    [
        pytest.param(_pending(f"{_SHORT_OF_CPU} {_NO_VICTIMS}"), None, id="the-same-but-for-preemption"),
        pytest.param(
            _pending("0/3 nodes are available: 3 Insufficient cpu."),
            (
                "its scheduler counted 3 nodes, the dump has 2",
                "False since 60m before the dump",
                'profile "default-sch',
            ),
            id="other-nodes-and-an-hour-old",
        ),
        pytest.param(
            _pending("0/2 nodes are available: 2 Too many pods."),
            ("nodes are v1.29.4, so its scheduler may be",),
            id="old",
        ),
        pytest.param(
            {**_pending(_SHORT_OF_CPU), "spec": pod("small", 8)["spec"]},
            ("it fits here: its last attempt there was before",),
            id="it-fits",
        ),
        pytest.param(
            _pending("Scheduling is blocked due to non-empty scheduling gates", "SchedulingGated"),
            ("it was gated there",),
            id="gated-there",
        ),
        pytest.param(
            _pending("blocked", "SchedulingGated", spec={"schedulingGates": [{"name": "a/b"}]}),
            None,
            id="gated-in-both",
        ),
    ],
)
def test_what_the_clusters_own_scheduler_said_is_told_without_an_attempt(
    tmp_path: Path, scenario: Any, dumped: Raw, reasons: tuple[str, ...] | None
) -> None:
    nodes = [node("n1", 1), node("n2", 2)]
    if reasons and "v1.29.4" in reasons[0]:
        for one in nodes:
            one["status"]["nodeInfo"] = {"kubeletVersion": "v1.29.4+k3s1"}
    source = tmp_path / "dump.json"
    source.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [*nodes, dumped]}))
    scenario.do("pause", "")
    scenario.do(f"load {source}", "")
    reported = json.loads(scenario.do("explain big -o json", ""))
    assert reported["decision"] is None
    answer = reported["dumped"]
    assert answer["message"] == dumped["status"]["conditions"][0]["message"]
    assert answer["same"] is (reasons is None)
    why = "\n".join(answer["why"])
    for reason in reasons or ():
        assert reason in why
    text = scenario.do("explain big", "")
    the_same = answer["reason"] == "SchedulingGated" or answer["message"] == reported["message"]
    words = "its own scheduler reported the same" if the_same else "its own scheduler reported the same about the nodes"
    assert (f"{words} (False since 2026-11-20T09:00:00Z)" in text) is (reasons is None)
    assert ("they differ, which may be because" in text) is bool(reasons)
    scenario.do(f"save {tmp_path / 'again.json'}", "")
    assert "dumped-condition" not in (tmp_path / "again.json").read_text()


@pytest.mark.parametrize("value", [7, 0.5, True, "text", ["a"], {"a": ["b"]}], ids=str)
@pytest.mark.parametrize(
    "path",
    [
        *("metadata.name", "metadata.generateName", "metadata.namespace", "metadata.uid", "metadata.resourceVersion"),
        *("metadata.annotations", "metadata.labels", "metadata.creationTimestamp", "metadata.ownerReferences"),
        *("spec", "status", "status.conditions", "status.nodeInfo", "status.nodeInfo.kubeletVersion"),
    ],
)
def test_an_object_edited_by_hand_costs_nobody_else(path: str, value: Any) -> None:
    for edited in (node("edited", 3, ready="Unknown"), pod("edited", 3, "n1"), pod("edited", 3)):
        *parents, field = path.split(".")
        place = edited
        for parent in parents:
            place = place.setdefault(parent, {})
        place[field] = value
        prepared = _prepared(node("n1", 1), edited, pod("web", 2, "n1"))
        names = {obj.name for obj in prepared.objects if obj.kind in ("Node", "Pod")}
        assert {"n1", "web"} <= names
        assert len(names) == 3 or "dump:1: " in prepared.errors[0]


def test_metadata_of_a_wrong_type_is_told_by_its_place() -> None:
    odd = [{**pod("a", 1)["metadata"], **change} for change in ({"uid": ["x"]}, {"name": None, "generateName": "a-"})]
    prepared = _prepared(*({**pod("a", 1), "metadata": meta} for meta in odd))
    assert prepared.errors == [
        'dump:0: Pod: metadata.uid: ["x"]: a string is expected',
        "dump:1: Pod without a name",
    ]
