"""Tests of reading a store: its objects, its log, its kinds, and the rules and the behavior that it simulates."""

from typing import Any

import attrs
import pytest

from kschedd.api.objects import Object, Raw, parse
from kschedd.api.schemas.kinds import lookup
from kschedd.api.selecting.selector_text import FieldSelector, parse_field_selector
from kschedd.api.selecting.selectors import parse_label_selector
from kschedd.api.simulation.pod_behavior import PodBehavior
from kschedd.config.versions.kube_versions import V1_34
from kschedd.store.custom_resources.simulated_behavior_kind import SIMULATED_BEHAVIORS
from kschedd.store.errors import NotFound
from kschedd.store.leases import RENEWED_EVERY
from kschedd.store.store import Store
from tests.store.definitions import definition, widget
from tests.store.manifests import Clock, config_map, node, pod


@pytest.fixture
def store() -> Store:
    return Store(now=Clock())


def names(objects: Any) -> list[str]:
    return [each.name for each in objects]


# -- objects -----------------------------------------------------------------------------------------------------------


def test_an_object_is_found_by_its_name(store: Store) -> None:
    made = store.create(config_map("a"))
    assert store.find("ConfigMap", "default", "a") is store.get("ConfigMap", "default", "a") is made
    assert store.find("ConfigMap", "default", "b") is None
    with pytest.raises(NotFound, match='configmaps "b" not found'):
        store.get("ConfigMap", "default", "b")
    assert store.has_uid(made.uid)
    assert not store.has_uid("none")


def test_a_list_is_sorted_and_has_the_objects_that_both_selectors_match(store: Store) -> None:
    store.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "aa"}})
    for namespace, name, app in (("default", "c", "web"), ("default", "b", "web"), ("aa", "d", "db")):
        raw = config_map(name, namespace=namespace)
        raw["metadata"]["labels"] = {"app": app}
        store.create(raw)
    web, not_b = parse_label_selector({"matchLabels": {"app": "web"}}), parse_field_selector("metadata.name!=b")
    assert names(store.list("ConfigMap")) == ["d", "b", "c"]
    assert names(store.list("ConfigMap", "default")) == ["b", "c"]
    assert names(store.list("ConfigMap", None, web)) == ["b", "c"]
    assert names(store.list("ConfigMap", None, None, not_b)) == ["d", "c"]
    assert names(store.list("ConfigMap", "default", web, not_b)) == ["c"]
    assert names(store.list("ConfigMap", None, parse_label_selector({}), FieldSelector())) == ["d", "b", "c"]
    assert sorted(map(sorted, map(names, store.present("ConfigMap")))) == [["b", "c"], ["d"]]
    store.delete("ConfigMap", "aa", "d")
    assert [sorted(names(each)) for each in store.present("ConfigMap")] == [["b", "c"]], "no empty namespace"
    assert list(store.present("ConfigMap", "aa")) == []
    assert store.count("ConfigMap") == 2
    assert ("b" in store.names("ConfigMap", "default"), "d" in store.names("ConfigMap", "default")) == (True, False)
    assert (store.present_in("ConfigMap", "default"), store.present_in("Secret", "default")) == (True, False)
    assert {"ConfigMap", "Namespace"} <= set(store.kinds())
    assert "Secret" not in store.kinds()


def test_objects_are_found_by_owner_node_and_namespace(store: Store) -> None:
    store.create(node("n"))
    raw = pod("child", nodeName="n")
    raw["metadata"]["ownerReferences"] = [{"apiVersion": "v1", "kind": "ConfigMap", "name": "p", "uid": "u1"}]
    child = store.create(raw)
    assert list(store.owned_by("u1")) == list(store.pods_on("n")) == [child]
    assert child in store.in_namespace("default")
    assert (list(store.owned_by("u2")), list(store.pods_on("m")), list(store.in_namespace("none"))) == ([], [], [])


