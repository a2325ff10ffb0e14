"""Tests that pods of one request, copied from each other, equal pods created one by one."""

import json
from collections.abc import Callable, Sequence
from copy import deepcopy
from functools import partial
from random import Random
from typing import Any

import pytest

from kschedd.api.objects import Object
from kschedd.api.pods import Pod
from kschedd.api.text.times import stamp
from kschedd.controllers.runner import ControllerRunner
from kschedd.controllers.workloads.replicasets import ReplicaSets
from kschedd.store.admission.chain import Admission, ValidatingPlugin
from kschedd.store.admission_plugins.attributes import UserInfo
from kschedd.store.errors import ApiError, Forbidden
from kschedd.store.prototypes.pods import PodPrototype
from kschedd.store.store import Store
from tests.store.manifests import config_map, node, pod

Raw = dict[str, Any]


def reported(answer: Object | ApiError) -> Any:
    if isinstance(answer, ApiError):
        return type(answer).__name__, str(answer)
    columns = answer.kind, answer.name, answer.namespace, answer.uid, answer.resource_version, answer.labels
    pods = [getattr(answer, field, None) for field in ("node_name", "phase", "nominated_node_name")]
    return columns, pods, json.dumps(answer.raw)  # in the order of its fields


def one_by_one(store: Store, raws: Sequence[Raw]) -> list[Object | ApiError]:
    made: list[Object | ApiError] = []
    for raw in raws:
        try:
            made.append(store.create(raw))
        except ApiError as refusal:
            made.append(refusal)
    return made


_START = 1_700_000_000.0


class Twins:
    """Two equal stores: one receives all objects in one request, the other one by one."""

    def __init__(self, new_store: Callable[..., Store] = Store) -> None:
        self.one, self.other = new_store(now=lambda: _START), new_store(now=lambda: _START)
        for store in (self.one, self.other):
            # Time passes during a request: a pod's creationTimestamp is the time of its own write.
            store.set_clock(lambda store=store: _START + 0.3 * store.version)

    def create(self, raws: Sequence[Raw]) -> list[Any]:
        answers = list(map(reported, self.one.create_many(raws)))
        assert answers == list(map(reported, one_by_one(self.other, raws)))
        self.agree()
        return answers

    def agree(self) -> None:
        stores = (self.one, self.other)
        one, other = ([(e.type, e.version, reported(e.new)) for e in store.shown_after(0)] for store in stores)
        assert one == other
        assert [list(map(reported, store.pods_on("node-1"))) for store in stores] == 2 * [
            list(map(reported, self.one.pods_on("node-1")))
        ]
        owned = [[obj.key for obj in store.owned_by("owner-uid")] for store in stores]
        assert owned[0] == owned[1]


def _daemon(
    node_name: str, *, key: str = "metadata.name", operator: str = "In", podAffinity: Any = None, **spec: Any
) -> Any:
    """Return a pod spec with the node affinity of a DaemonSet's pod."""
    field = {"key": key, "operator": operator, "values": [node_name]}
    required = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    affinity: dict[str, Any] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    if podAffinity is not None:
        affinity["podAffinity"] = podAffinity
    return pod(affinity=affinity, **spec)["spec"]


