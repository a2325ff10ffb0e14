"""Tests that admitting pods part by part with cached results equals admitting each pod as a whole."""

import json
from collections.abc import Sequence
from copy import deepcopy
from random import Random
from typing import Any

import pytest

from kschedd.api.pods import Pod
from kschedd.api.schemas.check import check_meta_schema
from kschedd.api.schemas.codec import encoded
from kschedd.api.schemas.fields import FieldError
from kschedd.api.schemas.schema import type_named
from kschedd.registry.disabled_fields import drop_disabled
from kschedd.registry.validation import default_and_validate_node_affinity, defaulted_pod_spec
from kschedd.store.admission.chain import Admission
from kschedd.store.admission_plugins.attributes import Attributes
from kschedd.store.errors import ApiError, Invalid, Undecodable
from kschedd.store.field_validation import accepted
from kschedd.store.prototypes.pod_strategy import PodStrategy, intern_pod, packed
from kschedd.store.store import Store
from tests.store.manifests import Clock, workload

_REQUIRED, _PREFERRED = (f"{how}DuringSchedulingIgnoredDuringExecution" for how in ("required", "preferred"))
_FIELD = f"spec.affinity.nodeAffinity.{_REQUIRED}.nodeSelectorTerms[0].matchFields[0].values[0]"


def _expression(**changes: Any) -> dict[str, Any]:
    return {"key": "disk", "operator": "In", "values": ["ssd"], **changes}


def _bound_for(name: str) -> dict[str, Any]:
    """Return node affinity as in DaemonSets' pods."""
    term = {"matchFields": [_expression(key="metadata.name", values=[name])]}
    return {_REQUIRED: {"nodeSelectorTerms": [term]}}


def _mostly(dice: Random, good: Sequence[Any], odd: Sequence[Any]) -> Any:
    """Return one of the common values, or, rarely, a strange one, since pods with many strange parts test little."""
    return deepcopy(dice.choice(good if dice.random() < 0.9 else odd))


_terms = [
    {"matchExpressions": [_expression()]},
    {"matchExpressions": None},
    {"matchExpressions": [_expression()], "x": 1},
    {"matchFields": [_expression(key="metadata.name", values=["node-1"])], "matchExpressions": [_expression()]},
    {"matchFields": [_expression(key="metadata.name", values=["node-1"], x=1)]},
]
_odd_terms = [
    {"matchFields": [_expression()]},
    {"matchFields": [_expression(key="metadata.name", values=["node-1", "node-2"])]},
    {"matchFields": [_expression(key="metadata.name", values=[7])]},
    {"matchFields": [_expression(key="metadata.name", operator="Exists", values=["node-1"])]},
    {"matchExpressions": [_expression(operator="Near")]},
    {"matchExpressions": [_expression(values=None)]},
    {"matchExpressions": 7},
]
_NODE_AFFINITIES = [
    _bound_for("node-1"),
    _bound_for("node-2"),
    *({_REQUIRED: {"nodeSelectorTerms": [term]}, _PREFERRED: None} for term in _terms),
    *({_PREFERRED: [{"weight": 1, "preference": term}]} for term in _terms),
]
_ODD_NODE_AFFINITIES: list[Any] = [
    _bound_for("Node 3"),
    *({_REQUIRED: {"nodeSelectorTerms": [term]}} for term in _odd_terms),
    {_PREFERRED: [{"weight": 0, "preference": _terms[0]}]},
    {_REQUIRED: {"nodeSelectorTerms": []}},
    {_REQUIRED: None},
    {},
    None,
    [],
    "x",
]
_POD_TERM = {
    "labelSelector": {"matchLabels": {"app": "web"}},
    "topologyKey": "kubernetes.io/hostname",
    "matchLabelKeys": ["version"],
}
_SPREAD = {"maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", **_POD_TERM}
_CONTAINERS = [
    {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}, "limits": None}},
    {"name": "c", "image": "i", "ports": [{"containerPort": 80}]},
]
_PARTS: dict[str, tuple[list[Any], list[Any]]] = {
    "nodeName": (["node-1", "node-2", "", None], ["Node 3", 7]),
    "schedulingGates": ([None, []], [[{"name": "a.io/b"}]]),
    "tolerations": ([None, [{"operator": "Exists"}]], [[{"key": "a", "operator": "Is"}]]),
    "priorityClassName": (["system-node-critical"], ["there-is-none"]),
    "topologySpreadConstraints": ([None, [_SPREAD]], [[{"maxSkew": 1, **_POD_TERM}]]),
}


