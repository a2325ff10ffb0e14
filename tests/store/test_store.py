from typing import Any

import pytest

from kschedd.api.objects import Object
from kschedd.api.pods import Pod
from kschedd.api.selecting.selector_text import parse_field_selector, parse_selector_text
from kschedd.config.loading.load import default_config
from kschedd.config.versions.kube_versions import V1_34
from kschedd.store.admission.chain import Admission, ValidatingPlugin
from kschedd.store.admission.request import UserInfo
from kschedd.store.errors import (
    AlreadyExists,
    ApplyConflict,
    BadRequest,
    Conflict,
    Forbidden,
    Gone,
    Invalid,
    NotFound,
    TooLarge,
    TooManyRequests,
    Undecodable,
)
from kschedd.store.objects.stored import typed
from kschedd.store.store import Store
from kschedd.store.writes import Bind
from kschedd.values import run_steps
from tests.store.definitions import definition, widget
from tests.store.manifests import Clock, config_map, node, pod, workload


@pytest.fixture
def store() -> Store:
    return Store(now=Clock(), seed=1)


def test_a_new_store_has_the_namespaces_and_classes_every_cluster_has(store: Store) -> None:
    assert [n.name for n in store.list("Namespace")] == ["default", "kube-node-lease", "kube-public", "kube-system"]
    assert {c.name: c.raw["value"] for c in store.list("PriorityClass")} == {
        "system-cluster-critical": 2_000_000_000,
        "system-node-critical": 2_000_001_000,
    }


def test_a_created_object_gets_identity_and_time(store: Store) -> None:
    created = store.create(config_map("settings", a="1"))
    assert created.raw["data"] == {"a": "1"}
    assert created.metadata["creationTimestamp"] == "2023-11-14T22:13:20Z"
    assert created.resource_version == store.version
    assert len(created.uid) == 36


def test_the_same_seed_gives_the_same_uids_and_names() -> None:
    def made(seed: int) -> list[tuple[str, str]]:
        store = Store(now=Clock(), seed=seed)
        generated = {**pod(), "metadata": {"generateName": "web-"}}
        return [(p.name, p.uid) for p in (store.create(generated) for _ in range(3))]

    assert made(7) == made(7)
    assert made(7) != made(8)


def test_a_generated_name_is_the_prefix_and_five_letters(store: Store) -> None:
    created = store.create({**pod(), "metadata": {"generateName": "x" * 70}})
    assert created.name.startswith("x" * 58)
    assert len(created.name) == 63


def test_pods_are_born_pending_whatever_their_manifest_says(store: Store) -> None:
    created = store.create({**pod(), "status": {"phase": "Running", "podIP": "10.0.0.1"}})
    assert created.status == {"phase": "Pending", "qosClass": "Burstable"}
    assert created.metadata["generation"] == 1


def test_a_restored_pod_keeps_status_uid_and_creation_time(store: Store) -> None:
    raw = pod(nodeName="node-1")
    raw["metadata"] |= {"uid": "u-1", "creationTimestamp": "2020-01-01T00:00:00Z", "resourceVersion": "99"}
    created = store.create({**raw, "status": {"phase": "Running"}}, restore=True)
    assert isinstance(created, Pod)
    assert (created.uid, created.phase, created.node_name) == ("u-1", "Running", "node-1")
    assert created.metadata["creationTimestamp"] == "2020-01-01T00:00:00Z"
    assert created.resource_version == store.version


def test_a_gated_pod_says_why_it_is_not_scheduled(store: Store) -> None:
    created = store.create(pod(schedulingGates=[{"name": "example.com/wait"}]))
    assert created.status["conditions"][0]["reason"] == "SchedulingGated"


def test_equal_specs_are_held_once(store: Store) -> None:
    one, two = store.create(pod("a")), store.create(pod("b"))
    assert one.spec is two.spec
    assert one.labels is two.labels


def test_the_manifest_handed_in_is_not_changed(store: Store) -> None:
    raw = pod()
    before = repr(raw)
    store.create(raw)
    assert repr(raw) == before


def test_a_dry_run_leaves_no_trace(store: Store) -> None:
    version = store.version
    assert store.create(pod(), dry_run=True).spec["schedulerName"] == "default-scheduler"
    assert store.version == version
    assert store.find("Pod", "default", "web") is None


def test_unknown_kinds_are_kept_with_all_they_say(store: Store) -> None:
    raw = {
        "apiVersion": "example.com/v1",
        "kind": "Widget",
        "metadata": {"name": "w", "namespace": "default"},
        "size": 3,
    }
    store.create(raw)
    assert store.get("Widget", "default", "w").raw["size"] == 3
    with pytest.raises(AlreadyExists, match='widgets "w" already exists'):
        store.create(raw)


def test_a_kind_of_another_group_is_not_ours_of_the_same_name(store: Store) -> None:
    store.create({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}})
    knative = {
        "apiVersion": "serving.knative.dev/v1",
        "kind": "Service",
        "metadata": {"name": "s", "namespace": "default"},
    }
    created = store.create(knative)
    assert created.kind == "Service.serving.knative.dev"
    assert store.count("Service") == 1


