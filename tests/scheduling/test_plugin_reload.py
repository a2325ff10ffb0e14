"""Tests of reloading a plugin file: new instances, kept pods, and no change if the file is invalid."""

from pathlib import Path
from typing import Any

import attrs
import pytest

from kschedd.config.in_tree import IN_TREE
from kschedd.config.loading.load import config_from_raw
from kschedd.framework.registry import PluginLoadError, Registry
from kschedd.scenarios.commands import ScenarioCluster
from kschedd.scheduling.driver import SchedulingDriver
from kschedd.scheduling.machine import SchedulingMachine
from kschedd.scheduling.plugin_reload import reload_plugins

PLUGIN = """
class Picky:
    name = "Picky"

    def filter(self, state, pod, node):
        from kschedd.plugin import unschedulable
        return unschedulable("node(s) %s") if node.name in %r else None
"""
SCORING = """
class Picky:
    name = "Picky"

    def score(self, state, pod, node):
        return 100 if node.name == "node-2" else 0
"""
ADMISSION = """
class Strict:
    name = "Strict"

    def validate(self, operation, new, old):
        return None
"""
CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles: [{plugins: {multiPoint: {enabled: [{name: Picky, weight: 100}]}}}]
"""
NODES = "".join(
    f"apiVersion: v1\nkind: Node\nmetadata: {{name: node-{number}}}\n"
    "status: {allocatable: {cpu: 4, memory: 4Gi, pods: 10}}\n---\n"
    for number in (1, 2)
)
POD = "apiVersion: v1\nkind: Pod\nmetadata: {{name: {}}}\nspec: {{containers: [{{name: c, image: i}}]}}\n"


class Clusters:
    def __init__(self, folder: Path) -> None:
        self.file = folder / "picky.py"
        self.write(PLUGIN % ("are not liked", ("node-1", "node-2")))
        self.cluster = ScenarioCluster(folder)
        assert self.do("plugin picky.py") == "plugins Picky\n"
        self.other = folder / "other.py"
        self.other.write_text(SCORING.replace("Picky", "Other"))
        assert self.do("plugin other.py") == "plugins Other\n"
        (folder / "strict.py").write_text(ADMISSION)
        assert self.do("plugin strict.py") == "plugins Strict\n"
        assert self.do("config", CONFIG) == ""
        assert "created" in self.do("apply", NODES)

    def write(self, text: str) -> None:
        self.file.write_text(text)

    def do(self, command: str, given: str = "") -> str:
        return self.cluster.do(command, given)

    def node_of(self, pod: str) -> str:
        return self.do(f"get pod {pod} -o jsonpath={{.spec.nodeName}}").strip()


@pytest.fixture
def clusters(tmp_path: Path) -> Clusters:
    return Clusters(tmp_path)


def test_what_the_file_says_now_counts_from_the_next_attempt_on(clusters: Clusters) -> None:
    clusters.do("apply", POD.format("a"))
    assert clusters.node_of("a") == ""
    clusters.write(PLUGIN % ("are not liked", ("node-1",)))
    assert clusters.do("reload picky.py") == "Picky reloaded: profiles default-scheduler\n"
    clusters.do("apply", POD.format("b"))
    assert clusters.node_of("b") == "node-2"


def test_points_that_the_class_has_gained_or_lost_are_the_profiles_too(clusters: Clusters) -> None:
    clusters.write(SCORING)
    clusters.do("reload picky.py")
    clusters.do("apply", POD.format("a"))
    assert clusters.node_of("a") == "node-2"
    assert "Picky" in clusters.do("plugins")
    assert "score" in clusters.do("plugins -o json")
    assert '"filter"' not in clusters.do("plugins -o json")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("def wrong(:\n", "cannot be imported", id="syntax"),
        pytest.param("raise OSError('gone')\n", "cannot be imported", id="raises"),
        pytest.param("x = 1\n", "defines no plugin", id="nothing"),
        pytest.param(SCORING.replace("Picky", "Renamed"), "no longer defines Picky, which profile", id="another-name"),
        pytest.param(
            SCORING.replace("def score", "def __init__(self):\n        raise OSError('no')\n\n    def score"),
            "plugin Picky cannot be created",
            id="cannot-be-made",
        ),
    ],
)
def test_where_it_cannot_be_used_nothing_changes(text: str, message: str, clusters: Clusters) -> None:
    clusters.write(text)
    assert message in clusters.do("reload picky.py")
    clusters.do("apply", POD.format("a"))
    assert "are not liked" in clusters.do("explain a")


def test_only_files_that_it_was_started_with_are_read(clusters: Clusters, tmp_path: Path) -> None:
    (tmp_path / "elsewhere.py").write_text(SCORING)
    answer = clusters.do("reload elsewhere.py")
    assert "is no plugin file of this daemon; those are" in answer
    assert "picky.py" in answer


def test_a_name_that_another_file_has_is_refused(clusters: Clusters) -> None:
    clusters.other.write_text(SCORING)
    assert "the name Picky belongs to a plugin from" in clusters.do("reload other.py")
    assert clusters.do("reload picky.py") == "Picky reloaded: profiles default-scheduler\n"


def test_a_file_of_admission_plugins_alone_is_read_at_the_start_only(clusters: Clusters) -> None:
    answer = clusters.do("reload strict.py")
    assert "defines admission plugins alone (Strict), which are read at the start only" in answer


def test_changes_before_it_cannot_be_undone(clusters: Clusters) -> None:
    clusters.do("set percentage 50")
    clusters.do("reload picky.py")
    assert "there is no change to undo" in clusters.do("undo")


def test_without_plugins_from_elsewhere_the_list_says_how(tmp_path: Path) -> None:
    assert "`kschedd run --plugin FILE.py` brings others" in ScenarioCluster(tmp_path).do("plugins", "")


@attrs.frozen
class PickyArgs:
    most: int = 0


@attrs.frozen
class OtherArgs:
    least: int = 0


class Picky:
    name = "Picky"
    args_type: type[Any] = PickyArgs

    def __init__(self, args: Any) -> None:
        self.args = args

    @classmethod
    def from_args(cls, args: Any, handle: Any) -> Any:
        return cls(args)

    def filter(self, state: Any, pod: Any, node: Any) -> None:
        return None


class NewPicky(Picky):
    pass


class PickyWithOtherArgs(Picky):
    args_type = OtherArgs


class PickyThatFails(Picky):
    @classmethod
    def from_args(cls, args: Any, handle: Any) -> Any:
        raise OSError("no file")


class Spare:
    name = "Spare"

    def filter(self, state: Any, pod: Any, node: Any) -> None:
        return None


FILE = "picky.py"


@pytest.fixture
def driver() -> SchedulingDriver:
    """Return a driver with the plugins Picky and Spare of one file; three profiles, of which two use Picky."""
    registry = Registry()
    registry.add(Picky, FILE)
    registry.add(Spare, FILE)
    profiles: list[Any] = [
        {
            "schedulerName": name,
            "plugins": {"multiPoint": {"enabled": [{"name": "Picky"}]}},
            "pluginConfig": [{"name": "Picky", "args": {"most": most}}],
        }
        for name, most in (("one", 1), ("two", 2))
    ]
    raw = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [*profiles, {"schedulerName": "without"}],
    }
    config = config_from_raw(raw, catalogue={**IN_TREE, **registry.catalogue()})
    return SchedulingDriver(SchedulingMachine(config, registry=registry))


def in_profiles(driver: SchedulingDriver) -> dict[str, tuple[type[Any], Any]]:
    """Return the class and the arguments of Picky in each profile."""
    return {
        name: (made.plugin_class, made.args)
        for name, scheduler in driver.machine.schedulers.items()
        if (made := scheduler.profile.made_of.get("Picky")) is not None
    }


def test_each_profile_keeps_its_own_arguments(driver: SchedulingDriver) -> None:
    reload_plugins(driver, {"Picky": NewPicky, "Spare": Spare}, FILE)
    assert in_profiles(driver) == {"one": (NewPicky, PickyArgs(1)), "two": (NewPicky, PickyArgs(2))}


def test_a_plugin_that_no_profile_uses_may_be_gone_and_another_may_come(driver: SchedulingDriver) -> None:
    class Added(Spare):
        name = "Added"

    registry = driver.machine.registry
    reload_plugins(driver, {"Picky": NewPicky, "Added": Added}, FILE)
    assert registry.added == {"Picky": NewPicky, "Added": Added}
    assert registry.sources == {"Picky": FILE, "Added": FILE}


@pytest.mark.parametrize(
    ("new", "message"),
    [
        pytest.param(PickyThatFails, f"{FILE}: plugin Picky cannot be created: OSError: no file", id="construction"),
        pytest.param(PickyWithOtherArgs, f"{FILE}: ", id="arguments"),
    ],
)
def test_after_a_failed_reload_the_registry_has_the_earlier_plugins(
    driver: SchedulingDriver, new: type[Any], message: str
) -> None:
    registry = driver.machine.registry
    with pytest.raises(PluginLoadError) as failed:
        reload_plugins(driver, {"Picky": new, "Added": Spare}, FILE)
    assert str(failed.value).startswith(message)
    assert str(failed.value).count(FILE) == 1
    assert registry.added == {"Picky": Picky, "Spare": Spare}
    assert registry.sources == {"Picky": FILE, "Spare": FILE}
    assert in_profiles(driver) == {"one": (Picky, PickyArgs(1)), "two": (Picky, PickyArgs(2))}