def _any_pod(dice: Random, name: str) -> dict[str, Any]:
    spec = {"containers": _mostly(dice, [[container] for container in _CONTAINERS], [[], [{"name": "C C"}], None])}
    if dice.random() < 0.8:
        affinity = {"nodeAffinity": _mostly(dice, _NODE_AFFINITIES, _ODD_NODE_AFFINITIES)}
        if dice.random() < 0.5:
            affinity["podAntiAffinity"] = _mostly(dice, [None, {}, {_REQUIRED: [_POD_TERM]}], [{_REQUIRED: [{}]}])
        spec["affinity"] = _mostly(dice, [affinity], [None, 7])
    for field, (good, odd) in _PARTS.items():
        if dice.random() < 0.3:
            spec[field] = _mostly(dice, good, odd)
    labels = [{}, {"app": "web", "version": "2"}, {"app": "web", "version": "3"}]
    meta = {"name": name, "namespace": "default", "labels": _mostly(dice, labels, [{"app": "not a label!"}])}
    if dice.random() < 0.3:
        meta["uid"] = _mostly(dice, ["", None], [7])
        meta["generateName"] = _mostly(dice, ["web-", "w" * 253], ["w" * 254, "Web-", "web.", 7])
    statuses = [None, {"phase": "Running"}, {"phase": "Running", "startTime": None}]
    status = _mostly(dice, statuses, [{"phase": "Gone"}, 7])
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec, "status": status}


def _judged_whole(raw: dict[str, Any], store: Store) -> tuple[Any, Any]:
    """Return a pod's spec and status after the plain rule, or the error that rejects the pod.

    Admission comes after decoding, and before validation.
    """
    name, chain = raw["metadata"]["name"], Admission()
    attributes = Attributes("CREATE", "Pod", "default", name)
    spec, mistyped = defaulted_pod_spec(raw["spec"])
    try:
        if not mistyped and not check_meta_schema(raw["metadata"]):
            chain.admit(attributes, {"metadata": {}, "spec": spec}, store)
        bare = accepted("Pod", name, {field: raw[field] for field in raw if field != "status"})
        whole = chain.admit(attributes, {"metadata": {}, "spec": bare["spec"]}, store)
        chain.validate(attributes, whole, None, store)
        return whole["spec"], accepted("Pod", name, raw)["status"]
    except ApiError as refusal:
        return None, refusal


@pytest.mark.parametrize("seed", range(10))
def test_a_pod_becomes_what_it_would_judged_whole(seed: int) -> None:
    dice = Random(seed)
    store = Store(now=Clock())
    for number in range(200):
        raw = _any_pod(dice, f"pod-{number}")
        wanted_spec, wanted_status = _judged_whole(raw, store)
        if isinstance(wanted_status, ApiError):
            with pytest.raises(type(wanted_status)) as refusal:
                store.create(raw, restore=True)
            assert str(refusal.value) == str(wanted_status)
            continue
        stored = store.create(raw, restore=True)
        assert stored.spec == {field: value for field, value in wanted_spec.items() if field != "nodeName" or value}
        assert {**stored.status, **(wanted_status if raw["status"] else {})} == stored.status


_OWNER = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "u-1", "controller": True}
_OTHER_OWNER = {"apiVersion": "batch/v1", "kind": "Job", "name": "web", "uid": "u-2"}
_METADATA: dict[str, list[Any]] = {
    "labels": [None, {"app": "web"}, {"app": "web", "version": "2"}, {"app": "db"}],
    "annotations": [
        None,
        {"example.com/note": "one"},
        {"example.com/note": "two"},
        {"example.com/other": "one"},
        {"no key!": ""},
    ],
    "ownerReferences": [None, [_OWNER], [_OTHER_OWNER], [_OWNER, _OTHER_OWNER], [{**_OWNER, "controller": None}]],
    "finalizers": [None, ["example.com/a"], ["example.com/b"], ["example.com/a", "example.com/b"]],
    "namespace": ["default", "limited", "plain"],
}


def _priority_class(value: int) -> dict[str, Any]:
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": "high"},
        "value": value,
    }


def _limit_range(cpu: str, namespace: str) -> dict[str, Any]:
    limit = {"type": "Container", "defaultRequest": {"cpu": cpu}}
    meta = {"name": "limits", "namespace": namespace}
    return {"apiVersion": "v1", "kind": "LimitRange", "metadata": meta, "spec": {"limits": [limit]}}


def _namespace(name: str, **labels: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}