def test_a_lease_has_its_latest_renewal_unless_it_is_watched() -> None:
    clock = Clock(35.0)
    meta = {"name": "n", "namespace": "kube-node-lease", "uid": "u", "annotations": {RENEWED_EVERY: "10"}}
    stored = "1970-01-01T00:00:00.000000Z"
    raw: Raw = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": meta,
        "spec": {"renewTime": stored},
    }
    store = Store(objects=[parse(raw)], now=clock)

    def read() -> set[str]:
        found = [store.get("Lease", "kube-node-lease", "n"), *store.list("Lease"), *store.present("Lease")[0]]
        return {each.spec["renewTime"] for each in found}

    assert read() == {"1970-01-01T00:00:30.000000Z"}
    store.set_clock(lambda: 45.0)
    assert (store.now, read()) == (45.0, {"1970-01-01T00:00:40.000000Z"})
    store.watch(["Pod"])
    assert not store.is_watched("Lease")
    watch = store.watch(["Lease"])
    assert store.is_watched("Lease")
    assert read() == {stored}, "each renewal is written while a client watches"
    watch.close()
    assert read() == {"1970-01-01T00:00:40.000000Z"}


# -- kinds -------------------------------------------------------------------------------------------------------------


def test_the_kind_of_an_object_is_built_in_or_defined(store: Store) -> None:
    assert store.kind_of(pod()) is lookup("Pod")
    undefined = store.kind_of(widget("a"))
    assert not undefined.known
    assert not store.serves(undefined)
    store.create(definition())
    defined = store.kind_of(widget("a"))
    assert (defined.name, defined.plural, defined.known) == ("Widget", "widgets", False)
    assert store.serves(defined)
    assert store.serves(lookup("Pod"))
    assert not store.serves(attrs.evolve(defined, api_versions=("example.com/v0",)))


def test_the_schema_of_an_object_has_the_merge_strategies_of_its_kind(store: Store) -> None:
    raw = definition()
    listed = {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]}
    items = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
    properties = {"parts": {**listed, "items": items}}
    raw["spec"]["versions"][1]["schema"] = {"openAPIV3Schema": {"type": "object", "properties": properties}}
    whole = store.merge_schema_of(widget("a"))
    store.create(raw)
    assert store.merge_schema_of(widget("a")) != whole, "of the definition"
    assert store.merge_schema_of(widget("a", "v9")) == whole, "a version that is not defined"
    assert store.merge_schema_of(pod()) not in (whole, store.merge_schema_of(node()))


# -- versions of Kubernetes, and the behavior of pods ------------------------------------------------------------------


def test_with_a_behavior_of_pods_simulated_behaviors_are_served(store: Store) -> None:
    assert store.pod_behavior is None
    for change in (store.keep_jobs_running, store.become_copy):
        change()
        assert (store.pod_behavior, store.features) == (None, store.rules.features), "nothing is simulated"
    behavior = PodBehavior(finish_jobs_s=1.0, start_s=2.0, finish_pods_s=3.0, waits_for_configuration=True)
    store.simulate_pods(behavior)
    assert (store.pod_behavior, store.features) == (behavior, store.rules.features | {SIMULATED_BEHAVIORS})
    store.keep_jobs_running()
    assert store.pod_behavior == PodBehavior(start_s=2.0, waits_for_configuration=True)
    store.simulate_pods(behavior)
    store.become_copy()
    assert store.pod_behavior == behavior.of_copy() != behavior
    store.simulate_pods(None)
    assert store.features == store.rules.features


def test_a_store_that_stands_for_another_version_still_simulates_pods(store: Store) -> None:
    store.simulate_pods(PodBehavior())
    earlier = V1_34.default_rules
    store.stand_for(earlier)
    assert (store.rules, store.features) == (earlier, earlier.features | {SIMULATED_BEHAVIORS})


# -- the log -----------------------------------------------------------------------------------------------------------


def test_a_watch_begins_after_the_last_write_that_clients_may_see(store: Store) -> None:
    before = store.version
    store.log.show(before)
    made: Object = store.create(config_map("a"))
    assert store.version == made.resource_version == before + 1
    assert store.watch().take() == store.shown_after(before) == []
    assert [event.new for event in store.written_after(before)] == [made]
    store.log.show(store.version)
    assert [event.new for event in store.shown_after(before)] == [made]
    assert [event.new for event in store.watch(["ConfigMap"], before).take()] == [made]
    assert store.watch(["Pod"], before).take() == store.watch().take() == []
    assert store.history_used == store.log.used
    assert store.history_bytes_used == store.log.bytes_used
    assert store.history_bytes_used[0] > 0


def test_limits_are_given_at_the_start() -> None:
    store = Store(now=Clock(), max_object_bytes=9_000, service_range="10.0.0.0/24")
    assert (store.max_object_bytes, store.service_range) == (9_000, "10.0.0.0/24")
