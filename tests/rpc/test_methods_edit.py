from typing import Any

import pytest

from kschedd.api.kinds import BY_NAME
from kschedd.api.selector_text import parse_selector_text
from kschedd.service.errors import RpcError
from kschedd.service.objects import editing as edit
from kschedd.service.objects.kinds import described, find_kind
from kschedd.store.errors import Invalid, NotFound
from kschedd.store.store import Store
from kschedd.values import run_steps
from tests.actors.clusters import deployment, node, pod


@pytest.fixture
def store() -> Store:
    made = Store(now=lambda: 0.0)
    for raw in (node(), pod(), deployment()):
        made.create(raw)
    return made


def taints(store: Store) -> list[Any]:
    return list(store.get("Node", "", "n1").spec.get("taints") or [])


@pytest.mark.parametrize(
    ("given", "after"),
    [
        pytest.param(["a=b:NoSchedule"], [{"key": "a", "value": "b", "effect": "NoSchedule"}], id="set"),
        pytest.param(["a:NoExecute"], [{"key": "a", "effect": "NoExecute"}], id="without-a-value"),
        pytest.param(["a=:NoExecute"], [{"key": "a", "effect": "NoExecute"}], id="with-an-empty-value"),
        pytest.param(
            ["x.io/a=b:PreferNoSchedule", "a:NoSchedule"],
            [{"key": "x.io/a", "value": "b", "effect": "PreferNoSchedule"}, {"key": "a", "effect": "NoSchedule"}],
            id="several",
        ),
    ],
)
def test_taints_in_kubectls_notation(store: Store, given: list[str], after: list[Any]) -> None:
    told = edit.taint(store, "n1", given, False)
    assert taints(store) == after
    assert told["changed"] == ["spec.taints"]


def test_taints_are_taken_away_by_effect_or_altogether(store: Store) -> None:
    edit.taint(store, "n1", ["a:NoSchedule", "a:NoExecute", "b:NoSchedule"], False)
    edit.taint(store, "n1", ["a:NoSchedule-"], False)
    assert [(t["key"], t["effect"]) for t in taints(store)] == [("a", "NoExecute"), ("b", "NoSchedule")]
    edit.taint(store, "n1", ["a-", "b-"], False)
    assert taints(store) == []


def test_a_taint_is_overwritten_only_on_demand(store: Store) -> None:
    edit.taint(store, "n1", ["a=1:NoSchedule"], False)
    with pytest.raises(RpcError, match="overwrite is false") as refused:
        edit.taint(store, "n1", ["a=2:NoSchedule"], False)
    assert refused.value.code == "conflict"
    assert edit.taint(store, "n1", ["a=1:NoSchedule"], False)["changed"] == []
    edit.taint(store, "n1", ["a=2:NoSchedule"], True)
    assert taints(store) == [{"key": "a", "value": "2", "effect": "NoSchedule"}]


@pytest.mark.parametrize(
    "text", ["a", "a=b", "a=b:Sometimes", ":NoSchedule", "", "a:NoSchedule:NoExecute", "a b:NoSchedule"]
)
def test_what_is_no_taint_is_refused_with_what_is(store: Store, text: str) -> None:
    with pytest.raises(RpcError, match="is no taint; allowed: KEY=VALUE:EFFECT"):
        edit.taint(store, "n1", ["z:NoSchedule", text], False)
    assert taints(store) == []


def test_a_taint_that_is_not_there_cannot_be_taken_away(store: Store) -> None:
    with pytest.raises(RpcError, match='taint "a:NoExecute" not found'):
        edit.taint(store, "n1", ["a:NoExecute-"], False)


def test_cordon_and_uncordon_say_whether_anything_changed(store: Store) -> None:
    assert edit.cordon(store, "n1", True)["changed"] == ["spec.unschedulable"]
    assert edit.cordon(store, "n1", True)["changed"] == []
    assert edit.cordon(store, "n1", False)["changed"] == ["spec.unschedulable"]
    assert "unschedulable" not in store.get("Node", "", "n1").spec
    with pytest.raises(NotFound):
        edit.cordon(store, "n2", True)


