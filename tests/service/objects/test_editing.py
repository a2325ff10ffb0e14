from typing import Any

import attrs
import pytest

from kschedd.access.users import User
from kschedd.answers import plain
from kschedd.api.objects import Object
from kschedd.api.selecting.selector_text import parse_selector_text
from kschedd.clusters.virtual import VirtualCluster
from kschedd.service.errors import RpcError
from kschedd.service.execution import Executor
from kschedd.service.objects import editing as edit
from kschedd.service.objects.kinds import described, find_kind
from kschedd.service.operations.serving import serve
from kschedd.service.request import PatchBody, Request, WriteOptions
from kschedd.service.workers import AtOnce
from kschedd.store.custom_resources.scale import NoScale
from kschedd.store.errors import Invalid, NotFound
from kschedd.store.patches.patching import PatchType
from kschedd.store.store import Store
from kschedd.values import run_steps
from tests.actors.clusters import pod


def done(store: Store, request: Request) -> dict[str, Any]:
    changed: dict[str, Any] = plain(edit.change_result(serve(store, request)))
    return changed


def taint(store: Store, name: str, wanted: list[str], overwrite: bool) -> dict[str, Any]:
    return done(store, edit.taint(store.get("Node", "", name), wanted, overwrite))


def cordon(store: Store, name: str, unschedulable: bool) -> dict[str, Any]:
    return done(store, edit.cordon(store.get("Node", "", name), unschedulable))


def patched(store: Store, patch: Any, patch_type: PatchType = "strategic", **how: Any) -> dict[str, Any]:
    options = WriteOptions(**how)
    return done(
        store, Request("patch", "Deployment", "default", "web", body=PatchBody(patch_type, patch), options=options)
    )


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
    reported = taint(store, "n1", given, False)
    assert taints(store) == after
    assert reported["changed"] == ["spec.taints"]


def test_taints_are_taken_away_by_effect_or_altogether(store: Store) -> None:
    taint(store, "n1", ["a:NoSchedule", "a:NoExecute", "b:NoSchedule"], False)
    taint(store, "n1", ["a:NoSchedule-"], False)
    assert [(t["key"], t["effect"]) for t in taints(store)] == [("a", "NoExecute"), ("b", "NoSchedule")]
    taint(store, "n1", ["a-", "b-"], False)
    assert taints(store) == []


def test_a_taint_is_overwritten_only_on_demand(store: Store) -> None:
    taint(store, "n1", ["a=1:NoSchedule"], False)
    with pytest.raises(RpcError, match="overwrite is false") as refused:
        taint(store, "n1", ["a=2:NoSchedule"], False)
    assert refused.value.code == "conflict"
    assert taint(store, "n1", ["a=1:NoSchedule"], False)["changed"] == []
    taint(store, "n1", ["a=2:NoSchedule"], True)
    assert taints(store) == [{"key": "a", "value": "2", "effect": "NoSchedule"}]


@pytest.mark.parametrize(
    "text", ["a", "a=b", "a=b:Sometimes", ":NoSchedule", "", "a:NoSchedule:NoExecute", "a b:NoSchedule"]
)
def test_what_is_no_taint_is_refused_with_what_is(store: Store, text: str) -> None:
    with pytest.raises(RpcError, match="is no taint; allowed: KEY=VALUE:EFFECT"):
        taint(store, "n1", ["z:NoSchedule", text], False)
    assert taints(store) == []


def test_a_taint_that_is_not_there_cannot_be_taken_away(store: Store) -> None:
    with pytest.raises(RpcError, match='taint "a:NoExecute" not found'):
        taint(store, "n1", ["a:NoExecute-"], False)


def test_cordon_and_uncordon_say_whether_anything_changed(store: Store) -> None:
    assert cordon(store, "n1", True)["changed"] == ["spec.unschedulable"]
    assert cordon(store, "n1", True)["changed"] == []
    assert cordon(store, "n1", False)["changed"] == ["spec.unschedulable"]
    assert "unschedulable" not in store.get("Node", "", "n1").spec
    with pytest.raises(NotFound):
        cordon(store, "n2", True)


def test_scaling(store: Store) -> None:
    web = store.get("Deployment", "default", "web")
    assert edit.replicas_of(store, web) == 3
    reported = done(store, edit.scale(store, web, 5, 3))
    assert (reported["changed"], reported["object"]["spec"]["replicas"]) == (["spec.replicas"], 5)
    with pytest.raises(RpcError, match="replicas: -1: must be 0 or more"):
        edit.scale(store, web, -1)
    with pytest.raises(RpcError, match="Expected replicas to be 4, was 5"):
        edit.scale(store, store.get("Deployment", "default", "web"), 1, 4)
    with pytest.raises(NoScale, match="cannot scale a Pod; allowed: Deployment, ReplicaSet"):
        edit.scale(store, store.get("Pod", "default", "web"), 1)