SPECS: list[Any] = [
    pod()["spec"],
    pod(cpu="200m")["spec"],
    pod(nodeName="node-1")["spec"],
    pod(schedulingGates=[{"name": "a.io/b"}])["spec"],
    pod(terminationGracePeriodSeconds=1)["spec"],
    pod(terminationGracePeriodSeconds=True)["spec"],
    pod(terminationGracePeriodSeconds=1.0)["spec"],
    pod(volumes=[{"name": "v", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}}])["spec"],
    pod(hostNetwork=True, hostname="UPPER")["spec"],
    *(_daemon(name) for name in ("node-1", "node-2", "Node 3")),
    _daemon("node-1", nodeName="node-1"),
    _daemon("node-2", nodeName="node-1"),
    _daemon("node-2", nodeName="node-2"),
    _daemon("node-1", cpu="200m"),
    _daemon("node-1", terminationGracePeriodSeconds=True),
    _daemon("node-1", key="metadata.nam"),
    _daemon("node-1", operator="NotIn"),
    _daemon("node-1", podAffinity={}),
    _daemon("node-1", hostname=None),
    _daemon("node-2", subdomain="other"),
    {"containers": []},
    None,
    7,
]
_OWNER = {"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "owner-uid"}
METAS: list[Any] = [
    {},
    {},
    {"labels": {"app": "web"}},
    {"labels": {"app": "db"}},
    {"labels": {"app": 1}},
    {"labels": None, "annotations": {}},
    {"annotations": {"note": "x"}},
    {"ownerReferences": [_OWNER]},
    {"ownerReferences": [{**_OWNER, "controller": True}]},
    {"ownerReferences": [{**_OWNER, "controller": 1}]},
    {"finalizers": ["example.com/wait"]},
    {"uid": "given"},
    {"uid": ""},
    {"namespace": "default"},
    {"namespace": "other"},
    {"namespace": "nowhere"},
    {"generateName": "made-"},
    {"deletionTimestamp": "2023-11-14T22:14:05Z"},
    {"generation": 4},
    {"creationTimestamp": None},
]
_APP_ARMOR = {"container.apparmor.security.beta.kubernetes.io/app": "unconfined"}
NAMES: list[Any] = ["Upper", "a_b", "x" * 253, "x" * 254, "", None, 7, "taken"]


def _manifest(dice: Random, number: int) -> Raw:
    if dice.random() < 0.1:
        return dice.choice([config_map(f"c{number}"), node(f"n{number}"), {"kind": "Pod"}, {"kind": ""}])
    name = dice.choice(NAMES) if dice.random() < 0.2 else f"pod-{number}"
    meta = [("name", name), *dice.choice(METAS).items()]
    if dice.random() < 0.2:
        meta.reverse()
    raw = {"apiVersion": "v1", "kind": "Pod", "metadata": dict(meta), "spec": dice.choice(SPECS)}
    if dice.random() < 0.1:
        raw.update(dice.choice([{"apiVersion": "v2"}, {"status": {"phase": "Running"}}, {"more": 1}]))
    return raw


@pytest.mark.parametrize("seed", range(20))
def test_a_batch_comes_to_the_same_as_one_after_the_other(seed: int) -> None:
    dice = Random(seed)
    twins = Twins()
    twins.create([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}}, pod("taken")])
    for batch in range(4):
        raws: list[Raw] = []
        while len(raws) < 30:
            like = _manifest(dice, len(raws))
            for _ in range(dice.choice((1, 2, 5))):  # several pods of one template, with identical or equal parts
                raw = like if dice.random() < 0.7 else deepcopy(like)
                if isinstance(raw.get("metadata"), dict) and str(raw["metadata"].get("name")).startswith("pod-"):
                    raw = {**raw, "metadata": {**raw["metadata"], "name": f"pod-{batch}-{len(raws)}"}}
                raws.append(raw)
        twins.create(raws)


def test_most_of_a_batch_of_one_template_is_copied() -> None:
    """Check that the other tests of this module do copy pods."""
    store = Store(now=lambda: 0.0)
    like = pod()
    first, *copies = store.create_many([{**like, "metadata": {**like["metadata"], "name": f"p{n}"}} for n in range(5)])
    assert isinstance(first, Object)
    assert all(isinstance(copy, Object) and copy.raw["status"] is first.raw["status"] for copy in copies)
    assert len({copy.uid for copy in (first, *copies) if isinstance(copy, Object)}) == 5


