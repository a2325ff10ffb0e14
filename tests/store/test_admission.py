from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kschedd.store.admission.chain import Admission, UnknownAdmissionPlugin
from kschedd.store.admission_plugins.tolerations import is_superset, merge_tolerations
from kschedd.store.errors import Forbidden
from kschedd.store.store import Store
from tests.store.manifests import Clock, pod


def store_with(**plugins: bool) -> Store:
    return Store(now=Clock(), admission=Admission(plugins))


def priority_class(name: str, value: int, **fields: Any) -> dict[str, Any]:
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
    } | fields


def admitted(store: Store, **spec: Any) -> Any:
    return store.create(pod(**spec)).spec


@pytest.mark.parametrize(
    ("class_name", "value", "policy"),
    [
        pytest.param("high", 1000, "PreemptLowerPriority", id="from-the-class"),
        pytest.param("polite", 10, "Never", id="policy-from-the-class"),
        pytest.param("system-node-critical", 2_000_001_000, "PreemptLowerPriority", id="built-in-class"),
        pytest.param(None, 7, "PreemptLowerPriority", id="from-the-global-default"),
    ],
)
def test_priority_comes_from_the_class(class_name: str | None, value: int, policy: str) -> None:
    store = store_with()
    store.create(priority_class("high", 1000))
    store.create(priority_class("polite", 10, preemptionPolicy="Never"))
    store.create(priority_class("usual", 7, globalDefault=True))
    spec = admitted(store, **({"priorityClassName": class_name} if class_name else {}))
    assert (spec["priority"], spec["preemptionPolicy"]) == (value, policy)
    assert spec["priorityClassName"] == (class_name or "usual")


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        pytest.param({"priorityClassName": "none"}, "no PriorityClass with name none was found", id="unknown-class"),
        pytest.param(
            {"priority": 5},
            "the integer value of priority (5) must not be provided in pod spec; "
            "priority admission controller computed 0 from the given PriorityClass name",
            id="priority-of-ones-own",
        ),
        pytest.param(
            {"preemptionPolicy": "Never"},
            "the string value of PreemptionPolicy (Never) must not be provided in pod spec; "
            "priority admission controller computed PreemptLowerPriority from the given PriorityClass name",
            id="policy-of-ones-own",
        ),
    ],
)
def test_priority_is_not_up_to_the_pod(spec: dict, words: str) -> None:
    with pytest.raises(Forbidden) as refusal:
        admitted(store_with(), **spec)
    assert str(refusal.value) == f'pods "web" is forbidden: {words}'


def test_a_class_made_later_counts_for_pods_made_later() -> None:
    store = store_with()
    assert admitted(store)["priority"] == 0
    store.create(priority_class("usual", 7, globalDefault=True))
    assert store.create(pod("second")).spec["priority"] == 7


def test_there_is_one_default_class_at_most() -> None:
    store = store_with()
    store.create(priority_class("usual", 7, globalDefault=True))
    with pytest.raises(
        Forbidden, match=r"PriorityClass usual is already marked as default. Only one default can exist"
    ):
        store.create(priority_class("other", 8, globalDefault=True))
    with pytest.raises(Forbidden, match="usual is already marked as default"):
        store.create(priority_class("usual", 7, globalDefault=True))


def runtime_class(**fields: Any) -> dict[str, Any]:
    return {
        "apiVersion": "node.k8s.io/v1",
        "kind": "RuntimeClass",
        "metadata": {"name": "sandbox"},
        "handler": "sandbox",
    } | fields


def test_a_runtime_class_brings_overhead_selector_and_tolerations() -> None:
    store = store_with()
    toleration = {"key": "sandbox", "operator": "Exists", "effect": "NoSchedule"}
    store.create(
        runtime_class(
            overhead={"podFixed": {"cpu": "250m"}},
            scheduling={"nodeSelector": {"sandbox": "yes"}, "tolerations": [toleration]},
        )
    )
    spec = admitted(store, runtimeClassName="sandbox", nodeSelector={"zone": "a"})
    assert spec["overhead"] == {"cpu": "250m"}
    assert spec["nodeSelector"] == {"zone": "a", "sandbox": "yes"}
    assert toleration in spec["tolerations"]
    with pytest.raises(Forbidden, match=r"conflict: runtimeClass.scheduling.nodeSelector"):
        store.create(pod("second", runtimeClassName="sandbox", nodeSelector={"sandbox": "no"}))


def test_a_pod_may_not_set_its_own_overhead() -> None:
    store = store_with()
    with pytest.raises(Forbidden, match="Overhead set without corresponding RuntimeClass"):
        admitted(store, overhead={"cpu": "1"})
    with pytest.raises(Forbidden, match="Overhead set without corresponding RuntimeClass"):
        admitted(store, overhead={})
    store.create(runtime_class(overhead={"podFixed": {"cpu": "250m"}}))
    with pytest.raises(Forbidden, match="Overhead doesn't match"):
        admitted(store, runtimeClassName="sandbox", overhead={"cpu": "1"})
    with pytest.raises(Forbidden, match="Overhead doesn't match"):
        admitted(store, runtimeClassName="sandbox", overhead={})
    with pytest.raises(Forbidden, match='RuntimeClass "nope" not found'):
        admitted(store, runtimeClassName="nope")


NOT_READY = {
    "key": "node.kubernetes.io/not-ready",
    "operator": "Exists",
    "effect": "NoExecute",
    "tolerationSeconds": 300,
}
UNREACHABLE = {**NOT_READY, "key": "node.kubernetes.io/unreachable"}
MEMORY = {"key": "node.kubernetes.io/memory-pressure", "operator": "Exists", "effect": "NoSchedule"}


