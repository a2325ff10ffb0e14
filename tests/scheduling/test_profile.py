"""Tests of profiles: how their plugins are evaluated, the extension points of each, and which pods need only Bind."""

from typing import Any

import attrs
import pytest

from kschedd.api.objects import Object
from kschedd.api.pods import Pod
from kschedd.config.versions.kube_versions import V1_36
from kschedd.framework.interface import PERMIT, POST_FILTER, PRE_FILTER, RESERVE
from kschedd.plugins.volumes.volumebinding import VolumeBinding
from kschedd.scheduling.profiles.profile import EvaluationStyle, Framework, build_profile
from kschedd.scheduling.profiles.unprepared import MissingCycleState
from kschedd.simulation.engine import Engine
from tests.scheduling.test_scheduler import machine, plugin, pod

CACHED, VECTOR, PER_NODE = EvaluationStyle.CACHED, EvaluationStyle.VECTOR, EvaluationStyle.PER_NODE


def of(*args: Any) -> None:
    return None


def framework(*plugins: type[Any], **points: Any) -> Framework:
    """Return the default profile with these plugins."""
    return machine(*plugins, **points).schedulers["default-scheduler"].profile


def dependent(found: type[Any], *names: str) -> type[Any]:
    """Return the plugin class with these inputs."""
    found.depends_on = frozenset(names)
    return found


def rows(called: str) -> type[Any]:
    """Return a plugin that filters and scores rows."""
    return plugin(called, filter_rows=of, score_rows=of, code_status=of)


@pytest.mark.parametrize(
    ("own", "style", "depends_on"),
    [
        pytest.param(plugin("Own", filter=of, score=of), PER_NODE, set(), id="a-node-at-a-time"),
        pytest.param(dependent(plugin("Own", filter=of, score=of), "node"), PER_NODE, set(), id="inputs-of-no-rows"),
        pytest.param(rows("Own"), VECTOR, set(), id="rows-with-unknown-inputs"),
        pytest.param(dependent(rows("Own")), VECTOR, set(), id="rows-without-inputs"),
        pytest.param(dependent(rows("Own"), "node", "pods"), CACHED, {"node", "pods"}, id="rows-with-known-inputs"),
    ],
)
def test_the_methods_and_inputs_of_a_plugin_decide_how_it_is_evaluated(
    own: type[Any], style: EvaluationStyle, depends_on: set[str]
) -> None:
    made = framework(own)
    for one in (made.filters[-1], made.scores[-1]):
        assert (one.name, one.style, one.depends_on) == ("Own", style, depends_on)
        assert one.plugin is made.plugins["Own"]
    assert made.reads_pods is ("pods" in depends_on)


@pytest.mark.parametrize("method", ["filter_rows", "score_rows"])
def test_a_filter_or_a_score_that_reads_pods_makes_the_profile_read_them(method: str) -> None:
    own = plugin("Own", **{method: of}, **({"code_status": of} if method == "filter_rows" else {}))
    assert framework(dependent(own, "pods")).reads_pods
    assert not framework(dependent(own, "node")).reads_pods


def test_filters_are_numbered_in_the_order_of_the_profile() -> None:
    made = framework(plugin("Own", filter=of))
    assert [one.place for one in made.filters] == list(range(len(made.filters)))
    assert [one.name for one in made.filters] == [ref.name for ref in made.profile.at("filter")]


def test_scores_have_the_weights_of_the_profile_and_may_normalize() -> None:
    made = framework(
        plugin("Own", score=of),
        plugin("Normal", score=of, normalize=of),
        score={"enabled": [{"name": "Own", "weight": 7}]},
    )
    found = {one.name: one for one in made.scores}
    assert (found["Own"].weight, found["Normal"].weight) == (7, 1)
    assert (found["Own"].normalizes, found["Normal"].normalizes) == (False, True)
    assert found["Normal"].extensions is made.plugins["Normal"]


def test_only_plugins_of_the_tree_have_constant_scores() -> None:
    made = framework(plugin("Own", score=of, constant_score=of))
    found = {one.name: one.constant for one in made.scores}
    assert found["Own"] is found["NodeResourcesFit"] is None
    assert found["ImageLocality"] is not None
    assert made.in_tree == made.plugins.keys() - {"Own"}
    assert {one.name for one in made.filters if not one.in_tree} == set()
    assert {one.name for one in made.scores if not one.in_tree} == {"Own"}


def test_each_plugin_is_counted_at_its_extension_points() -> None:
    made = framework(plugin("Own", filter=of, score=of, normalize=of))
    calls = made.plugin_metrics.calls
    assert made.filters[-1].calls is calls("Own", "Filter")
    assert made.scores[-1].calls is calls("Own", "Score")
    assert made.scores[-1].normalizing is calls("Own", "ScoreExtensionNormalize")


def test_an_extension_point_has_the_plugins_that_have_work_there_in_the_order_of_the_profile() -> None:
    made = framework(plugin("Own", reserve=of, permit=of))
    assert [one.name for one in made.at(RESERVE)] == ["VolumeBinding", "DynamicResources", "Own"]
    assert [one.name for one in made.at(PERMIT)] == ["Own"]
    assert made.at(PERMIT) is made.at(PERMIT), "computed once"
    names = [one.name for one in made.at(PRE_FILTER)]
    assert "NodeResourcesFit" in [ref.name for ref in made.profile.at("pre_filter")]
    assert "NodeResourcesFit" not in names
    assert names == [ref.name for ref in made.profile.at("pre_filter") if ref.name in names]
    assert [one.name for one in made.at(POST_FILTER)] == ["DynamicResources", "DefaultPreemption"]