class _Standing:
    """The current objects on which the admission of pods depends, in a store in which they change."""

    def __init__(self) -> None:
        self._now: dict[tuple[str, str, str], dict[str, Any]] = {}
        self.long_lived = Store(now=Clock())
        for raw in (_namespace("limited"), _namespace("plain"), _priority_class(7), _limit_range("1", "limited")):
            self.put(raw)

    def put(self, raw: dict[str, Any]) -> None:
        kind, meta = raw["kind"], raw["metadata"]
        key = kind, meta.get("namespace", ""), meta["name"]
        if key in self._now:
            self.long_lived.delete(*key)
        self._now[key] = raw
        self.long_lived.create(deepcopy(raw))

    def new_store(self) -> Store:
        store = Store(now=Clock())
        for raw in self._now.values():
            store.create(deepcopy(raw))
        return store


def _as_stored(store: Store, raw: dict[str, Any]) -> Any:
    try:
        stored = store.create(deepcopy(raw)).raw
    except ApiError as refusal:
        return str(refusal)
    given_by_count = ("uid", "resourceVersion")
    meta = {field: value for field, value in stored["metadata"].items() if field not in given_by_count}
    return {**stored, "metadata": meta}


@pytest.mark.parametrize("seed", range(6))
def test_a_pod_among_others_is_stored_as_if_it_were_the_only_one(seed: int) -> None:
    """Vary parts of metadata and specs; change the objects on which admission depends between the pods."""
    dice, standing = Random(seed), _Standing()
    accepted_pods = 0
    for number in range(250):
        if dice.random() < 0.05:
            changes = [_priority_class(number), _limit_range(f"{number + 1}m", "limited")]
            standing.put(dice.choice(changes))
        meta = {"name": f"pod-{number}"}
        for field, values in _METADATA.items():
            if (value := dice.choice(values[: dice.choice((1, len(values)))])) is not None:
                meta[field] = value
        container = {"name": "c", "image": "i"}
        if dice.random() < 0.3:
            container["resources"] = {"requests": {"cpu": dice.choice(("1", "2"))}}
        spec = {"containers": [container], **dice.choice(({}, {}, {"priorityClassName": "high"}))}
        if dice.random() < 0.2:
            spec["affinity"] = {"nodeAffinity": _bound_for(dice.choice(("node-1", "node-2")))}
        if dice.random() < 0.2:
            spec["topologySpreadConstraints"] = [_SPREAD]
        raw = {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}
        stored = _as_stored(standing.long_lived, raw)
        assert stored == _as_stored(standing.new_store(), raw)
        accepted_pods += isinstance(stored, dict)
    assert accepted_pods > 200


@pytest.mark.parametrize("generate_name", ["w" * 254, "w" * 58 + "_"])
def test_a_generate_name_is_judged_beyond_what_the_name_keeps_of_it(generate_name: str) -> None:
    store, spec = Store(now=Clock()), {"containers": [{"name": "c", "image": "i"}]}
    store.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"generateName": "w-"}, "spec": spec})
    with pytest.raises(Invalid, match=r"metadata\.generateName: Invalid value"):
        store.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"generateName": generate_name}, "spec": spec})


def test_a_new_pod_has_generation_1_whatever_it_says() -> None:
    for generation in (-1, 7):
        raw = _daemon_pod(f"p{generation}", "node-1")
        raw["metadata"]["generation"] = generation
        assert Store(now=Clock()).create(raw).raw["metadata"]["generation"] == 1