@pytest.mark.parametrize(
    ("raw", "error", "words"),
    [
        pytest.param(pod(namespace="nowhere"), NotFound, 'namespaces "nowhere" not found', id="namespace-must-exist"),
        pytest.param({"kind": "Pod", "apiVersion": "v1"}, Invalid, "name or generateName", id="no-metadata"),
        pytest.param({"metadata": {"name": "x"}}, Invalid, "kind: Required value", id="no-kind"),
        pytest.param({**pod(), "metadata": {}}, Invalid, "name or generateName is required", id="no-name"),
        pytest.param(
            {
                "apiVersion": "batch/v1",
                "kind": "Job",
                "metadata": {},
                "spec": {"template": {"spec": {**pod()["spec"], "restartPolicy": "Never"}}},
            },
            Invalid,
            'Job.batch "" is invalid: metadata.name: Required value: name or generateName is required',
            id="a-job-without-a-name-has-no-other-fault",
        ),
        pytest.param(
            {**pod(), "metadata": {}, "spec": {**pod()["spec"], "priorityClassName": "none"}},
            Forbidden,
            "no PriorityClass with name none",
            id="admission-comes-before-the-name",
        ),
        pytest.param(
            {**pod(), "metadata": {"name": 0}},
            Undecodable,
            'metadata.name: Invalid value: 0: must be a string: write it in quotes, "0"',
            id="a-name-that-is-a-number",
        ),
        pytest.param(pod("No_Good"), Invalid, 'Pod "No_Good" is invalid: metadata.name: Invalid value', id="bad-name"),
        pytest.param(pod(cpu="1.5.0"), Invalid, 'Invalid value: "1.5.0"', id="bad-quantity"),
        pytest.param({**pod(), "spec": {"containers": []}}, Invalid, "spec.containers: Required value", id="empty-pod"),
        pytest.param({**pod(), "spec": 5}, Invalid, "spec", id="spec-is-no-mapping"),
        pytest.param(
            {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "x"}, "spec": {"big": 2**70}},
            Invalid,
            "beyond 64 bits",
            id="number-too-large-to-store",
        ),
    ],
)
def test_bad_input_is_refused_in_the_api_servers_words(store: Store, raw: dict, error: type, words: str) -> None:
    version = store.version
    with pytest.raises(error) as refusal:
        store.create(raw)
    assert words in str(refusal.value)
    assert store.version == version


def test_one_bad_pod_does_not_spoil_the_next_of_its_spec(store: Store) -> None:
    with pytest.raises(Invalid):
        store.create(pod("UPPER"))
    assert store.create(pod("lower")).name == "lower"


# --- updates ------------------------------------------------------------------------------------------------------


def test_an_update_of_an_old_version_conflicts(store: Store) -> None:
    first = store.create(config_map("c", a="1"))
    store.update({**first.raw, "data": {"a": "2"}})
    with pytest.raises(Conflict) as refusal:
        store.update({**first.raw, "data": {"a": "3"}})
    assert str(refusal.value) == (
        'Operation cannot be fulfilled on configmaps "c": the object has been modified; '
        "please apply your changes to the latest version and try again"
    )
    assert store.get("ConfigMap", "default", "c").raw["data"] == {"a": "2"}


def test_an_apply_in_a_version_without_the_kind_is_refused(store: Store) -> None:
    first = store.create(config_map("c", a="1"))
    with pytest.raises(BadRequest, match='no kind "ConfigMap" is registered for version "v9"'):
        store.apply({**first.raw, "apiVersion": "v9", "data": {"a": "2"}})
    assert store.get("ConfigMap", "default", "c").raw["data"] == {"a": "1"}


def test_an_update_of_an_object_without_a_name_is_told_that_it_has_none(store: Store) -> None:
    with pytest.raises(Invalid, match=r'Namespace "" is invalid: metadata\.name: Required value'):
        store.update({"apiVersion": "v1", "kind": "Namespace", "metadata": {}})


def test_an_update_without_a_version_always_wins(store: Store) -> None:
    store.create(config_map("c", a="1"))
    store.update(config_map("c", a="2"))
    assert store.update(config_map("c", a="3")).raw["data"] == {"a": "3"}


def test_an_update_of_another_object_of_that_name_conflicts(store: Store) -> None:
    first = store.create(config_map("c"))
    store.delete("ConfigMap", "default", "c")
    store.create(config_map("c"))
    raw = {**first.raw, "metadata": {"name": "c", "namespace": "default", "uid": first.uid}}
    with pytest.raises(Conflict, match="Precondition failed: UID in precondition"):
        store.update(raw)


def test_what_changes_nothing_is_no_write(store: Store) -> None:
    created = store.create(config_map("c", a="1"))
    version = store.version
    assert store.update(config_map("c", a="1")) is created
    assert store.merge_patch("ConfigMap", "default", "c", {"data": {"a": "1"}}) is created
    assert store.version == version


def test_a_plain_update_leaves_the_status_alone_and_a_status_update_the_rest(store: Store) -> None:
    store.create(workload("ReplicaSet"))
    store.update_status({**workload("ReplicaSet", replicas=9), "status": {"replicas": 2}})
    found = store.get("ReplicaSet", "default", "web")
    assert (found.spec["replicas"], found.status) == (3, {"replicas": 2})
    store.update({**workload("ReplicaSet", replicas=5), "status": {"replicas": 7}})
    found = store.get("ReplicaSet", "default", "web")
    assert (found.spec["replicas"], found.status) == (5, {"replicas": 2})


def test_the_generation_counts_changes_of_the_spec_only(store: Store) -> None:
    store.create(workload("Deployment"))
    store.merge_patch("Deployment", "default", "web", {"metadata": {"labels": {"a": "b"}}})
    store.patch_status("Deployment", "default", "web", {"replicas": 1})
    assert store.get("Deployment", "default", "web").metadata["generation"] == 1
    store.merge_patch("Deployment", "default", "web", {"spec": {"replicas": 4}})
    assert store.get("Deployment", "default", "web").metadata["generation"] == 2


def test_a_merge_patch_takes_fields_away_with_null(store: Store) -> None:
    store.create(config_map("c", a="1", b="2"))
    assert store.merge_patch("ConfigMap", "default", "c", {"data": {"a": None}}).raw["data"] == {"b": "2"}


def test_a_status_patch_keeps_the_pods_shape(store: Store) -> None:
    created = store.create(pod())
    changed = store.patch_status("Pod", "default", "web", {"phase": "Running"})
    assert isinstance(created, Pod)
    assert isinstance(changed, Pod)
    assert (changed.phase, changed.signature is created.signature) == ("Running", True)
    assert changed.status["qosClass"] == "Burstable"