def test_scaling(store: Store) -> None:
    kind = BY_NAME["Deployment"]
    told = edit.scale(store, kind, "web", None, 5)
    assert (told["before"], told["after"], told["object"]["spec"]["replicas"]) == (3, 5, 5)
    with pytest.raises(RpcError, match="replicas: -1: must be 0 or more"):
        edit.scale(store, kind, "web", None, -1)
    with pytest.raises(RpcError, match="cannot scale a Pod; allowed: Deployment, ReplicaSet"):
        edit.scale(store, BY_NAME["Pod"], "web", None, 1)


def test_labels_are_set_and_taken_away(store: Store) -> None:
    kind = BY_NAME["Pod"]

    def label(wanted: dict[str, Any], remove: tuple[str, ...] = (), overwrite: bool = False) -> list[str]:
        changed: list[str] = edit.set_metadata(store, "labels", kind, "web", None, wanted, remove, overwrite)["changed"]
        return changed

    assert label({"a": "1", "x.io/b": "2"}) == ["metadata.labels"]
    with pytest.raises(RpcError, match=r"'a' already has a value \(1\), and overwrite is false"):
        label({"a": "2"})
    assert label({"a": "2"}, ("x.io/b",), True) == ["metadata.labels.a", "metadata.labels[x.io/b]"]
    assert label({"a": "2"}) == []
    assert store.get("Pod", "default", "web").labels == {"a": "2"}
    with pytest.raises(RpcError, match="cannot both set and remove a"):
        label({"a": "3"}, ("a",))
    with pytest.raises(RpcError, match=r"labels\[a\]: 3: must be text"):
        label({"a": 3})


def test_a_patch_says_what_it_changed(store: Store) -> None:
    kind = BY_NAME["Deployment"]
    patch = {"spec": {"replicas": 9, "template": {"metadata": {"labels": {"tier": "front"}}}}}
    told = edit.patch(store, kind, "web", None, patch, "strategic", "", "Strict", False)
    assert told["changed"] == ["spec.replicas", "spec.template.metadata.labels.tier"]
    assert edit.patch(store, kind, "web", None, patch, "strategic", "", "Strict", False)["changed"] == []


def test_a_patch_of_one_container_leaves_its_requests(store: Store) -> None:
    kind = BY_NAME["Deployment"]
    [container] = store.get("Deployment", "default", "web").spec["template"]["spec"]["containers"]
    patch = {"spec": {"template": {"spec": {"containers": [{"name": container["name"], "image": "new:2"}]}}}}
    told = edit.patch(store, kind, "web", None, patch, "strategic", "", "Strict", False)
    assert told["changed"] == ["spec.template.spec.containers[0].image", *_more(told)]
    assert told["object"]["spec"]["template"]["spec"]["containers"][0] == {**container, **_image("new:2", told)}


def _more(told: dict[str, Any]) -> list[str]:
    return [path for path in told["changed"] if path.endswith("imagePullPolicy")]


def _image(image: str, told: dict[str, Any]) -> dict[str, Any]:
    policy = told["object"]["spec"]["template"]["spec"]["containers"][0]["imagePullPolicy"]
    return {"image": image, "imagePullPolicy": policy}


def test_a_dry_run_of_a_patch_changes_nothing(store: Store) -> None:
    kind = BY_NAME["Deployment"]
    version = store.version
    told = edit.patch(store, kind, "web", None, {"spec": {"replicas": 9}}, "merge", "", "Strict", True)
    assert told["changed"] == ["spec.replicas"]
    assert store.version == version


def test_a_patch_with_an_unknown_field_is_refused_or_warned_of(store: Store) -> None:
    kind = BY_NAME["Deployment"]
    patch = {"spec": {"replica": 9}}
    with pytest.raises(Invalid, match=r'unknown field "spec\.replica"; did you mean "replicas"'):
        edit.patch(store, kind, "web", None, patch, "strategic", "", "Strict", False)
    told = edit.patch(store, kind, "web", None, patch, "strategic", "", "Warn", False)
    assert told["warnings"] == ['unknown field "spec.replica"; did you mean "replicas"?']
    assert told["changed"] == []