@pytest.mark.parametrize(
    ("spec", "tolerations"),
    [
        pytest.param({}, [NOT_READY, UNREACHABLE], id="both-by-default"),
        pytest.param(
            {"cpu": None, "tolerations": [{**NOT_READY, "tolerationSeconds": 5}]},
            [{**NOT_READY, "tolerationSeconds": 5}, UNREACHABLE],
            id="ones-own-seconds-stay",
        ),
        pytest.param({"tolerations": [{"operator": "Exists"}]}, [{"operator": "Exists"}], id="one-that-covers-all"),
    ],
)
def test_default_tolerations(spec: dict, tolerations: list) -> None:
    assert admitted(store_with(), **spec)["tolerations"] == tolerations


@pytest.mark.parametrize(
    ("spec", "tolerations"),
    [
        pytest.param({}, [NOT_READY, UNREACHABLE, MEMORY], id="burstable"),
        pytest.param({"cpu": None}, [NOT_READY, UNREACHABLE], id="best-effort"),
    ],
)
def test_memory_pressure_is_tolerated_where_tolerations_are_restricted(spec: dict, tolerations: list) -> None:
    assert admitted(store_with(PodTolerationRestriction=True), **spec)["tolerations"] == tolerations


def test_every_plugin_can_be_turned_off() -> None:
    store = store_with(DefaultTolerationSeconds=False, Priority=False)
    spec = admitted(store, priority=12)
    assert "tolerations" not in spec
    assert spec["priority"] == 12
    assert store_with(NamespaceLifecycle=False).create(pod(namespace="nowhere")).namespace == "nowhere"


def test_plugins_that_are_off_can_be_turned_on() -> None:
    gpu = {"resources": {"requests": {"example.com/gpu": "1"}, "limits": {"example.com/gpu": "1"}}}
    containers = [{"name": "c", "image": "i", **gpu}]
    term = {"labelSelector": {"matchLabels": {"a": "b"}}, "topologyKey": "topology.kubernetes.io/zone"}
    anti = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    on = store_with(ExtendedResourceToleration=True, LimitPodHardAntiAffinityTopology=True)
    off = store_with()
    wanted = {"key": "example.com/gpu", "operator": "Exists", "effect": "NoSchedule"}
    assert wanted in on.create({**pod(), "spec": {"containers": containers}}).spec["tolerations"]
    assert wanted not in off.create({**pod(), "spec": {"containers": containers}}).spec["tolerations"]
    off.create(pod("spread", affinity=anti))
    with pytest.raises(
        Forbidden, match=r"has TopologyKey topology.kubernetes.io/zone but only key kubernetes.io/hostname"
    ):
        on.create(pod("spread", affinity=anti))


def test_an_unknown_plugin_is_named_with_those_there_are() -> None:
    with pytest.raises(UnknownAdmissionPlugin, match='"Prio" does not exist; there are: NamespaceLifecycle, Limit'):
        Admission({"Prio": True})


@pytest.mark.parametrize(
    ("first", "second", "merged"),
    [
        pytest.param([{"key": "a"}], [{"key": "a"}], [{"key": "a"}], id="equal"),
        pytest.param([{"key": "a"}], [{"key": "a", "operator": "Equal"}], [{"key": "a"}], id="equal-by-default"),
        pytest.param(
            [{"key": "a", "value": "1"}], [{"key": "a", "operator": "Exists"}], [{"key": "a", "operator": "Exists"}],
            id="the-wider-one-stays",
        ),
        pytest.param(
            [{"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5}],
            [{"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 9}],
            [{"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 9}],
            id="the-longer-one-stays",
        ),
        pytest.param(
            [{"key": "a", "value": "1"}], [{"key": "a", "value": "2"}],
            [{"key": "a", "value": "1"}, {"key": "a", "value": "2"}], id="other-values-both-stay",
        ),
    ],
)  # fmt: skip
def test_merged_tolerations(first: list, second: list, merged: list) -> None:
    assert merge_tolerations(first, second) == merged


def _plainly_merged(first: list[dict[str, Any]], second: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Compare each toleration with all that were kept before it, and with all that follow it."""
    together, merged = [*first, *second], []
    for place, toleration in enumerate(together):
        after = [each for each in together[place + 1 :] if each != toleration]
        if not any(is_superset(each, toleration) for each in (*merged, *after)):
            merged.append(toleration)
    return merged


_TOLERATIONS = st.lists(
    st.fixed_dictionaries(
        {},
        optional={
            "key": st.sampled_from("ab"),
            "operator": st.sampled_from(("Exists", "Equal")),
            "value": st.sampled_from(("", "x", "y")),
            "effect": st.sampled_from(("", "NoExecute", "NoSchedule")),
            "tolerationSeconds": st.integers(-1, 2),
        },
    ),
    max_size=6,
)


@given(_TOLERATIONS, _TOLERATIONS)
def test_tolerations_are_merged_as_if_each_was_compared_with_each(
    first: list[dict[str, Any]], second: list[dict[str, Any]]
) -> None:
    assert merge_tolerations(first, second) == _plainly_merged(first, second)


@pytest.mark.parametrize(
    ("meta", "called"),
    [({"name": "a"}, "a"), ({"generateName": "a-"}, "a-"), ({}, "Unknown"), ({"name": ""}, "Unknown")],
)
def test_what_has_no_name_yet_is_called_by_its_prefix(meta: dict[str, str], called: str) -> None:
    with pytest.raises(Forbidden, match=f'^pods "{called}" is forbidden: no PriorityClass'):
        store_with().create({**pod(priorityClassName="nope"), "metadata": meta})
