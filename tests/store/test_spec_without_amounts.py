"""Tests that a pod admitted by its spec without amounts is the same, byte for byte, as one admitted by its spec."""

import json
from copy import deepcopy
from typing import Any

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kschedd.api.cached import cached
from kschedd.api.pods import Pod, PodSignature, PodSpec
from kschedd.store.errors import ApiError
from kschedd.store.prototypes import pod_strategy
from kschedd.store.prototypes.spec_without_amounts import without_amounts
from kschedd.store.store import Store
from tests.full_run import examples
from tests.store.manifests import Clock

_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_TERM = {"labelSelector": {"matchLabels": {"app": "x"}}, "topologyKey": "zone", "matchLabelKeys": ["version"]}
_amounts = st.sampled_from(
    ["1", "2", "1000m", "100m", "1Gi", "1024Mi", "0", "100u", "1500m", "0.5", "-1", "x", 3, 1.5, None, "1e3"]
)
_good_amounts = st.sampled_from(["1", "2", "1000m", "3", "1e3", "0.001k"])
_quantities = st.one_of(
    st.dictionaries(st.sampled_from(["cpu", "memory"]), _good_amounts, max_size=2),
    st.dictionaries(st.sampled_from(["cpu", "memory", "x.com/a", "ephemeral-storage"]), _amounts, max_size=3),
)
_resources: st.SearchStrategy[Any] = st.one_of(
    st.dictionaries(st.sampled_from(["requests", "limits"]), _quantities, max_size=2),
    _quantities.map(lambda same: {"requests": same, "limits": dict(same)}),
    st.sampled_from([None, {}, {"claims": []}, {"requests": None}, 7]),
)
_containers = st.lists(
    st.fixed_dictionaries({"image": st.sampled_from(["i", "i:1"])}, optional={"resources": _resources}),
    min_size=1,
    max_size=3,
).map(lambda found: [{"name": f"c{number}", **container} for number, container in enumerate(found)])
_weights = st.one_of(st.integers(1, 100), st.sampled_from([0, 101, True, "1", None]))
_affinity = st.dictionaries(
    st.sampled_from(["podAffinity", "podAntiAffinity"]),
    st.lists(_weights, max_size=2).map(
        lambda weights: {_PREFERRED: [{"weight": weight, "podAffinityTerm": _TERM} for weight in weights]}
    ),
)
_DISK = {"key": "disk", "operator": "In", "values": ["ssd"]}
_SPREAD = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {}}
_node_affinity = st.sampled_from(
    [
        {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": [_DISK]}]}},
        {_PREFERRED: [{"weight": 3, "preference": {"matchExpressions": [_DISK]}}]},
        {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [
                    {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["node-1"]}]}
                ]
            }
        },
    ]
)
_more = st.fixed_dictionaries(
    {},
    optional={
        "affinity": st.one_of(
            _affinity, st.builds(lambda of, node: {**of, "nodeAffinity": node}, _affinity, _node_affinity)
        ),
        "nodeSelector": st.just({"disk": "ssd"}),
        "topologySpreadConstraints": st.just([_SPREAD]),
        "resources": st.sampled_from([{"requests": {"cpu": "2"}}, {}, None]),
        "overhead": st.sampled_from([{"cpu": "1"}]),
        "initContainers": st.sampled_from([[{"name": "i", "image": "i"}], []]),
        "tolerations": st.just([{"operator": "Exists"}]),
    },
)
_RANGE = {
    "apiVersion": "v1",
    "kind": "LimitRange",
    "metadata": {"name": "r", "namespace": "default"},
    "spec": {"limits": [{"type": "Container", "max": {"cpu": "1500m"}, "default": {"memory": "1"}}]},
}


def _pod(name: str, containers: list[Any], more: dict[str, Any]) -> dict[str, Any]:
    meta = {"name": name, "namespace": "default", "labels": {"version": "2"}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {"containers": containers, **more}}


def _outcome(store: Store, raw: dict[str, Any]) -> str:
    try:
        created = store.create(deepcopy(raw))
    except ApiError as refusal:
        return f"{type(refusal).__name__}: {refusal}"
    volatile = dict.fromkeys(("uid", "creationTimestamp", "resourceVersion"))
    return json.dumps({**created.raw, "metadata": {**created.raw["metadata"], **volatile}})


@settings(max_examples=examples(150), deadline=None)
@given(st.lists(st.tuples(_containers, _more), min_size=2, max_size=8), st.booleans())
def test_what_a_pod_comes_to_does_not_depend_on_what_is_known_without_its_amounts(
    specs: list[tuple[list[Any], dict[str, Any]]], limited: bool
) -> None:
    by_parts, whole = Store(now=Clock()), Store(now=Clock())
    if limited:
        by_parts.create(_RANGE)
        whole.create(_RANGE)
    for number, (containers, more) in enumerate(specs):
        raw = _pod(f"p{number}", containers, more)
        found = _outcome(by_parts, raw)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(pod_strategy, "without_amounts", lambda spec: None)
            assert found == _outcome(whole, raw)