@pytest.mark.parametrize(
    ("patch", "words"),
    [
        pytest.param({"nodeName": "node-1"}, "pod updates may not change fields other than", id="node"),
        pytest.param({"priority": 5}, "pod updates may not change fields other than", id="priority"),
        pytest.param({"tolerations": None}, None, id="default-tolerations-come-back"),
        pytest.param({"activeDeadlineSeconds": 60}, None, id="deadline-may-be-set"),
        pytest.param({"schedulingGates": [{"name": "x.io/y"}]}, "only deletion is allowed", id="new-gate"),
        pytest.param(
            {"tolerations": [{"key": "a", "operator": "Exists", "effect": "NoSchedule"}]},
            "toleration",
            id="old-one-lost",
        ),
    ],
)
def test_little_of_a_pods_spec_may_change(store: Store, patch: dict, words: str | None) -> None:
    store.create(pod(tolerations=[{"key": "mine", "operator": "Exists"}] if words == "toleration" else []))
    if words is None:
        store.merge_patch("Pod", "default", "web", {"spec": patch})
        return
    with pytest.raises(Invalid, match=words):
        store.merge_patch("Pod", "default", "web", {"spec": patch})


def test_an_image_may_change_and_gates_may_go(store: Store) -> None:
    created = store.create(pod(schedulingGates=[{"name": "a.io/b"}]))
    container = {**created.spec["containers"][0], "image": "other:2"}
    changed = store.merge_patch("Pod", "default", "web", {"spec": {"containers": [container], "schedulingGates": None}})
    assert isinstance(changed, Pod)
    assert changed.spec["containers"][0]["image"] == "other:2"
    assert changed.pod_spec.scheduling_gates == ()
    assert changed.metadata["generation"] == 2


def test_a_resize_changes_resources_and_nothing_else(store: Store) -> None:
    created = store.create(pod(cpu="1"))
    smaller = {**created.spec["containers"][0], "resources": {"requests": {"cpu": "500m"}}}
    changed = store.merge_patch("Pod", "default", "web", {"spec": {"containers": [smaller]}}, subresource="resize")
    assert isinstance(changed, Pod)
    assert changed.requests["cpu"] == 500
    other = {**smaller, "image": "other", "resources": {"requests": {"cpu": "250m"}}}
    again = store.merge_patch("Pod", "default", "web", {"spec": {"containers": [other]}}, subresource="resize")
    assert again.spec["containers"][0]["image"] == created.spec["containers"][0]["image"]
    with pytest.raises(Invalid, match="containers may not be added or removed on resize"):
        store.merge_patch("Pod", "default", "web", {"spec": {"containers": []}}, subresource="resize")
    for odd in (7, "x", [1], True):
        with pytest.raises(Invalid, match="spec"):
            store.merge_patch("Pod", "default", "web", {"spec": odd}, subresource="resize")


def test_the_selector_of_a_workload_is_immutable(store: Store) -> None:
    store.create(workload("Deployment"))
    raw = workload("Deployment")
    raw["spec"]["selector"] = {"matchLabels": {"app": "web", "more": "x"}}
    raw["spec"]["template"]["metadata"]["labels"]["more"] = "x"
    with pytest.raises(Invalid, match=r'Deployment.apps "web" is invalid: .*field is immutable'):
        store.update(raw)


# --- apply --------------------------------------------------------------------------------------------------------


def test_apply_creates_then_changes_then_says_unchanged(store: Store) -> None:
    assert store.apply(config_map("c", a="1"))[1] == "created"
    assert store.apply(config_map("c", a="1"))[1] == "unchanged"
    assert store.apply(config_map("c", a="2"))[1] == "configured"


def test_apply_takes_away_what_it_brought_and_leaves_what_others_brought(store: Store) -> None:
    store.apply(config_map("c", mine="1", kept="1"))
    store.merge_patch("ConfigMap", "default", "c", {"data": {"theirs": "1"}})
    changed, _ = store.apply(config_map("c", kept="1"))
    assert changed.raw["data"] == {"kept": "1", "theirs": "1"}


