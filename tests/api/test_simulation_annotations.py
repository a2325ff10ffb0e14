import pytest

from kschedd.api.simulation.annotations import annotation_faults, node_settings, pod_settings
from kschedd.api.simulation.eviction_thresholds import MEMORY, NODEFS, Threshold, ThresholdValue
from kschedd.api.unsupported import grouped, unsupported
from kschedd.causes.workload import WANTED
from kschedd.controllers.kubelets.state import KUBELET
from kschedd.controllers.nodes.cloud_nodes import CLOUD_PROVIDER, INIT_SECONDS
from kschedd.dumps.completion import MADE_UP
from kschedd.dumps.dumped_condition import ANNOTATION as DUMPED


@pytest.mark.parametrize(
    ("annotation", "why"),
    [
        ({"run-seconds": "-5"}, "a number of seconds of at least 0 is expected, such as 30 or 0.5"),
        ({"run-seconds": "soon"}, "a number of seconds of at least 0 is expected, such as 30 or 0.5"),
        ({"startup-seconds": "inf"}, "a number of seconds of at least 0 is expected, such as 30 or 0.5"),
        (
            {"termination-seconds.app": "nan"},
            'a number of seconds of at least 0 is expected, such as 30 or 0.5, or "never"',
        ),
        ({"readiness": "slow"}, '"fails" or "succeeds" is expected'),
        ({"out-of-memory": "yes"}, '"true" or "false" is expected'),
        ({"cpu-usage": "much"}, "an amount of CPU is expected, such as 250m"),
        ({"exit-code": "256"}, "a whole number from 0 to 255 is expected"),
        ({"exit-code": "-1"}, "a whole number from 0 to 255 is expected"),
        ({"exit-code": "1.5"}, "a whole number from 0 to 255 is expected"),
        ({"memory-usage": "much"}, "a quantity from 0 to 9223372036854775807 is expected, such as 500Mi"),
        ({"memory-usage": "-1Gi"}, "a quantity from 0 to 9223372036854775807 is expected, such as 500Mi"),
        ({"storage-usage": "1 Gi"}, "a quantity from 0 to 9223372036854775807 is expected, such as 500Mi"),
        ({"pids": "99999999999999999999"}, "a whole number from 0 up is expected"),
    ],
)
def test_a_pods_annotation_that_cannot_be_read_is_said_and_ignored(annotation: dict[str, str], why: str) -> None:
    ((key, text),) = annotation.items()
    named = {f"kschedd.io/{key}": text}
    assert annotation_faults("Pod", named, ["app"]) == [f'annotation kschedd.io/{key}: "{text}" is ignored: {why}']
    assert not pod_settings(named)


@pytest.mark.parametrize(
    ("annotation", "why"),
    [
        ({"pressure": "thirst"}, "allowed are memory, disk, pid, separated by commas"),
        ({"max-pids": "few"}, "a whole number from 0 up is expected"),
        ({"system-memory": "-3"}, "a quantity from 0 to 9223372036854775807 is expected, such as 500Mi"),
        ({"eviction-pressure-transition-period": "-5m"}, "a duration is expected, such as 30s or 1m30s"),
        ({"eviction-hard": "memory.available<120%"}, '"120%": a percentage from 0% to 100% is expected'),
        ({"eviction-hard": "memory.available<abc%"}, '"abc%": a percentage from 0% to 100% is expected'),
        (
            {"eviction-hard": "memory.available<-1Mi"},
            '"-1Mi": a quantity from 0 to 9223372036854775807 is expected, such as 500Mi',
        ),
        (
            {"eviction-hard": "thirst<1"},
            '"thirst<1": SIGNAL<VALUE is expected; SIGNAL must be one of memory.available, nodefs.available, '
            "nodefs.inodesFree, imagefs.available, imagefs.inodesFree, pid.available",
        ),
    ],
)
def test_a_nodes_annotation_that_cannot_be_read_is_said_and_ignored(annotation: dict[str, str], why: str) -> None:
    ((key, text),) = annotation.items()
    named = {f"kschedd.io/{key}": text}
    assert annotation_faults("Node", named) == [f'annotation kschedd.io/{key}: "{text}" is ignored: {why}']
    assert node_settings(named) == node_settings({})