_OTHERS = ("_alike", "_ignoring_node", "_without_amounts", "signature_ignoring_amounts")  # signatures, and their ids


def _known_of(signature: PodSignature) -> dict[str, Any]:
    """Return the values that are computed from the signature and from its spec."""
    spec = signature.spec
    of_spec = {name: getattr(spec, name) for name, field in vars(PodSpec).items() if isinstance(field, cached)}
    requests = attrs.asdict(of_spec.pop("resource_requests"))
    of_signature = {
        name: getattr(signature, name)
        for name, field in vars(PodSignature).items()
        if isinstance(field, cached) and name not in _OTHERS
    }
    return {**of_spec, **of_signature, **requests}


@settings(max_examples=examples(150), deadline=None)
@given(st.lists(st.tuples(_containers, _more), min_size=2, max_size=8))
def test_what_pods_share_that_differ_in_amounts_is_what_is_computed_of_each(
    specs: list[tuple[list[Any], dict[str, Any]]],
) -> None:
    store = Store(now=Clock())
    for number, (containers, more) in enumerate(specs):
        try:
            created = store.create(_pod(f"p{number}", containers, more))
        except ApiError:
            continue
        assert isinstance(created, Pod)
        assert _known_of(created.signature) == _known_of(_by_itself(created))


def _by_itself(pod: Pod) -> PodSignature:
    raw = pod.pod_spec.raw
    without = None
    if (raw.get("affinity") or {}).get("nodeAffinity"):
        without = PodSpec({**raw, "affinity": {**raw["affinity"], "nodeAffinity": {}}}, b"")
    return PodSignature(pod.namespace, pod.labels, PodSpec(raw, b"", without), 0)


def test_pods_that_differ_in_amounts_have_one_signature_ignoring_amounts() -> None:
    store = Store(now=Clock())

    def number_of(name: str, cpu: str, more: dict[str, Any]) -> int:
        created = store.create(_pod(name, [{"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}], more))
        assert isinstance(created, Pod)
        kept.append(created)
        return created.signature.signature_ignoring_amounts

    kept: list[Pod] = []
    of_amounts = [number_of(f"p{cpu}", cpu, {}) for cpu in ("1", "2", "1500m")]
    assert len(set(of_amounts)) == 1
    assert number_of("other", "2", {"nodeSelector": {"disk": "ssd"}}) not in of_amounts


def _plain(*resources: dict[str, Any], **more: Any) -> Any:
    containers = [{"name": f"c{number}", "resources": one} for number, one in enumerate(resources)]
    found = without_amounts({"containers": containers, **more})
    return None if found is None else found.spec


def test_pods_that_differ_in_amounts_and_weights_only_are_the_same_without() -> None:
    def of(cpu: str, weight: int) -> Any:
        affinity = {"podAntiAffinity": {_PREFERRED: [{"weight": weight, "podAffinityTerm": _TERM}]}}
        return _plain({"requests": {"cpu": cpu, "memory": "1Gi"}, "limits": {"cpu": "2"}}, affinity=affinity)

    assert json.dumps(of("100m", 3)) == json.dumps(of("1500m", 100))
    assert json.dumps(of("100m", 3)) != json.dumps(of("2000m", 3))  # their QoS classes may differ


@pytest.mark.parametrize(
    ("resources", "more"),
    [
        pytest.param({"requests": {"cpu": "0"}}, {}, id="nothing-of-it"),
        pytest.param({"requests": {"cpu": "100u"}}, {}, id="an-amount-that-is-rounded"),
        pytest.param({"requests": {"x.com/a": "1"}}, {}, id="an-extended-resource"),
        pytest.param({"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}, {}, id="more-than-the-limit"),
        pytest.param({"requests": {"cpu": "1"}}, {"resources": {"limits": {"cpu": "2"}}}, id="resources-of-the-pod"),
        pytest.param({"requests": {"cpu": "1"}}, {"initContainers": [{}]}, id="an-init-container"),
    ],
)
def test_other_amounts_stay_where_they_are(resources: dict[str, Any], more: dict[str, Any]) -> None:
    assert _plain(resources, **more) is None
    assert _plain({"requests": {"cpu": "1"}}) is not None


def test_a_spec_without_amounts_is_admitted_anew_once_a_priority_class_has_changed() -> None:
    store = Store(now=Clock())
    priorities = []
    for number, value in enumerate((5, 7)):
        meta = {"name": "high"}
        store.create({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": meta, "value": value})
        resources = {"requests": {"cpu": str(1 + number)}}
        containers = [{"name": "c", "image": "i", "resources": resources}]
        created = store.create(_pod(f"p{number}", containers, {"priorityClassName": "high"}))
        priorities.append(created.spec["priority"])
        store.delete("PriorityClass", "", "high")
    assert priorities == [5, 7]