def test_apply_of_a_pod_again_is_unchanged_although_admission_added_to_it(store: Store) -> None:
    raw = pod(tolerations=[{"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}])
    store.apply(raw)
    assert store.apply(raw)[1] == "unchanged"


def test_a_first_apply_makes_a_new_object_of_any_kind_that_nobody_manages(store: Store) -> None:
    raw = pod()
    raw["metadata"] |= {"uid": "u-1", "creationTimestamp": "2020-01-01T00:00:00Z"}
    made, _ = store.apply({**raw, "status": {"phase": "Running"}})
    assert (made.status["phase"], made.uid != "u-1") == ("Pending", True)
    assert store.apply({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}})[1] == "created"
    assert "managedFields" not in store.create(pod("other")).metadata
    (entry,) = store.create(pod("mine"), manager="me").metadata["managedFields"]
    assert (entry["manager"], entry["operation"]) == ("me", "Update")


def test_apply_of_a_bound_pod_leaves_its_node(store: Store) -> None:
    store.apply(pod())
    store.bind("default", "web", "node-1")
    raw = pod()
    raw["metadata"]["labels"]["extra"] = "yes"
    changed, _ = store.apply(raw)
    assert isinstance(changed, Pod)
    assert (changed.node_name, changed.labels["extra"]) == ("node-1", "yes")


def test_apply_of_a_node_sets_its_capacity_too(store: Store) -> None:
    store.apply(node())
    bigger = node()
    bigger["status"]["capacity"]["cpu"] = "8"
    changed, _ = store.apply(bigger)
    assert changed.status["capacity"]["cpu"] == "8"


def test_apply_merges_containers_by_name(store: Store) -> None:
    store.apply(workload("Deployment"))
    store.merge_patch("Deployment", "default", "web", {"spec": {"replicas": 7}})
    raw = workload("Deployment", image="web:2")
    del raw["spec"]["replicas"]
    changed, _ = store.apply(raw)
    container = changed.spec["template"]["spec"]["containers"][0]
    assert (container["image"], container["imagePullPolicy"]) == ("web:2", "IfNotPresent")


# --- binding ------------------------------------------------------------------------------------------------------


def test_a_binding_sets_the_node_and_the_condition(store: Store) -> None:
    store.create(pod())
    bound = store.bind("default", "web", "node-1")
    assert bound.node_name == bound.raw["spec"]["nodeName"] == "node-1"
    assert bound.status["conditions"] == [
        {
            "type": "PodScheduled",
            "status": "True",
            "lastProbeTime": None,
            "lastTransitionTime": "2023-11-14T22:13:20Z",
        }
    ]
    assert [p.name for p in store.pods_on("node-1")] == ["web"]
    assert bound.signature is store.create(pod("other")).signature


def test_a_binding_ends_a_nomination_and_replaces_the_old_condition(store: Store) -> None:
    store.create(pod())
    failed = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1 nodes"}
    store.patch_status("Pod", "default", "web", {"nominatedNodeName": "node-2", "conditions": [failed]})
    bound = store.bind("default", "web", "node-1")
    assert bound.nominated_node_name == ""
    assert [c["status"] for c in bound.status["conditions"]] == ["True"]


def test_bindings_that_cannot_be(store: Store) -> None:
    store.create(pod("taken"))
    store.bind("default", "taken", "node-1")
    store.create(pod("gated", schedulingGates=[{"name": "a.io/b"}]))
    leaving = pod("leaving")
    leaving["metadata"]["finalizers"] = ["example.com/wait"]
    store.create(leaving)
    store.delete("Pod", "default", "leaving")
    names = ["nobody", "taken", "gated", "leaving"]
    answers = store.bind_many([Bind("default", name, "", "node-2") for name in names])
    assert list(map(str, answers)) == [
        'pods "nobody" not found',
        'Operation cannot be fulfilled on pods/binding "taken": pod taken is already assigned to node "node-1"',
        'Operation cannot be fulfilled on pods/binding "gated": pod gated has non-empty .spec.schedulingGates',
        'Operation cannot be fulfilled on pods/binding "leaving": pod leaving is being deleted, '
        "cannot be assigned to a host",
    ]
    with pytest.raises(Conflict, match="UID in precondition: other"):
        store.bind("default", "gated", "node-1", uid="other")


# --- deletion -----------------------------------------------------------------------------------------------------


def test_a_pod_without_a_node_goes_at_once(store: Store) -> None:
    store.create(pod())
    store.delete("Pod", "default", "web")
    assert store.find("Pod", "default", "web") is None


def test_a_pod_on_a_node_gets_its_grace_period(store: Store) -> None:
    store.create(pod(terminationGracePeriodSeconds=45))
    store.bind("default", "web", "node-1")
    left = store.delete("Pod", "default", "web")
    assert left.metadata["deletionTimestamp"] == "2023-11-14T22:14:05Z"
    assert left.metadata["deletionGracePeriodSeconds"] == 45
    assert store.delete("Pod", "default", "web") is left
    sooner = store.delete("Pod", "default", "web", grace_period_s=5)
    assert sooner.metadata["deletionTimestamp"] == "2023-11-14T22:13:25Z"
    assert store.delete("Pod", "default", "web", grace_period_s=20) is sooner
    store.delete("Pod", "default", "web", grace_period_s=0)
    assert store.find("Pod", "default", "web") is None
    assert list(store.pods_on("node-1")) == []


def test_a_finished_pod_goes_at_once(store: Store) -> None:
    store.create(pod())
    store.bind("default", "web", "node-1")
    store.patch_status("Pod", "default", "web", {"phase": "Failed"})
    store.delete("Pod", "default", "web")
    assert store.find("Pod", "default", "web") is None


def test_finalizers_keep_an_object_until_the_last_is_taken_away(store: Store) -> None:
    raw = config_map("c")
    raw["metadata"]["finalizers"] = ["a.io/x", "a.io/y"]
    store.create(raw)
    store.delete("ConfigMap", "default", "c")
    with pytest.raises(Invalid, match="no new finalizers can be added"):
        store.merge_patch("ConfigMap", "default", "c", {"metadata": {"finalizers": ["a.io/z"]}})
    store.merge_patch("ConfigMap", "default", "c", {"metadata": {"finalizers": ["a.io/y"]}})
    assert store.get("ConfigMap", "default", "c").deleting
    gone = store.merge_patch("ConfigMap", "default", "c", {"metadata": {"finalizers": None}})
    assert (gone.name, gone.resource_version) == ("c", store.version)
    assert store.find("ConfigMap", "default", "c") is None


def test_a_deletion_meant_for_another_object_of_that_name_is_refused(store: Store) -> None:
    store.create(config_map("c"))
    with pytest.raises(Conflict, match=r"the UID in the precondition \(other\)"):
        store.delete("ConfigMap", "default", "c", uid="other")


def test_nothing_new_enters_a_namespace_that_is_going(store: Store) -> None:
    store.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
    store.create(pod(namespace="team"))
    assert store.delete("Namespace", "", "team").status["phase"] == "Terminating"
    with pytest.raises(
        Forbidden, match="unable to create new content in namespace team because it is being terminated"
    ):
        store.create(pod("second", namespace="team"))
    store.delete("Pod", "team", "web")
    store.finalize_namespace("team")
    assert store.find("Namespace", "", "team") is None


# --- reading ------------------------------------------------------------------------------------------------------


def test_lists_are_sorted_and_selected(store: Store) -> None:
    for name, zone in (("b", "east"), ("a", "west"), ("c", "east")):
        raw = node(name)
        raw["metadata"]["labels"] = {"zone": zone}
        store.create(raw)
    assert [n.name for n in store.list("Node")] == ["a", "b", "c"]
    assert [n.name for n in store.list("Node", label_selector=parse_selector_text("zone=east"))] == ["b", "c"]
    assert [n.name for n in store.list("Node", field_selector=parse_field_selector("metadata.name!=b"))] == ["a", "c"]
    assert list(store.list("Node", "default")) == []


def test_dependents_are_found_by_their_owners_uid(store: Store) -> None:
    raw = config_map("child")
    raw["metadata"]["ownerReferences"] = [{"apiVersion": "v1", "kind": "ConfigMap", "name": "p", "uid": "u1"}]
    store.create(raw)
    assert [o.name for o in store.owned_by("u1")] == ["child"]
    store.merge_patch("ConfigMap", "default", "child", {"metadata": {"ownerReferences": None}})
    assert list(store.owned_by("u1")) == []


def test_the_namespaces_a_cluster_cannot_do_without_stay(store: Store) -> None:
    for name in ("default", "kube-public", "kube-system"):
        with pytest.raises(Forbidden, match=f'namespaces "{name}" is forbidden: this namespace may not be deleted'):
            store.delete("Namespace", "", name)


def test_a_claim_may_neither_shrink_below_what_it_has_nor_change_its_class(store: Store) -> None:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "2Gi"}}, "storageClassName": "fast"}
    raw = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "c"}, "spec": spec}
    store.create(raw)
    store.patch_status("PersistentVolumeClaim", "default", "c", {"phase": "Bound", "capacity": {"storage": "2Gi"}})
    smaller = {"spec": {"resources": {"requests": {"storage": "1Gi"}}}}
    slower = {"spec": {"storageClassName": "slow"}}
    for change, why in ((smaller, "field can not be less than status"), (slower, "spec is immutable")):
        with pytest.raises(Invalid, match=why):
            store.merge_patch("PersistentVolumeClaim", "default", "c", change)
        with pytest.raises(Invalid, match=why):
            store.apply({**raw, "spec": {**spec, **change["spec"]}})


