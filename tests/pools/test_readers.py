"""Tests that files of node pools are read, and that faults name line, field and allowed values."""

import pytest

from kschedd.config.parsing.faults import ConfigErrors
from kschedd.pools.karpenter.instance_types import read_instance_types
from kschedd.pools.karpenter.node_pools import read_node_pool
from kschedd.pools.karpenter.overlays import overlay_of
from kschedd.pools.reading import PoolFile, read_pools
from tests.conftest import SharedPart

POOL = """\
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: batch}
spec:
  weight: 10
  limits: {cpu: "100", nodes: "5"}
  template:
    metadata: {labels: {team: a}}
    spec:
      expireAfter: Never
      requirements: [{key: size, operator: Gt, values: ["2"], minValues: 2}]
      startupTaints: [{key: cold, effect: NoExecute}]
  disruption:
    consolidateAfter: 30s
    budgets: [{nodes: 20%, reasons: [Empty], schedule: "0 9 * * *", duration: 8h}]
"""


def test_a_node_pool_is_read() -> None:
    pool = read_node_pool(POOL, "pool.yaml")
    assert (pool.name, pool.weight, pool.limits, pool.labels) == (
        "batch",
        10,
        {"cpu": 100_000, "nodes": 5},
        {"team": "a"},
    )
    assert (pool.expire_after_s, pool.consolidate_after_s, pool.policy) == (None, 30, "WhenEmptyOrUnderutilized")
    assert [(each.key, each.at_least, each.min_values) for each in pool.requirements] == [("size", 3, 2)]
    assert [(each.nodes, each.duration_s) for each in pool.budgets] == [("20%", 8 * 3600)]
    assert [each.key for each in pool.startup_taints] == ["cold"]


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        pytest.param("weight: 10", "weight: 101", "pool.yaml:5: $.spec.weight", id="a-weight-beyond-the-limit"),
        pytest.param("operator: Gt", "operator: Above", "In, NotIn, Exists", id="an-unknown-operator"),
        pytest.param("[Empty]", "[Idle]", "Empty, Drifted, Underutilized", id="an-unknown-reason"),
        pytest.param(", duration: 8h", "", "schedule and duration must be set together", id="a-schedule-alone"),
        pytest.param('"0 9 * * *"', '"0 9 * *"', "expected exactly 5 fields", id="a-wrong-schedule"),
        pytest.param('["2"]', '["two"]', "operator Gt needs one whole number", id="a-bound-that-is-no-number"),
        pytest.param("limits:", "limit:", "limits", id="an-unknown-field"),
    ],
)
def test_faults_of_a_node_pool_name_the_field_and_what_is_allowed(old: str, new: str, words: str) -> None:
    assert old in POOL
    with pytest.raises(ConfigErrors) as caught:
        read_node_pool(POOL.replace(old, new), "pool.yaml")
    assert words in str(caught.value)


def test_the_types_of_the_kwok_provider_are_read(shared_part: SharedPart) -> None:
    file = shared_part("pools") / "data" / "kwok-instance_types.json"
    types = read_instance_types(file.read_text(encoding="utf-8"), file.name)
    assert (len(types), sum(len(each.offerings) for each in types)) == (144, 1152)
    assert all(offering.available for each in types for offering in each.offerings)
    first = types[0]
    zone, kinds = first.requirements["topology.kubernetes.io/zone"], first.requirements["karpenter.sh/capacity-type"]
    assert (len(zone.values), kinds.values) == (4, {"spot", "on-demand"})
    for value in zone.values:
        assert first.price_in(value, "spot") == pytest.approx(0.7 * first.price_in(value, "on-demand"))


def test_an_overlay_with_a_price_and_a_change_of_price_is_rejected() -> None:
    spec = {"requirements": [], "price": "1", "priceAdjustment": "+10%"}
    with pytest.raises(ConfigErrors, match="must not be combined with priceAdjustment"):
        overlay_of({"metadata": {"name": "o"}, "spec": spec})


def test_a_change_of_price_needs_a_sign() -> None:
    with pytest.raises(ConfigErrors, match="a number with a sign"):
        overlay_of({"metadata": {"name": "o"}, "spec": {"requirements": [], "priceAdjustment": "10%"}})


@pytest.mark.parametrize(
    ("text", "place"),
    [
        pytest.param(
            "{kind: Node, metadata: {name: a, labels: x}, status: {allocatable: {cpu: 1}}}", "metadata.labels"
        ),
        pytest.param("{kind: Node, metadata: {name: a, annotations: []}, status: {}}", "not a Node|allocatable"),
        pytest.param("{kind: Node, metadata: {name: a, annotations: [1]}, status: {}}", "metadata.annotations"),
        pytest.param("{kind: ConfigMap, metadata: {name: a}, data: x}", "data"),
        pytest.param("[{name: a, resources: x, offerings: []}]", "resources"),
        pytest.param(
            "{apiVersion: karpenter.sh/v1alpha1, kind: NodeOverlay, metadata: {name: o}, spec: {capacity: [x]}}",
            "spec.capacity",
        ),
    ],
)
def test_values_of_the_wrong_type_are_reported_with_their_field(text: str, place: str) -> None:
    with pytest.raises(ConfigErrors, match=f"^f.yaml:1: .*({place})"):
        read_pools([PoolFile("f.yaml", text)])