def test_a_setting_of_a_container_that_is_not_there_is_said() -> None:
    why = "annotation kschedd.io/run-seconds.nobody is ignored: it has no container nobody, but app, log"
    assert annotation_faults("Pod", {"kschedd.io/run-seconds.nobody": "5"}, ["app", "log"]) == [why]


def test_a_soft_threshold_without_a_grace_period_is_said() -> None:
    (why,) = annotation_faults("Node", {"kschedd.io/eviction-soft": "memory.available<1Gi"})
    assert "grace period must be specified for the soft eviction threshold memory.available" in why


def test_a_pod_template_is_looked_at_like_a_pod() -> None:
    template = {
        "metadata": {"annotations": {"kschedd.io/exit-code": "x"}},
        "spec": {"containers": [{"name": "app"}]},
    }
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}, "spec": {"template": template}}
    answer = grouped(unsupported(job))
    assert any('annotation kschedd.io/exit-code: "x" is ignored' in each for each in answer)


def test_what_belongs_to_others_is_left_alone() -> None:
    assert annotation_faults("Pod", {"run-seconds": "x", "other.kschedd.io/x": "x", "a/run-seconds": "x"}) == []


def test_a_containers_own_setting_goes_before_the_pods() -> None:
    settings = pod_settings({"kschedd.io/run-seconds": "5", "kschedd.io/run-seconds.log": "0.5"})
    assert (settings.of("run-seconds", "log"), settings.of("run-seconds", "app")) == (0.5, 5.0)
    assert settings.of("run-seconds", "app", named_only=True) is None


def test_thresholds_as_the_kubelets_flags_have_them() -> None:
    settings = node_settings(
        {
            "kschedd.io/eviction-hard": "memory.available<200Mi,nodefs.available<10%",
            "kschedd.io/eviction-soft": "memory.available<1Gi,nodefs.available<1Gi",
            "kschedd.io/eviction-soft-grace-period": "memory.available=1m30s",
            "kschedd.io/eviction-minimum-reclaim": "memory.available=5%",
            "kschedd.io/eviction-pressure-transition-period": "30s",
            "kschedd.io/eviction-max-pod-grace-period": "60",
        }
    )
    five_percent = ThresholdValue(share=0.05)
    assert settings.eviction.thresholds == (
        Threshold(MEMORY, ThresholdValue(200 << 20), 0.0, five_percent),
        Threshold(NODEFS, ThresholdValue(share=0.1)),
        Threshold(MEMORY, ThresholdValue(1 << 30), 90.0, five_percent),
    )
    assert (settings.eviction.transition_s, settings.eviction.max_pod_grace_s) == (30.0, 60)


def test_the_defaults_are_upstreams() -> None:
    hard = {threshold.signal: threshold.value for threshold in node_settings({}).eviction.thresholds}
    assert hard[MEMORY] == ThresholdValue(100 << 20)
    assert hard[NODEFS] == ThresholdValue(share=0.1)
    assert node_settings({}).eviction.transition_s == 300.0


@pytest.mark.parametrize(
    ("kind", "key", "why"),
    [
        pytest.param("Pod", "run-second", '; did you mean "run-seconds" or "startup-seconds"?', id="pod"),
        pytest.param("Pod", "exit_code.app", '; did you mean "exit-code"?', id="container"),
        pytest.param("Pod", "zzz", ": allowed are startup-seconds, run-seconds,", id="nothing-similar"),
        pytest.param("Node", "presure", '; did you mean "pressure"?', id="node"),
    ],
)
def test_an_unknown_annotation_is_reported_with_the_nearest_one(kind: str, key: str, why: str) -> None:
    named = {f"kschedd.io/{key}": "1", "example.com/run-second": "1"}
    (fault,) = annotation_faults(kind, named, ["app"])
    assert fault.startswith(f"annotation kschedd.io/{key} is ignored: it is unknown{why}")


@pytest.mark.parametrize("kind", ["Pod", "Node"])
def test_annotations_of_other_modules_are_known(kind: str) -> None:
    named = {KUBELET: "stopped", MADE_UP: "x", DUMPED: "x", WANTED: "3", CLOUD_PROVIDER: "x", INIT_SECONDS: "1"}
    assert annotation_faults(kind, named) == []