# -- many at once, dry runs, mirrors and dumps -----------------------------------------------------------------------


def test_of_many_objects_each_is_created_or_refused_by_itself(store: Store) -> None:
    answers = store.create_many([config_map("a"), config_map("a"), node("n"), {**pod("p"), "spec": {}}, pod("q")])
    assert [each.name if isinstance(each, Object) else type(each) for each in answers] == [
        "a",
        AlreadyExists,
        "n",
        Invalid,
        "q",
    ]


@pytest.mark.parametrize("writes", [0, 1], ids=["wet", "dry"])
def test_a_dry_run_answers_the_same_and_changes_nothing(writes: int) -> None:
    dry = bool(writes)

    def answers() -> list[Object]:
        store = Store(now=Clock(), seed=1)
        store.create(config_map("old", a="1"))
        before, watch = store.version, store.watch()
        patched = {"data": {"a": "2"}}
        answered = [
            store.create(config_map("new"), dry_run=dry),
            store.merge_patch("ConfigMap", "default", "old", patched, dry_run=dry),
            store.patch("ConfigMap", "default", "old", {"data": {"b": "3"}}, dry_run=dry)[0],
            store.update(config_map("old", a="4"), dry_run=dry),
        ]
        assert (store.version == before, len(watch.take())) == ((True, 0) if dry else (False, 4))
        return answered

    assert [each.name for each in answers()] == ["new", "old", "old", "old"]
    assert [(each.raw.get("data") or {}).get("a") for each in answers()] == [None, "2", "1" if dry else "2", "4"]


def test_a_status_is_not_written_by_a_merge_patch_of_the_whole_unless_that_is_asked_for(store: Store) -> None:
    store.create(workload("Deployment", "d"))
    patch = {"status": {"replicas": 2}}
    assert store.merge_patch("Deployment", "default", "d", patch).status == {}
    assert store.merge_patch("Deployment", "default", "d", patch, with_status=True).status == {"replicas": 2}


def test_who_is_refused_a_patch_is_warned_and_told_why(store: Store) -> None:
    store.create(workload("Deployment", "d"))
    with store.on_behalf_of(UserInfo("me", ())) as remarks, pytest.raises(Invalid, match=r"spec\.replicas"):
        store.patch("Deployment", "default", "d", {"spec": {"replicas": -1, "nonsense": 1}}, validation="Warn")
    assert remarks.warnings == ['unknown field "spec.nonsense"']


def test_what_is_refused_all_writes_takes_only_what_it_mirrors(store: Store) -> None:
    first = store.create(config_map("a", x="1"))
    store.create(config_map("gone"))
    store.refuse_writes(Forbidden("ConfigMap", "a", "this is a mirror"))
    for write in (
        lambda: store.create(config_map("b")),
        lambda: store.merge_patch("ConfigMap", "default", "a", {"data": {"x": "2"}}),
        lambda: store.delete("ConfigMap", "default", "a"),
    ):
        with pytest.raises(Forbidden, match="this is a mirror"):
            write()
    watch = store.watch()
    changed = typed("ConfigMap", {**first.raw, "data": {"x": "2"}})
    another = typed("ConfigMap", {**first.raw, "metadata": {**first.metadata, "name": "c", "uid": "u-c"}})
    replaced = typed("ConfigMap", {**another.raw, "metadata": {**another.metadata, "uid": "u-d"}})
    for objects in ([changed], [changed], [another], [replaced]):
        run_steps(store.reflect(objects, ()))
    run_steps(store.reflect((), [("ConfigMap", "default", "gone"), ("ConfigMap", "default", "never")]))
    events = [(event.type, event.new.name, event.loaded) for event in watch.take()]
    assert events == [
        ("MODIFIED", "a", True),
        ("ADDED", "c", True),
        ("DELETED", "c", False),
        ("ADDED", "c", True),
        ("DELETED", "gone", False),
    ], "what is as it was is no change"
    with pytest.raises(Forbidden, match="this is a mirror"):
        store.create(config_map("b"))