@pytest.mark.parametrize(
    ("spec", "copied"),
    [
        pytest.param({}, True, id="a-pod-of-any-time"),
        pytest.param({"schedulingGates": [{"name": "later"}]}, False, id="one-whose-condition-says-when-it-was-born"),
    ],
)
def test_a_copy_has_the_time_of_its_own_creation(spec: dict[str, Any], copied: bool) -> None:
    store = Store(now=lambda: _START)
    like = pod(**spec)
    with store.one_request():
        first = store.create(like)
        store.set_clock(lambda: _START + 60)
        later = store.create({**like, "metadata": {**like["metadata"], "name": "later"}})
    assert (later.raw["status"] is first.raw["status"]) is copied
    assert [obj.metadata["creationTimestamp"] for obj in (first, later)] == [stamp(_START), stamp(_START + 60)]
    for condition in later.status.get("conditions", ()):
        assert condition["lastTransitionTime"] == stamp(_START + 60)


_QUOTA = {
    "apiVersion": "v1",
    "kind": "ResourceQuota",
    "metadata": {"name": "few", "namespace": "default"},
    "spec": {"hard": {"pods": "2"}},
    "status": {"hard": {"pods": "2"}, "used": {"pods": "0"}},
}


def _of_one_template(names: Sequence[str], **meta: Any) -> list[Raw]:
    like = pod()
    return [{**like, "metadata": {**like["metadata"], "name": name, **meta}} for name in names]


def test_pods_of_several_templates_are_copied_each_from_its_own() -> None:
    store = Store(now=lambda: 0.0)
    # They differ not only in amounts (`spec_without_amounts`), since otherwise they would share their status, too.
    amounts = ("100m", "200m", "300m")
    templates = [pod(cpu=cpu, terminationGracePeriodSeconds=place) for place, cpu in enumerate(amounts)]
    raws = [{**templates[n % 3], "metadata": {"name": f"p{n}"}} for n in range(9)]
    made = [each for each in store.create_many(raws) if isinstance(each, Pod)]
    assert [each.spec["containers"][0]["resources"]["requests"]["cpu"] for each in made] == [*amounts] * 3
    assert len({id(each.raw["status"]) for each in made}) == 3


def test_each_pod_is_counted_against_a_quota() -> None:
    twins = Twins()
    for store in (twins.one, twins.other):
        store.create(_QUOTA, restore=True)
    answers = twins.create(_of_one_template("abcd"))
    assert [answer[0] for answer in answers[2:]] == ["Forbidden", "Forbidden"]


def test_what_is_created_between_two_pods_holds_for_the_second() -> None:
    limits = [{"type": "Container", "default": {"memory": "1Gi"}}]
    meta = {"name": "limits", "namespace": "default"}
    limit_range = {"apiVersion": "v1", "kind": "LimitRange", "metadata": meta, "spec": {"limits": limits}}
    first, _, third = _of_one_template("abc")
    other = pod("other", cpu="1")
    _, _, before, _, after = Twins().create([other, {**first, "spec": other["spec"]}, first, limit_range, third])
    assert "1Gi" not in before[-1]
    assert "1Gi" in after[-1]


def test_a_pod_that_is_too_large_by_its_name_alone_is_refused() -> None:
    size = len(json.dumps(Store(now=lambda: 0.0).create(pod("a")).raw))
    for most in range(size - 400, size + 700, 50):
        Twins(partial(Store, max_object_bytes=most)).create(_of_one_template(["a", "b" * 253, "c"]))


def test_a_plugin_of_a_file_is_asked_about_each_pod() -> None:
    def no_b(attributes: Any, new: Any, old: Any) -> None:
        if attributes.name == "b":
            raise Forbidden("Pod", "b", "no b here")

    admission = Admission(others={"no-b": ValidatingPlugin(no_b, ("Pod",))})
    answers = Twins(partial(Store, admission=admission)).create(_of_one_template("abc"))
    assert answers[1] == ("Forbidden", 'pods "b" is forbidden: no b here')


def test_a_user_may_do_to_each_pod_what_the_user_may() -> None:
    twins = Twins(partial(Store, admission=Admission({"NodeRestriction": True})))
    user = UserInfo("system:node:node-1", ("system:nodes",))
    with twins.one.on_behalf_of(user), twins.other.on_behalf_of(user):
        answers = twins.create(_of_one_template("ab"))
    assert [answer[0] for answer in answers] == ["Forbidden", "Forbidden"]


