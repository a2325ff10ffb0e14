"""Tests of the state that a changed configuration keeps: plugin instances, their assumptions, running bindings."""

from collections.abc import Callable
from typing import Any, ClassVar

import attrs
import pytest

from kschedd.api.objects import Object
from kschedd.api.pods import Pod
from kschedd.config.changing.changes import (
    with_backoff,
    with_plugin_disabled,
    with_profile_added,
    with_profile_removed,
    with_weight,
)
from kschedd.config.model import Config
from kschedd.framework.handle import Handle
from kschedd.framework.registry import PluginLoadError
from kschedd.framework.status import Code, Status
from kschedd.framework.writes import Bind
from kschedd.plugins.devices.dynamicresources import DynamicResourcesArgs
from kschedd.plugins.volumes.volumebinding import VolumeBindingArgs
from kschedd.queue.operations import EventsObserved, Reconfigured
from kschedd.scheduling.binding.cycle import AssumedPod
from kschedd.scheduling.config_changes import NothingToUndo
from kschedd.scheduling.failure import FailedAttempt
from kschedd.scheduling.inputs import ChangeConfig, Reconfigure, ResumeDecided, UndoConfigChange
from tests.devices.made import DRIVER, claim_raw, class_raw, device, exact, slice_of
from tests.plugins.test_volumebinding import claim, storage_class, volume
from tests.scheduling.driven import NOW, Driven, Raw, node, pod


class Hold:
    """A plugin that makes every pod wait at Permit, and records which instance reserved and unreserved."""

    name: ClassVar = "Hold"
    made: ClassVar[list["Hold"]] = []

    def __init__(self) -> None:
        self.reserved: list[str] = []
        self.undone: list[str] = []
        self.made.append(self)

    @classmethod
    def from_args(cls, args: Any, handle: Handle) -> "Hold":
        return cls()

    def reserve(self, state: Any, pod: Pod, node_name: str) -> None:
        self.reserved.append(pod.name)

    def unreserve(self, state: Any, pod: Pod, node_name: str) -> None:
        self.undone.append(pod.name)

    def permit(self, state: Any, pod: Pod, node_name: str) -> Any:
        return Status(Code.WAIT), 30.0


@pytest.fixture(autouse=True)
def _none_made() -> None:
    Hold.made.clear()


def weighted(config: Config) -> Config:
    return with_weight(config, "default-scheduler", "NodeResourcesFit", 7)


def with_args(plugin: str, args: Any) -> Callable[[Config], Config]:
    """Return a change of the configuration that replaces the arguments of a plugin."""

    def change(config: Config) -> Config:
        profiles = tuple(attrs.evolve(one, plugin_args={**one.plugin_args, plugin: args}) for one in config.profiles)
        return attrs.evolve(config, profiles=profiles)

    return change


def without_gate(config: Config) -> Config:
    return attrs.evolve(config, feature_gates={**config.feature_gates, "SchedulerAsyncPreemption": False})


def using(name: str, what: str, **entry: Any) -> Raw:
    raw = pod(name, cpu="100m")
    raw["spec"][what] = [{"name": "it", **entry}]
    return raw


def raws(*objects: Object) -> list[Raw]:
    return [dict(one.raw) for one in objects]


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(weighted, id="a-weight"),
        pytest.param(with_args("VolumeBinding", VolumeBindingArgs(bind_timeout_s=7)), id="its-own-arguments"),
        pytest.param(without_gate, id="a-feature-gate"),
    ],
)
def test_a_volume_kept_for_a_pod_at_permit_is_no_other_pods_after_a_change_of(
    change: Callable[[Config], Config],
) -> None:
    run = Driven(Hold)
    run.see(node(), *raws(storage_class(), volume("only"), claim("first"), claim("second")))
    for name in ("first", "second"):
        run.see(using(name, "volumes", persistentVolumeClaim={"claimName": name}))
    assert isinstance(run.attempt("first"), AssumedPod)
    run.driver.step(Reconfigure(change(run.machine.config)))
    failed = run.attempt("second")
    assert isinstance(failed, FailedAttempt)
    assert "didn't find available persistent volumes to bind" in failed.message

    # The instances that reserved also unreserve.
    run.machine.waiting.reject("uid-first", "Hold", "not today")
    run.driver.step(ResumeDecided(), NOW + 1)
    assert isinstance(run.attempt("second"), AssumedPod)


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(weighted, id="a-weight"),
        pytest.param(with_args("DynamicResources", DynamicResourcesArgs(filter_timeout_s=7)), id="its-own-arguments"),
    ],
)
def test_a_device_kept_for_a_pod_at_permit_is_no_other_pods_after_a_change_of(
    change: Callable[[Config], Config],
) -> None:
    run = Driven(Hold)
    run.see(node("n1"), class_raw("gpu", f'device.driver == "{DRIVER}"'), dict(slice_of("n1", device("g0")).raw))
    for name in ("first", "second"):
        run.see(claim_raw(name, exact("r")), using(name, "resourceClaims", resourceClaimName=name))
    assert isinstance(run.attempt("first"), AssumedPod)
    run.driver.step(Reconfigure(change(run.machine.config)))
    failed = run.attempt("second")
    assert isinstance(failed, FailedAttempt)
    assert "cannot allocate all claims" in failed.message