def test_the_objects_of_a_dump_give_way_to_what_was_made_before_them(store: Store) -> None:
    mine = store.create(config_map("a"))
    theirs = typed("ConfigMap", {**mine.raw, "metadata": {**mine.metadata, "uid": "other"}})
    changed = typed("ConfigMap", {**mine.raw, "data": {"x": "2"}})
    built_in = store.get("Namespace", "", "default")
    of_the_dump = typed("Namespace", {**built_in.raw, "metadata": {**built_in.metadata, "uid": "u-default"}})
    watch = store.watch()
    assert run_steps(store.take_in([theirs, of_the_dump, changed])) == [mine]
    assert [(event.type, event.new.uid, event.loaded) for event in watch.take()] == [
        ("MODIFIED", "u-default", True),
        ("MODIFIED", mine.uid, True),
    ]
    assert store.has_uid("u-default")


def test_a_class_that_changes_is_looked_up_again(store: Store) -> None:
    classes = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "c"}, "value": 1}
    store.create(classes)
    raw = pod("a", priorityClassName="c")
    assert store.create(raw).spec["priority"] == 1
    store.delete("PriorityClass", "", "c")
    store.create({**classes, "value": 2})
    assert store.create(pod("b", priorityClassName="c")).spec["priority"] == 2
    store.delete("PriorityClass", "", "c")
    with pytest.raises(Forbidden, match="no PriorityClass with name c was found"):
        store.create(pod("d", priorityClassName="c"))


def test_a_definition_goes_with_the_last_of_its_objects(store: Store) -> None:
    store.create(definition())
    for name in ("a", "b"):
        store.create(widget(name, finalizers=["x.io/f"]))
    store.delete("CustomResourceDefinition", "", "widgets.example.com")
    for name, left in (("a", 1), ("b", 0)):
        assert store.count("CustomResourceDefinition") == 1
        store.merge_patch("Widget", "default", name, {"metadata": {"finalizers": None}})
        assert store.count("Widget") == left
    assert store.count("CustomResourceDefinition") == 0


# -- copies within a request, quotas, applies by server, evictions, forks -------------------------------------------


@pytest.mark.parametrize("raw", [pod(), node()], ids=["pods", "nodes"])
def test_objects_of_one_request_are_those_that_are_created_one_by_one(raw: dict[str, Any]) -> None:
    manifests = [{**raw, "metadata": {**raw["metadata"], "name": name}} for name in ("a", "b", "c", "b", "d")]
    together, apart = Store(now=Clock(), seed=1), Store(now=Clock(), seed=1)
    answers = together.create_many(manifests)
    expected = [_answer(apart, raw) for raw in manifests]
    assert [each.raw if isinstance(each, Object) else str(each) for each in answers] == expected
    assert [event.new.raw for event in together.watch(None, 0).take()] == [
        event.new.raw for event in apart.watch(None, 0).take()
    ]


def _answer(store: Store, raw: dict[str, Any]) -> Any:
    try:
        return store.create(raw).raw
    except AlreadyExists as refusal:
        return str(refusal)


LIMITS = {
    "apiVersion": "v1",
    "kind": "LimitRange",
    "metadata": {"name": "l", "namespace": "default"},
    "spec": {"limits": [{"type": "Container", "defaultRequest": {"cpu": "7m"}}]},
}


def test_pods_after_a_limit_of_their_request_have_its_defaults(store: Store) -> None:
    made = store.create_many([pod("a", cpu=None), LIMITS, pod("b", cpu=None)])
    requests = [each.spec["containers"][0]["resources"] for each in (made[0], made[2]) if isinstance(each, Object)]
    assert requests == [{}, {"requests": {"cpu": "7m"}}]
    store.delete("LimitRange", "default", "l")
    assert store.create(pod("c", cpu=None)).spec["containers"][0]["resources"] == {}


def test_each_object_is_charged_to_its_quota_and_what_is_refused_is_not(store: Store) -> None:
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q", "namespace": "default"}}
    store.create({**quota, "spec": {"hard": {"requests.cpu": "250m", "pods": "5"}}})
    spec = {"hard": {"requests.cpu": "250m", "pods": "5"}, "used": {"requests.cpu": "0", "pods": "0"}}
    store.update_status({**quota, "spec": {}, "status": spec})

    def used() -> dict[str, str]:
        return dict(store.get("ResourceQuota", "default", "q").status["used"])

    assert store.create(pod("dry"), dry_run=True).name == "dry"
    assert used() == {"requests.cpu": "0", "pods": "0"}
    answers = store.create_many([pod("a"), pod("b"), pod("c")])
    assert [isinstance(each, Object) for each in answers] == [True, True, False]
    assert 'pods "c" is forbidden: exceeded quota: q' in str(answers[2])
    assert used() == {"requests.cpu": "200m", "pods": "2"}
    versions = [each.resource_version for each in answers if isinstance(each, Object)]
    assert versions == [event.version for event in store.watch(None, 0).take() if event.new.kind == "Pod"]


def test_who_may_not_write_a_kind_is_refused_but_learns_first_what_is_no_object_of_it() -> None:
    store = Store(now=Clock(), admission=Admission({"NodeRestriction": True}))
    kubelet = UserInfo("system:node:n1", ("system:nodes", "system:authenticated"))
    with store.on_behalf_of(kubelet):
        with pytest.raises(Forbidden, match='node "n1" is not allowed to modify node "n2"'):
            store.create(node("n2"))
        with pytest.raises(Undecodable, match=r"spec\.unschedulable"):
            store.create({**node("n2"), "spec": {"unschedulable": "often"}})
        assert store.create(node("n1")).name == "n1"