def _daemon_pod(name: str, node: str, **spec: Any) -> dict[str, Any]:
    spec = {"containers": [{"name": "c", "image": "i"}], "affinity": {"nodeAffinity": _bound_for(node)}, **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


@pytest.mark.parametrize(
    ("spec", "paths"),
    [
        pytest.param({"nodeName": "Node 2"}, ["spec.nodeName"], id="the node it has"),
        pytest.param({"nodeName": "n", "schedulingGates": [{"name": "a.io/b"}]}, ["spec.nodeName"], id="gates too"),
        pytest.param({"containers": []}, ["spec.containers"], id="the rest"),
    ],
)
def test_all_that_is_wrong_with_a_pod_is_said_whatever_is_judged_apart(spec: dict[str, Any], paths: list[str]) -> None:
    for node, more in (("node-1", []), ("Node 1", [_FIELD])):
        with pytest.raises(Invalid) as refusal:
            Store(now=Clock()).create(_daemon_pod("a", node, **spec))
        assert sorted(fault.path for fault in refusal.value.faults) == sorted([*paths, *more])


@pytest.mark.parametrize("field", [("key", "operator", "values"), ("values", "key", "operator")])
def test_the_affinity_of_a_daemon_pod_is_stored_as_if_it_had_been_looked_at(field: tuple[str, ...]) -> None:
    stated = {"key": "metadata.name", "operator": "In", "values": ["node-1"]}
    affinity = {_REQUIRED: {"nodeSelectorTerms": [{"matchFields": [{name: stated[name] for name in field}]}]}}
    stored = Store(now=Clock()).create({**_daemon_pod("a", "x"), "spec": _with_affinity(affinity)})
    looked_at = encoded(default_and_validate_node_affinity(affinity, "")[0], type_named("NodeAffinity"))
    assert json.dumps(stored.spec["affinity"]["nodeAffinity"]) == json.dumps(looked_at)
    assert stored.spec["affinity"]["nodeAffinity"] is not affinity


def _with_affinity(affinity: Any) -> dict[str, Any]:
    return {"containers": [{"name": "c", "image": "i"}], "affinity": {"nodeAffinity": affinity}}


def test_pods_that_run_or_are_to_run_elsewhere_share_the_rest() -> None:
    store = Store(now=Clock())
    one, other = (store.create(_daemon_pod(f"pod-{n}", f"node-{n}", nodeName=f"node-{n}")) for n in (1, 2))
    assert one.spec["containers"] is other.spec["containers"]
    assert [pod.spec["nodeName"] for pod in (one, other)] == ["node-1", "node-2"]
    assert one.spec["affinity"] != other.spec["affinity"]


def test_restored_pods_share_equal_statuses() -> None:
    store = Store(now=Clock())
    raws = [{**_daemon_pod(f"pod-{n}", "node"), "status": {"phase": "Running"}} for n in (1, 2)]
    one, other = (store.create(raw, restore=True) for raw in raws)
    assert one.status is other.status
    assert one.status == {"phase": "Running", "qosClass": "BestEffort"}


def test_restored_pods_of_equal_statuses_have_the_quality_of_service_of_their_specs() -> None:
    store = Store(now=Clock())
    containers = [[{"name": "c", "image": "i"}], [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}]]
    specs = [{"containers": each} for each in containers]
    raws = [{**_daemon_pod(f"p{n}", "n"), "spec": spec, "status": {"phase": "Running"}} for n, spec in enumerate(specs)]
    restored = [store.create(raw, restore=True).status["qosClass"] for raw in raws]
    assert restored == ["BestEffort", "Burstable"]


def test_a_volume_of_two_sources_that_are_off_is_dropped() -> None:
    projection = {"clusterTrustBundle": {"path": "ca", "name": "x"}}
    volume = {"name": "v", "image": {"reference": "i"}, "projected": {"sources": [projection]}}
    spec = {"containers": [{"name": "c", "image": "i"}], "volumes": [volume]}
    assert "volumes" not in drop_disabled(spec)


def test_annotations_about_the_spec_are_judged_with_it_and_set_its_fields() -> None:
    store, about = Store(now=Clock()), "container.apparmor.security.beta.kubernetes.io/c"
    raw = _daemon_pod("a", "node-1")
    raw["metadata"]["annotations"] = {"example.com/note": None, about: "runtime/default"}
    stored = store.create(raw)
    assert stored.metadata["annotations"] == {"example.com/note": "", about: "runtime/default"}
    assert stored.spec["containers"][0]["securityContext"] == {"appArmorProfile": {"type": "RuntimeDefault"}}
    with pytest.raises(Invalid, match=r'metadata\.annotations\[container\.apparmor.*: Invalid value: "nonsense"'):
        store.create({**raw, "metadata": {"name": "b", "annotations": {about: "nonsense"}}})


@pytest.mark.parametrize("whole", [False, True], ids=["status-alone", "with-the-rest"])
@pytest.mark.parametrize(
    ("status", "refusal", "words"),
    [
        pytest.param({"replicas": -1}, Invalid, r"status\.replicas: Invalid value: -1", id="invalid"),
        pytest.param({"replicas": "x"}, Undecodable, r'status\.replicas: Invalid value: "x": must be', id="mistyped"),
    ],
)
def test_a_status_that_is_wrong_is_refused_and_not_kept(
    status: dict[str, Any], refusal: type[Invalid], words: str, whole: bool
) -> None:
    store = Store(now=Clock())
    raw = store.create(workload("Deployment")).raw
    with pytest.raises(refusal, match=words):
        store.update({**raw, "status": status}, subresource="" if whole else "status", with_status=whole)
    assert store.get("Deployment", "default", "web").raw is raw