@pytest.mark.parametrize(
    ("change", "same"),
    [
        pytest.param(weighted, True, id="lives-on-when-a-weight-changes"),
        pytest.param(with_args("VolumeBinding", VolumeBindingArgs(7)), True, id="lives-on-when-anothers-arguments-do"),
        pytest.param(with_args("Hold", {"a": 1}), False, id="is-made-anew-when-its-arguments-change"),
        pytest.param(without_gate, False, id="is-made-anew-when-a-feature-gate-does"),
    ],
)
def test_an_instance(change: Callable[[Config], Config], same: bool) -> None:
    run = Driven(Hold)
    run.driver.step(Reconfigure(change(run.machine.config)))
    assert len(Hold.made) == (1 if same else 2)
    run.see(node("n1"), pod("p"))
    assert isinstance(run.attempt("p"), AssumedPod)
    assert [hold.reserved for hold in Hold.made] == [*([[]] * (len(Hold.made) - 1)), ["p"]]


def test_profiles_have_instances_of_their_own_and_keep_them() -> None:
    run = Driven(Hold, profiles=("default-scheduler", "other"))
    before = {name: one.profile.plugins["Hold"] for name, one in run.machine.schedulers.items()}
    run.driver.step(Reconfigure(weighted(run.machine.config)))
    after = {name: one.profile.plugins["Hold"] for name, one in run.machine.schedulers.items()}
    assert before == after
    assert len(Hold.made) == 2


def test_a_pod_at_permit_ends_with_the_instances_it_began_with() -> None:
    run = Driven(Hold)
    run.see(node(), pod("p"))
    run.attempt("p")
    run.driver.step(Reconfigure(with_args("Hold", {"a": 1})(run.machine.config)))
    run.machine.waiting.reject("uid-p", "Hold", "not today")
    run.driver.step(ResumeDecided(), NOW + 1)
    assert [(hold.reserved, hold.undone) for hold in Hold.made] == [(["p"], ["p"]), ([], [])]


def test_a_pod_at_permit_is_bound_though_its_profile_is_gone() -> None:
    run = Driven(Hold, profiles=("default-scheduler", "other"))
    run.see(node(), pod("p"))
    run.attempt("p")
    config = run.machine.config
    run.driver.step(Reconfigure(attrs.evolve(config, profiles=config.profiles[1:])))
    run.driver.take_effects()
    assert run.machine.waiting.allow("uid-p", "Hold")
    run.driver.step(ResumeDecided(), NOW + 1)
    [wanted] = run.driver.take_effects().plans
    assert wanted.plan.writes == (Bind("default", "p", "uid-p", "n"),)


class Fragile(Hold):
    """A plugin whose constructor raises an error if it gets arguments."""

    name: ClassVar = "Fragile"

    @classmethod
    def from_args(cls, args: Any, handle: Handle) -> "Fragile":
        if isinstance(args, dict):
            raise ValueError("no arguments, please")
        return cls()


def test_a_configuration_whose_plugins_cannot_be_made_changes_nothing() -> None:
    run = Driven(Fragile)
    before = run.machine.config, dict(run.machine.schedulers), run.machine.handle.feature_gates
    with pytest.raises(PluginLoadError, match="no arguments, please"):
        run.driver.step(Reconfigure(with_args("Fragile", {"a": 1})(without_gate(run.machine.config))))
    assert (run.machine.config, run.machine.schedulers, run.machine.handle.feature_gates) == before
    assert not run.driver.take_effects()