def test_a_plugin_of_a_file_is_asked_about_all_but_what_is_built_in_or_restored() -> None:
    asked_about: list[str] = []

    def judge(attributes: Any, new: Any, old: Any) -> None:
        asked_about.append(f"{attributes.operation} {attributes.name}")
        if attributes.name == "bad":
            raise Forbidden("Namespace", "bad", "no")

    store = Store(now=Clock(), admission=Admission(others={"mine": ValidatingPlugin(judge, ("Namespace",))}))
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a"}}
    store.create(space)
    store.create({**space, "metadata": {"name": "restored"}}, restore=True)
    with pytest.raises(Forbidden, match='namespaces "bad" is forbidden: no'):
        store.create({**space, "metadata": {"name": "bad"}})
    store.delete("Namespace", "", "a")
    assert asked_about == ["CREATE a", "CREATE bad", "DELETE a"]


@pytest.mark.parametrize("dry_run", [False, True], ids=["wet", "dry"])
def test_a_configuration_that_is_applied_creates_changes_and_conflicts(store: Store, dry_run: bool) -> None:
    def applied_by(manager: str, value: str, **how: Any) -> str:
        return store.server_side_apply("ConfigMap", "default", "c", config_map("c", a=value), manager, **how)[1]

    assert applied_by("me", "1", dry_run=True) == "created"
    assert store.find("ConfigMap", "default", "c") is None
    assert applied_by("me", "1") == "created"
    assert store.get("ConfigMap", "default", "c").raw["kind"] == "ConfigMap"
    version = store.version
    assert applied_by("me", "1", dry_run=dry_run) == "unchanged"
    assert store.version == version
    assert applied_by("me", "2", dry_run=dry_run) == "configured"
    with pytest.raises(ApplyConflict, match=r'conflict with "me": \.data\.a'):
        applied_by("you", "3", dry_run=dry_run)
    assert applied_by("you", "3", force=True, dry_run=dry_run) == "configured"
    assert store.get("ConfigMap", "default", "c").raw["data"] == {"a": "1" if dry_run else "3"}
    with pytest.raises(NotFound, match=r'deployments\.apps "none" not found'):
        store.server_side_apply("Deployment", "default", "none", workload("Deployment"), "me", subresource="status")
    widget_ = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w", "resourceVersion": "1"}}
    store.create(definition())
    store.create(widget("w"))
    with pytest.raises(Conflict):
        store.server_side_apply("Widget", "default", "w", widget_, "me")


def test_an_eviction_spends_the_budget_and_deletes_the_pod_unless_it_is_a_dry_run(store: Store) -> None:
    budget = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "b"}}
    spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}}
    made = store.create({**budget, "metadata": {"name": "b", "namespace": "default"}, "spec": spec})
    counts = {"disruptionsAllowed": 1, "currentHealthy": 2, "desiredHealthy": 1, "expectedPods": 2}
    store.update_status({**made.raw, "status": {**counts, "observedGeneration": 1}})
    for name in ("a", "b"):
        store.create(pod(name, nodeName="node-1"))
        ready = [{"type": "Ready", "status": "True"}]
        store.patch_status("Pod", "default", name, {"phase": "Running", "conditions": ready})
    before = store.version
    store.evict("default", "a", dry_run=True)
    assert store.version == before
    with pytest.raises(Conflict):
        store.evict("default", "a", uid="other", dry_run=True)
    going = store.evict("default", "a", grace_period_s=7)
    assert (going.deleting, going.metadata["deletionGracePeriodSeconds"]) == (True, 7)
    assert [each["type"] for each in going.status["conditions"]] == ["Ready", "DisruptionTarget"]
    assert store.get("PodDisruptionBudget", "default", "b").status["disruptionsAllowed"] == 0
    with pytest.raises(TooManyRequests, match="would violate the pod's disruption budget"):
        store.evict("default", "b")
    assert not store.get("Pod", "default", "b").deleting


def test_a_fork_goes_on_by_itself_and_what_it_did_can_be_done_here() -> None:
    clock = Clock()
    store = Store(now=clock, seed=3, history=20, max_object_bytes=9_000)
    store.keep_admitted(5, 6)
    store.create(config_map("a"))
    store.create(config_map("gone"))
    fork = store.fork()
    clock.now += 60
    since = fork.version
    assert (since, fork.admitted_used[1], fork.max_object_bytes) == (store.version, 0, 9_000)
    made = fork.create(config_map("b"))
    assert made.metadata["creationTimestamp"] == "2023-11-14T22:13:20Z"
    with pytest.raises(TooLarge):
        fork.create(config_map("large", x="x" * 10_000))
    assert fork.watch(None, since).take()[0].new is made
    with pytest.raises(Gone):
        fork.watch(None, since - 1)
    fork.merge_patch("ConfigMap", "default", "a", {"data": {"y": "1"}})
    fork.delete("ConfigMap", "default", "gone")
    adopted = run_steps(store.adopt(fork.changes_since(since)))
    assert adopted is not None
    assert {key[2] for key in adopted} == {"a", "b"}
    twin = run_steps(store.forking(since))
    events = {(event.type, event.new.name) for event in twin.watch(None, since).take()}
    assert events == {("ADDED", "b"), ("MODIFIED", "a"), ("DELETED", "gone")}
    for number in range(1_100):  # the log drops 1,000 events at a time
        store.merge_patch("ConfigMap", "default", "a", {"data": {"x": str(number)}})
    copies = run_steps(store.forking(store.log.oldest)), store
    assert len({each.create({**config_map("x"), "metadata": {"generateName": "y-"}}).uid for each in copies}) == 1
    with pytest.raises(Gone):
        run_steps(store.forking(since))
    assert run_steps(store.adopt(fork.changes_since(since))) is None, "nobody knows what was written meanwhile"


def test_names_of_a_definition_that_goes_are_free_for_another(store: Store) -> None:
    store.create(definition())
    refused = store.create({**definition(plural="gadgets"), "metadata": {"name": "gadgets.example.com"}})

    def accepted(name: str) -> str:
        conditions = store.get("CustomResourceDefinition", "", name).status["conditions"]
        return str(next(each["status"] for each in conditions if each["type"] == "NamesAccepted"))

    assert accepted(refused.name) == "False"
    store.delete("CustomResourceDefinition", "", "widgets.example.com")
    assert accepted(refused.name) == "True"