def test_a_plugin_whose_preparation_is_disabled_is_replaced_at_that_extension_point_only() -> None:
    made = framework(preFilter={"disabled": [{"name": "InterPodAffinity"}]})
    filters = {one.name: one.plugin for one in made.filters}
    scores = {one.name: one.plugin for one in made.scores}
    assert isinstance(filters["InterPodAffinity"], MissingCycleState)
    assert scores["InterPodAffinity"] is made.plugins["InterPodAffinity"]
    assert filters["PodTopologySpread"] is made.plugins["PodTopologySpread"]


def test_a_profile_has_the_rules_and_the_percentage_of_the_configuration() -> None:
    made = machine()
    profile = made.schedulers["default-scheduler"].profile
    assert profile.rules is made.handle.rules
    assert profile.name == "default-scheduler"
    [given] = made.config.profiles
    half = attrs.evolve(made.config, percentage_of_nodes_to_score=50)
    assert build_profile(half, given, made.registry, made.handle).percentage == 50


def test_instances_of_the_previous_profile_are_reused_if_their_inputs_are_equal() -> None:
    made = machine(plugin("Own", filter=of))
    before = made.schedulers["default-scheduler"].profile
    [given] = made.config.profiles

    def again(profile: Any = given, previous: Framework | None = before) -> dict[str, Any]:
        return build_profile(made.config, profile, made.registry, made.handle, previous).plugins

    assert {name for name, one in again().items() if one is not before.plugins[name]} == set()
    assert {name for name, one in again(previous=None).items() if one is before.plugins[name]} == set()
    changed = attrs.evolve(given, plugin_args={**given.plugin_args, "Own": {"a": 1}})
    assert {name for name, one in again(changed).items() if one is not before.plugins[name]} == {"Own"}


# -- binding cycles of only one plugin ---------------------------------------------------------------------------------


@pytest.fixture
def looked_at(monkeypatch: pytest.MonkeyPatch) -> list[Pod]:
    """Return the list of pods for which the work of VolumeBinding was looked up."""
    pods: list[Pod] = []
    idle_for = VolumeBinding.idle_for

    def noted(self: VolumeBinding, pod: Pod) -> Any:
        pods.append(pod)
        return idle_for(self, pod)

    monkeypatch.setattr(VolumeBinding, "idle_for", noted)
    return pods


@pytest.mark.parametrize(
    ("own", "binder"),
    [
        pytest.param([], "DefaultBinder", id="plugins-of-the-tree"),
        pytest.param([plugin("Own", filter=of)], "DefaultBinder", id="another-filter"),
        pytest.param([plugin("Own", permit=of)], None, id="another-plugin-at-permit"),
        pytest.param([plugin("Own", bind=of)], "DefaultBinder", id="another-binder-after-it"),
    ],
)
def test_only_a_plugin_of_the_tree_binds_alone(own: list[type[Any]], binder: str | None) -> None:
    made = machine(*own)
    found = made.schedulers["default-scheduler"].profile.bound_by(pod(), made.cluster.versions)
    assert (None if found is None else found.name) == binder


def test_no_plugin_binds_alone_where_a_plugin_out_of_the_tree_binds_first() -> None:
    made = machine(plugin("Own", bind=of), bind={"disabled": [{"name": "*"}], "enabled": [{"name": "Own"}]})
    assert made.schedulers["default-scheduler"].profile.bound_by(pod(), made.cluster.versions) is None


def test_pods_that_differ_only_in_their_amounts_or_in_the_node_they_name_are_looked_up_once(
    looked_at: list[Pod],
) -> None:
    engine = Engine()
    made = engine.machine.schedulers["default-scheduler"].profile

    def binder(name: str, cpu: str, **spec: Any) -> str | None:
        created = engine.store.create(named(name, cpu, **spec))
        assert isinstance(created, Pod)
        found = made.bound_by(created, engine.machine.cluster.versions)
        return None if found is None else found.name

    def on(node: str) -> dict[str, Any]:
        only = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
        return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [only]}}}

    assert [binder("small", "1"), binder("large", "2")] == ["DefaultBinder"] * 2
    assert [one.name for one in looked_at] == ["small"]
    assert [binder(f"on-{node}", "1", affinity=on(node)) for node in "abc"] == ["DefaultBinder"] * 3
    assert [one.name for one in looked_at] == ["small", "on-a"]
    claim = {"name": "v", "persistentVolumeClaim": {"claimName": "c"}}
    assert [binder(name, "1", volumes=[claim]) for name in ("stores", "stores-too")] == [None, None]
    assert [one.name for one in looked_at] == ["small", "on-a", "stores"]


def named(name: str, cpu: str, **spec: Any) -> dict[str, Any]:
    containers = [{"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}]
    meta = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {"containers": containers, **spec}}


def test_a_changed_device_class_changes_which_plugins_have_work_for_known_pods() -> None:
    made = machine(version=V1_36)
    binder = made.schedulers["default-scheduler"].profile.bound_by
    cards = {"requests": {"example.com/card": "1"}, "limits": {"example.com/card": "1"}}
    wanted = pod(containers=[{"name": "c", "image": "i", "resources": cards}])
    assert binder(wanted, made.cluster.versions) is not None
    meta = {"name": "cards", "uid": "cards"}
    cards_class = {"kind": "DeviceClass", "metadata": meta, "spec": {"extendedResourceName": "example.com/card"}}
    made.cluster.put(Object.from_raw(cards_class))
    assert binder(wanted, made.cluster.versions) is None
    assert binder(pod(), made.cluster.versions) is not None