def test_what_is_checked_beside_the_schema_is_among_the_faults_in_upstreams_order() -> None:
    fault = FieldError("spec.x", 1, "no")
    for kind, api, first in (
        ("IngressClass", "networking.k8s.io/v1", True),
        ("PriorityClass", "scheduling.k8s.io/v1", False),
    ):
        raw = {"apiVersion": api, "kind": kind, "metadata": {"name": "A"}}
        with pytest.raises(Invalid) as refused:
            accepted(kind, "A", raw, check=lambda raw: [fault])
        assert len(refused.value.faults) > 1
        assert refused.value.faults[0 if first else -1] is fault


def test_a_pod_that_is_changed_or_read_back_keeps_its_node_and_shares_its_spec() -> None:
    store = Store(now=Clock())
    one, other = (store.create(_daemon_pod(name, "node-1", nodeName="node-1")) for name in "ab")
    changed = store.merge_patch("Pod", "default", "a", {"metadata": {"labels": {"app": "web"}}})
    assert isinstance(changed, Pod)
    assert isinstance(other, Pod)
    assert (changed.node_name, changed.raw["spec"]["nodeName"]) == ("node-1", "node-1")
    assert changed.pod_spec is other.pod_spec
    again = intern_pod(Pod.from_raw(deepcopy(dict(one.raw))))
    assert (again.raw, again.node_name) == (one.raw, "node-1")
    assert again.pod_spec is other.pod_spec


def test_pods_that_differ_in_amounts_only_are_as_those_that_are_judged_alone() -> None:
    together = Store(now=Clock())
    for cpu in ("1", "2", "500m"):
        raw = _daemon_pod(f"p{cpu}", "node-1", tolerations=[{"operator": "Exists"}])
        raw["spec"]["containers"][0]["resources"] = {"requests": {"cpu": cpu}}
        made, alone = together.create(raw), Store(now=Clock()).create(raw)
        assert isinstance(made, Pod)
        assert isinstance(alone, Pod)
        assert (made.spec, made.status) == (alone.spec, alone.status)
        assert made.signature is alone.signature


def _one_pod(name: str = "p", **spec: Any) -> dict[str, Any]:
    spec = {"containers": [{"name": "c", "image": "i"}], **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def _counted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Record the names of the pods whose whole spec is admitted instead of taken from the cache."""
    admitted: list[str] = []
    whole = PodStrategy._admit

    def noting(self: PodStrategy, spec: Any, meta: dict[str, Any], name: str) -> Any:
        admitted.append(name)
        return whole(self, spec, meta, name)

    monkeypatch.setattr(PodStrategy, "_admit", noting)
    return admitted


def test_equal_specs_are_admitted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    admitted = _counted(monkeypatch)
    store = Store(now=Clock(), seed=1)
    for name in ("a", "b", "c"):
        store.create(_one_pod(name))
    assert admitted == ["a"]
    for number, cpu in enumerate(("1", "2", "3")):  # the second and third specs differ only in amounts
        container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
        store.create(_one_pod(f"d{number}", containers=[container]))
    assert admitted == ["a", "d0"]


def test_annotations_that_say_nothing_of_the_spec_do_not_hinder_that(monkeypatch: pytest.MonkeyPatch) -> None:
    admitted = _counted(monkeypatch)
    store = Store(now=Clock(), seed=1)
    for name in ("a", "b"):
        raw = _one_pod(name)
        raw["metadata"]["annotations"] = {"example.com/note": name}
        assert store.create(raw).metadata["annotations"] == {"example.com/note": name}
    assert admitted == ["a"]
    for name in ("c", "d"):
        raw = _one_pod(name)
        raw["metadata"]["annotations"] = {"container.apparmor.security.beta.kubernetes.io/c": "unconfined"}
        store.create(raw)
    assert admitted == ["a", "c", "d"]


def test_a_number_that_cannot_be_stored_is_refused() -> None:
    with pytest.raises(Invalid, match="cannot be stored: a number is beyond 64 bits"):
        packed("Pod", "p", {"x": 2**65})
    with pytest.raises(Invalid, match="cannot be stored"):
        packed("Pod", "p", {"x": object()})


def test_an_update_is_held_to_the_rules_of_tokens_and_of_changes() -> None:
    store = Store(now=Clock(), seed=1)
    store.create(_one_pod(schedulingGates=[{"name": "example.com/wait"}]))
    old = store.get("Pod", "default", "p").raw
    token = {"serviceAccountToken": {"path": "t", "expirationSeconds": 1}}
    volumes = [{"name": "v", "projected": {"sources": [token]}}]
    with pytest.raises(Invalid, match="expirationSeconds"):
        store.update({**old, "spec": {**old["spec"], "volumes": volumes}})
    with pytest.raises(Invalid, match="pod updates may not change fields"):
        store.update({**old, "spec": {**old["spec"], "hostname": "other"}})
    assert store.get("Pod", "default", "p").raw == old