# -- changes that can be undone ----------------------------------------------------------------------------------------


def told_of(run: Driven) -> list[tuple[str, list[str]]]:
    """Return the operations sent to the queue since the last call: configurations, and added or removed pods."""
    found: list[tuple[str, list[str]]] = []
    for operation in run.driver.take_effects().queue:
        if isinstance(operation, Reconfigured):
            found.append(("profiles", sorted(operation.scheduler_names)))
        elif isinstance(operation, EventsObserved):
            found += [(event.type, [event.new.name]) for event in operation.events]
    return found


def test_a_change_says_what_it_changed_and_is_undone() -> None:
    run = Driven()
    before = run.machine.config
    driver = run.driver
    first = driver.step(ChangeConfig(with_weight(before, "default-scheduler", "ImageLocality", 9), "a weight"), NOW)
    path = "profiles[default-scheduler].plugins.score[ImageLocality]"
    assert [(one.path, one.before, one.after) for one in first.values] == [(path, 1, 9)]
    assert run.machine.config.origins[path] == "change 1"
    driver.step(ChangeConfig(with_backoff(run.machine.config, 2, 20), "backoff"), NOW + 1)
    assert [change.what for change in driver.config_changes.made] == ["a weight", "backoff"]
    assert driver.step(UndoConfigChange()).what == "backoff"
    assert run.machine.config.pod_max_backoff_s == 10
    assert run.machine.config.profiles[0].weight("ImageLocality") == 9
    driver.step(UndoConfigChange())
    assert run.machine.config == before
    assert run.machine.config.origins == before.origins
    with pytest.raises(NothingToUndo):
        driver.step(UndoConfigChange())


def test_a_change_that_cannot_be_made_is_not_noted() -> None:
    run = Driven(Fragile)
    with pytest.raises(PluginLoadError):
        run.driver.step(ChangeConfig(with_args("Fragile", {"a": 1})(run.machine.config), "arguments"), NOW)
    assert not run.driver.config_changes.made


def test_the_pods_of_a_profile_leave_the_queue_and_come_back_with_it() -> None:
    run = Driven(profiles=("default-scheduler", "other"))
    theirs = pod("theirs")
    theirs["spec"]["schedulerName"] = "other"
    run.see(pod("ours"), theirs)
    told_of(run)
    config = run.machine.config
    run.driver.step(ChangeConfig(with_profile_removed(config, "other"), "off"), NOW)
    assert told_of(run) == [("DELETED", ["theirs"]), ("profiles", ["default-scheduler"])]
    run.driver.step(ChangeConfig(with_profile_added(run.machine.config, "other"), "on"), NOW)
    assert told_of(run) == [("profiles", ["default-scheduler", "other"]), ("ADDED", ["theirs"])]


def test_a_pod_at_permit_is_not_put_into_the_queue_when_its_profile_comes_back() -> None:
    run = Driven(Hold, profiles=("default-scheduler", "other"))
    run.see(node(), pod("p"))
    assert isinstance(run.attempt("p"), AssumedPod)
    config = run.machine.config
    run.driver.step(Reconfigure(with_profile_removed(config, "default-scheduler")))
    run.driver.take_effects()
    run.driver.step(Reconfigure(config))
    assert told_of(run) == [("profiles", ["default-scheduler", "other"])]


def test_a_pod_at_permit_ends_with_a_plugin_that_has_been_turned_off_meanwhile() -> None:
    run = Driven(Hold)
    run.see(node(), pod("p"))
    run.attempt("p")
    run.driver.step(ChangeConfig(with_plugin_disabled(run.machine.config, "default-scheduler", "Hold"), "off"), NOW)
    run.machine.waiting.reject("uid-p", "Hold", "not today")
    run.driver.step(ResumeDecided(), NOW + 1)
    assert [(hold.reserved, hold.undone) for hold in Hold.made] == [(["p"], ["p"])]
    assert not run.machine.cluster.assumed_pods()
    run.driver.step(UndoConfigChange())
    run.see(pod("q"))
    assert isinstance(run.attempt("q"), AssumedPod)
    assert Hold.made[-1].reserved == ["q"]