def test_labels_are_set_and_taken_away(store: Store) -> None:
    def label(wanted: dict[str, Any], remove: tuple[str, ...] = (), overwrite: bool = False) -> list[str]:
        there = store.get("Pod", "default", "web")
        changed: list[str] = done(store, edit.set_metadata(there, "labels", wanted, remove, overwrite))["changed"]
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
    patch = {"spec": {"replicas": 9, "template": {"metadata": {"labels": {"tier": "front"}}}}}
    reported = patched(store, patch)
    assert reported["changed"] == ["spec.replicas", "spec.template.metadata.labels.tier"]
    assert patched(store, patch)["changed"] == []


def test_a_patch_of_one_container_leaves_its_requests(store: Store) -> None:
    [container] = store.get("Deployment", "default", "web").spec["template"]["spec"]["containers"]
    patch = {"spec": {"template": {"spec": {"containers": [{"name": container["name"], "image": "new:2"}]}}}}
    reported = patched(store, patch)
    assert reported["changed"] == ["spec.template.spec.containers[0].image", *_more(reported)]
    assert reported["object"]["spec"]["template"]["spec"]["containers"][0] == {**container, **_image("new:2", reported)}


def _more(reported: dict[str, Any]) -> list[str]:
    return [path for path in reported["changed"] if path.endswith("imagePullPolicy")]


def _image(image: str, reported: dict[str, Any]) -> dict[str, Any]:
    policy = reported["object"]["spec"]["template"]["spec"]["containers"][0]["imagePullPolicy"]
    return {"image": image, "imagePullPolicy": policy}


def test_a_dry_run_of_a_patch_changes_nothing(store: Store) -> None:
    version = store.version
    reported = patched(store, {"spec": {"replicas": 9}}, "merge", dry_run=True)
    assert reported["changed"] == ["spec.replicas"]
    assert store.version == version


def test_a_patch_with_an_unknown_field_is_refused_or_warned_of(store: Store) -> None:
    patch = {"spec": {"replica": 9}}
    with pytest.raises(Invalid, match=r'unknown field "spec\.replica"; did you mean "replicas"'):
        patched(store, patch)
    reported = patched(store, patch, validation="Warn")
    assert reported["warnings"] == ['unknown field "spec.replica"; did you mean "replicas"?']
    assert reported["changed"] == []


def test_every_effect_of_a_taint_is_acted_on(store: Store) -> None:
    store.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "tainted"}})
    for text in ("a:NoExecute", "b:NoSchedule", "c:PreferNoSchedule"):
        assert taint(store, "tainted", [text], False)["unsupported"] == []


def deletion(
    name: str | None = None, selector: str | None = None, everything: bool = False, **more: Any
) -> edit.Deletion:
    options = {"grace_period_s": None, "propagation": "Background", "dry_run": False, **more}
    labels = None if selector is None else parse_selector_text(selector)
    return edit.Deletion("Pod", name, labels, everything, None, **options)


def requested(wanted: edit.Deletion, obj: Object) -> Request:
    return attrs.evolve(wanted.request, kind=obj.kind, namespace=obj.namespace, name=obj.name)


def test_deleting_by_name_by_selector_and_all(store: Store) -> None:
    for name, tier in (("a", "front"), ("b", "back"), ("c", "front")):
        raw = pod(name)
        raw["metadata"]["labels"] = {"tier": tier}
        store.create(raw)

    def delete(*args: Any, **more: Any) -> Any:
        wanted = deletion(*args, **more)
        return [(obj.name, serve(store, requested(wanted, obj)).gone) for obj in run_steps(wanted.chosen(store))]

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


async def test_what_goes_between_being_chosen_and_deleted_is_left_out_unless_it_was_named() -> None:
    cluster = VirtualCluster(controlled=False)
    store = cluster.engine.store
    for name in ("a", "b"):
        store.create(pod(name))
    all_of_them, named = deletion(everything=True), deletion("a")
    chosen, one = run_steps(all_of_them.chosen(store)), run_steps(named.chosen(store))
    store.delete("Pod", "default", "a")
    executor = Executor(cluster, AtOnce(), "test", "delete", User())
    served = await executor.serve_each(all_of_them.request, chosen)
    assert [response.object.name for response in served] == ["b"]
    with pytest.raises(NotFound):
        await executor.serve_each(named.request, one)


def test_kinds_are_found_by_any_of_their_names(store: Store) -> None:
    store.create({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}})
    for word in ("Pod", "pods", "po", "POD"):
        assert find_kind(store, word).name == "Pod"
    for word in ("Widget", "widgets", "widget"):
        assert find_kind(store, word).name == "Widget"
    with pytest.raises(RpcError, match='there is no kind "podds"; did you mean "pods"') as refused:
        find_kind(store, "podds")
    assert refused.value.code == "not_found"
    counts = {kind.name: kind.count for kind in described(store) if kind.count}
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