def test_a_deletion_that_is_tried_answers_what_a_deletion_would(store: Store) -> None:
    store.create(config_map("c"))
    finalized = config_map("f")
    finalized["metadata"]["finalizers"] = ["a.io/x"]
    store.create(finalized)
    store.create(pod("p", nodeName="node-1"))
    store.create(pod("q"))
    version = store.version
    tried = [store.delete("ConfigMap", "default", name, dry_run=True) for name in "cf"]
    tried += [store.delete("Pod", "default", name, dry_run=True) for name in "pq"]
    assert store.version == version
    assert [each.deleting for each in tried] == [False, True, True, True]
    assert tried[0] is store.get("ConfigMap", "default", "c")
    with pytest.raises(Invalid, match="gracePeriodSeconds"):
        store.delete("Pod", "default", "p", grace_period_s=2**63)


def test_a_store_may_begin_with_objects_and_stand_for_another_version(store: Store) -> None:
    there = [store.create(config_map("a")), store.create(pod("p"))]
    begun = Store(now=Clock(), seed=1, objects=there, version=store.version)
    assert [obj.raw for kind in begun.kinds() for obj in begun.list(kind)] == [there[0].raw, there[1].raw]
    assert begun.count("Namespace") == 0
    begun.stand_for(V1_34.default_rules)
    assert begun.rules == V1_34.default_rules != store.rules


def test_copies_of_a_request_that_is_a_managers_or_tried_are_none(store: Store) -> None:
    with store.one_request():
        for name in "ab":
            made = store.create({**POD, "metadata": {**POD["metadata"], "name": name}}, manager="me")
            assert [entry["manager"] for entry in made.metadata["managedFields"]] == ["me"]
        before = store.version
        store.create({**POD, "metadata": {**POD["metadata"], "name": "c"}}, dry_run=True)
        assert store.version == before


POD = pod()


def test_a_definition_that_is_being_deleted_notes_that_its_objects_are_yet_to_go(store: Store) -> None:
    raw = definition()
    raw["metadata"]["finalizers"] = ["a.io/x"]
    store.create(raw)
    store.create(widget("a", finalizers=["x.io/f"]))
    left = store.delete("CustomResourceDefinition", "", "widgets.example.com")
    assert left.deleting
    assert left.metadata["finalizers"] == ["a.io/x", "customresourcecleanup.apiextensions.k8s.io"]


def test_a_patch_of_an_older_version_of_the_object_is_refused(store: Store) -> None:
    first = store.create(config_map("c"))
    store.patch("ConfigMap", "default", "c", {"data": {"a": "1"}})
    stale = {"metadata": {"resourceVersion": first.metadata["resourceVersion"]}, "data": {"a": "2"}}
    with pytest.raises(Conflict):
        store.patch("ConfigMap", "default", "c", stale)
    found = store.get("ConfigMap", "default", "c")
    assert found.raw["data"] == {"a": "1"}


def test_a_patch_writes_unless_it_is_a_dry_run(store: Store) -> None:
    store.create(config_map("c"))
    for dry in (True, False):
        store.patch("ConfigMap", "default", "c", {"data": {"dry": str(dry)}}, dry_run=dry)
    assert store.get("ConfigMap", "default", "c").raw["data"] == {"dry": "False"}


def test_what_a_dump_restores_is_no_pattern_for_new_pods(store: Store) -> None:
    raw = pod("a")
    with store.one_request():
        restored = store.create({**raw, "metadata": {**raw["metadata"], "uid": "its-own"}}, restore=True)
        made = [store.create({**raw, "metadata": {**raw["metadata"], "name": name}}) for name in ("b", "c")]
        second = {**raw, "metadata": {**raw["metadata"], "name": "d", "uid": "another"}}
        again = store.create({**second, "status": {"phase": "Running"}}, restore=True)
    assert (restored.uid, again.uid) == ("its-own", "another")
    assert again.raw["status"]["phase"] == "Running"
    assert all(one.uid not in ("its-own", "another", "") for one in made)
    assert {one.raw["status"]["phase"] for one in made} == {"Pending"}


def test_watchers_see_a_pod_being_deleted_once_before_it_is_gone(store: Store) -> None:
    store.create(pod("a", node_name="n1"))
    store.create({**pod("b"), "metadata": {"name": "b", "finalizers": ["example.com/hold"]}})
    watch = store.watch(("Pod",), store.version)
    store.delete("Pod", "default", "a", grace_period_s=0)
    assert [(event.type, bool(event.new.deletion_timestamp)) for event in watch.take()] == [
        ("MODIFIED", True),
        ("DELETED", True),
    ]
    store.delete("Pod", "default", "b", grace_period_s=0)
    assert [event.type for event in watch.take()] == ["MODIFIED"]
    store.patch("Pod", "default", "b", {"metadata": {"finalizers": None}})
    assert [event.type for event in watch.take()][-1:] == ["DELETED"]


def test_apply_says_whether_it_changed_the_object(store: Store) -> None:
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"a": "1"}}
    second = {**config, "data": {"a": "2"}}
    applied = [store.server_side_apply("ConfigMap", "default", "c", each, "m")[1] for each in (config, config, second)]
    assert applied == ["created", "unchanged", "configured"]


def test_pods_that_were_admitted_for_another_version_are_decoded_anew() -> None:
    store = Store(now=Clock(), seed=1)
    raw = pod("a")
    raw["spec"]["schedulingGroup"] = {"podGroupName": "g"}
    without = store.create({**raw, "metadata": {"name": "a"}}).raw["spec"]
    store.stand_for(default_config(feature_gates={"GenericWorkload": True}).rules)
    assert "schedulingGroup" not in without
    assert "schedulingGroup" in store.create({**raw, "metadata": {"name": "b"}}).raw["spec"]
