"""Tests of attempts for running pods: equal pods share one result, and the attempts change no state."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from kschedd.api.nodes import Node
from kschedd.api.objects import parse
from kschedd.api.pods import Pod
from kschedd.config.loading.load import default_config
from kschedd.scheduling.attempt.ties import by_name
from kschedd.scheduling.machine import SchedulingMachine
from kschedd.simulation.comparing.comparison import pod_outcome
from kschedd.simulation.comparing.running_pods import judge_running, running_pods

_POD = st.tuples(st.sampled_from("ab"), st.sampled_from(["1", "2"]), st.sampled_from(["", "n0", "n1", "n2"]))


def _pod(number: int, app: str, cpu: str, node: str) -> Pod:
    spec: dict[str, Any] = {"containers": [{"name": "c", "image": app, "resources": {"requests": {"cpu": cpu}}}]}
    if node:
        spec["nodeName"] = node
    meta = {"name": f"p{number}", "namespace": "d", "uid": f"u{number}", "labels": {"app": app}}
    made = parse({"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec, "status": {}})
    assert isinstance(made, Pod)
    return made


def _machine(pods: list[Pod]) -> SchedulingMachine:
    machine = SchedulingMachine(default_config(), choose=by_name)
    for name, cpu in (("n0", "4"), ("n1", "6"), ("n2", "3")):
        status = {"allocatable": {"cpu": cpu, "memory": "8Gi", "pods": "10"}}
        machine.cluster.put_node(Node.from_raw({"kind": "Node", "metadata": {"name": name}, "status": status}))
    for pod in pods:
        machine.cluster.put(pod)
    return machine


@settings(max_examples=20)
@given(st.lists(_POD, max_size=12))
def test_together_they_fare_as_one_by_one(made: list[tuple[str, str, str]]) -> None:
    pods = [_pod(number, *each) for number, each in enumerate(made)]
    together = judge_running(_machine(pods), running_pods(pods), pod_outcome)
    assert together == {
        pod.key: judge_running(_machine(pods), running_pods([pod]), pod_outcome)[pod.key] for pod in pods
    }


@settings(max_examples=20)
@given(st.lists(_POD, min_size=1, max_size=8))
def test_nothing_of_it_stays(made: list[tuple[str, str, str]]) -> None:
    pods = [_pod(number, *each) for number, each in enumerate(made)]
    machine, running = _machine(pods), running_pods(pods)
    first = judge_running(machine, running, pod_outcome)
    assert machine.cluster.pod_count == sum(bool(pod.node_name) for pod in pods)
    assert judge_running(machine, running, pod_outcome) == first