def test_every_effect_of_a_taint_is_acted_on(store: Store) -> None:
    store.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "tainted"}})
    for text in ("a:NoExecute", "b:NoSchedule", "c:PreferNoSchedule"):
        assert edit.taint(store, "tainted", [text], False)["unsupported"] == []


def deletion(
    name: str | None = None, selector: str | None = None, everything: bool = False, **more: Any
) -> edit.Deletion:
    options = {"grace_period_s": None, "propagation": "Background", "dry_run": False, **more}
    labels = None if selector is None else parse_selector_text(selector)
    return edit.Deletion("Pod", name, labels, everything, None, **options)


def test_deleting_by_name_by_selector_and_all(store: Store) -> None:
    for name, tier in (("a", "front"), ("b", "back"), ("c", "front")):
        raw = pod(name)
        raw["metadata"]["labels"] = {"tier": tier}
        store.create(raw)

    def delete(*args: Any, **more: Any) -> Any:
        wanted = deletion(*args, **more)
        return [(entry["name"], entry["gone"]) for entry in wanted.delete(store, run_steps(wanted.chosen(store)))]

    assert delete(selector="tier=front", dry_run=True) == [("a", False), ("c", False)]
    assert delete(selector="tier=front") == [("a", True), ("c", True)]
    assert delete("web") == [("web", True)]
    store.bind("default", "b", "n1")
    assert delete(everything=True, grace_period_s=30) == [("b", False)]
    with pytest.raises(RpcError, match=r"give one of name, label_selector \(or field_selector\) and all"):
        delete()
    with pytest.raises(RpcError, match="grace_period_s: -1: must be 0 or more"):
        delete("b", grace_period_s=-1)
    with pytest.raises(NotFound):
        delete("web")


def test_what_goes_between_being_chosen_and_deleted_is_left_out_unless_it_was_named(store: Store) -> None:
    for name in ("a", "b"):
        store.create(pod(name))
    all_of_them, named = deletion(everything=True), deletion("a")
    chosen, one = run_steps(all_of_them.chosen(store)), run_steps(named.chosen(store))
    store.delete("Pod", "default", "a")
    assert {entry["name"] for entry in all_of_them.delete(store, chosen)} == {obj.name for obj in chosen} - {"a"}
    with pytest.raises(NotFound):
        named.delete(store, one)


def test_kinds_are_found_by_any_of_their_names(store: Store) -> None:
    store.create({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}})
    for word in ("Pod", "pods", "po", "POD"):
        assert find_kind(store, word).name == "Pod"
    for word in ("Widget", "widgets", "widget"):
        assert find_kind(store, word).name == "Widget"
    with pytest.raises(RpcError, match='there is no kind "podds"; did you mean pods') as refused:
        find_kind(store, "podds")
    assert refused.value.code == "not_found"
    counts = {kind["name"]: kind["count"] for kind in described(store) if kind["count"]}
    assert counts == {"Namespace": 4, "Node": 1, "Pod": 1, "Deployment": 1, "PriorityClass": 2, "Widget": 1}


@pytest.mark.parametrize(
    ("old", "new", "paths"),
    [
        pytest.param({"a": 1}, {"a": 1}, [], id="nothing"),
        pytest.param({"a": {"b": 1, "c": 2}}, {"a": {"b": 1, "c": 3}}, ["a.c"], id="a-field"),
        pytest.param({"a": [{"x": 1}, {"x": 2}]}, {"a": [{"x": 1}, {"x": 3}]}, ["a[1].x"], id="in-a-list"),
        pytest.param({"a": [1]}, {"a": [1, 2]}, ["a"], id="a-longer-list"),
        pytest.param({"a": 1}, {"b": 1}, ["a", "b"], id="gone-and-new"),
        pytest.param({"metadata": {"resourceVersion": "1"}}, {"metadata": {"resourceVersion": "2"}}, [], id="no-news"),
    ],
)
def test_the_paths_that_changed(old: Any, new: Any, paths: list[str]) -> None:
    assert edit.changed_paths(old, new) == paths