def test_a_uid_that_a_copy_was_given_is_taken() -> None:
    twins = Twins()
    for store in (twins.one, twins.other):
        store.create({**pod("restored"), "metadata": {"name": "restored", "uid": "of-a-dump"}}, restore=True)
    made = twins.create(_of_one_template("ab"))[1][0][3]
    for store in (twins.one, twins.other):
        assert store.has_uid(made)


def test_what_a_user_is_warned_of_is_said_once() -> None:
    stores = Store(now=lambda: 0.0), Store(now=lambda: 0.0)
    like = pod()
    meta = like["metadata"]
    raws = [{**like, "metadata": {**meta, "name": n, "annotations": _APP_ARMOR}} for n in "abc"]
    warnings = []
    for store, create in zip(stores, (Store.create_many, one_by_one), strict=True):
        with store.on_behalf_of(UserInfo("jane", ())) as remarks:
            create(store, raws)
        warnings.append(remarks.warnings)
    assert warnings[0] == warnings[1]
    assert len(warnings[0]) == 1


def test_a_field_that_is_null_is_none_that_another_pod_has_in_its_place() -> None:
    one, other = _daemon("node-1", hostname=None), _daemon("node-2", subdomain="other")
    made = Twins().create(
        [{**raw, "spec": spec} for raw, spec in zip(_of_one_template("ab"), (one, other), strict=True)]
    )
    assert "subdomain" in made[1][-1]


def test_the_pods_of_a_daemon_set_are_copied_each_for_its_node() -> None:
    store = Store(now=lambda: 0.0)
    names = [f"node-{number}" for number in range(4)]
    raws = [{**raw, "spec": _daemon(name)} for raw, name in zip(_of_one_template("abcd"), names, strict=True)]
    first, *copies = store.create_many(raws)
    assert isinstance(first, Pod)
    for name, copy in zip(names[1:], copies, strict=True):
        assert isinstance(copy, Pod)
        assert copy.pod_spec.required_node == name
        assert copy.raw["status"] is first.raw["status"]
        assert copy.pod_spec.spec_without_node_affinity is first.pod_spec.spec_without_node_affinity


def test_pods_whose_names_are_made_are_copies_with_names_of_their_own() -> None:
    twins = Twins()
    nameless = pod()
    del nameless["metadata"]["name"]
    nameless["metadata"]["generateName"] = "web-"
    named = {**nameless, "metadata": {**nameless["metadata"], "name": "web-own"}}
    others = {**nameless, "metadata": {**nameless["metadata"], "generateName": "api-"}}
    invalid = {**nameless, "metadata": {**nameless["metadata"], "generateName": "Web-"}}
    raws = [nameless, nameless, named, nameless, named, others, nameless, invalid, nameless, config_map("c"), nameless]
    answers = twins.create(raws)
    names = [answer[0][1] for answer in answers if not isinstance(answer[0], str)]
    assert len(names) == len(set(names)) == len(raws) - 2, "all but a name that is taken, and one that is invalid"
    assert sum(name.startswith("web-") for name in names) == 7


def test_a_controllers_turn_copies_pods(monkeypatch: pytest.MonkeyPatch) -> None:
    copied: list[str] = []
    copy = PodPrototype.copy

    def counted(prototype: PodPrototype, admitted: Any, name: str, uid: str, version: int, at: str) -> Pod:
        copied.append(name)
        return copy(prototype, admitted, name, uid, version, at)

    monkeypatch.setattr(PodPrototype, "copy", counted)
    store = Store(now=lambda: _START)
    template = {"metadata": {"labels": {"app": "web"}}, "spec": pod("p")["spec"]}
    spec = {"replicas": 20, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    store.create({"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "web"}, "spec": spec})
    ControllerRunner(store, [ReplicaSets()]).run_until_idle()
    made = store.list("Pod")
    assert len(made) == 20
    assert len(copied) == 19, "all but the first"
    assert len({each.name for each in made}) == len({each.uid for each in made}) == 20
    assert len({json.dumps({**each.raw, "metadata": {}}) for each in made}) == 1
