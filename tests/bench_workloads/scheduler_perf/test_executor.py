"""Tests that each operation of a file has the specified effect on a cluster, with a mock clock."""

import pytest
import trio

from kschedd.bench.scheduler_perf.cases import read_cases
from kschedd.bench.scheduler_perf.collectors import Collected
from kschedd.bench.scheduler_perf.executor import PerfRunError, run_workload
from kschedd.config.loading.load import default_config

FILES = {
    "node.yaml": """\
apiVersion: v1
kind: Node
metadata: {generateName: named-}
status:
  capacity: {cpu: "4", memory: 32Gi, pods: "110"}
  conditions: [{type: Ready, status: "True"}]
""",
    "small.yaml": """\
apiVersion: v1
kind: Node
metadata: {name: small}
spec: {taints: [{key: only, effect: NoSchedule}]}
status:
  capacity: {cpu: "1", memory: 1Gi, pods: "110"}
""",
    "pod.yaml": """\
apiVersion: v1
kind: Pod
metadata:
  name: pod-{{.Index}}
  labels: {type: named}
spec:
  terminationGracePeriodSeconds: 0
  containers: [{name: c, image: i}]
""",
    "gated.yaml": """\
apiVersion: v1
kind: Pod
metadata:
  name: gated-{{.Index}}
spec:
  schedulingGates: [{name: wait}]
  containers: [{name: c, image: i}]
""",
    "opened.yaml": """\
apiVersion: v1
kind: Pod
metadata:
  name: gated-{{.Index}}
spec:
  containers: [{name: c, image: i}]
""",
    "service.yaml": """\
apiVersion: v1
kind: Service
metadata: {generateName: service-}
spec:
  selector: {type: named}
  ports: [{port: 80}]
""",
    "namespace.yaml": "apiVersion: v1\nkind: Namespace\nmetadata: {labels: {team: a}}\n",
    "class.yaml": """\
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: class}
spec:
  selectors: [{cel: {expression: device.driver == "driver.example"}}]
""",
    "claim.yaml": """\
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: template}
spec:
  spec:
    devices:
      requests: [{name: r, exactly: {deviceClassName: class}}]
""",
    "taken.yaml": """\
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: "taken-{{.Index}}"}
spec:
  devices:
    requests: [{name: r, exactly: {deviceClassName: class}}]
""",
    "device-pod.yaml": """\
apiVersion: v1
kind: Pod
metadata: {generateName: device-}
spec:
  containers: [{name: c, image: i, resources: {claims: [{name: d}]}}]
  resourceClaims: [{name: d, resourceClaimTemplateName: template}]
""",
    "pv.yaml": """\
apiVersion: v1
kind: PersistentVolume
spec:
  accessModes: [ReadOnlyMany]
  capacity: {storage: 1Gi}
  csi: {driver: ebs.example}
""",
    "pvc.yaml": """\
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {annotations: {pv.kubernetes.io/bind-completed: "true"}}
spec:
  accessModes: [ReadOnlyMany]
  resources: {requests: {storage: 1Gi}}
""",
    "churned.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {generateName: churned-}\n",
}


async def run(folder, steps: str, params: str = "{}") -> list[Collected]:
    for name, text in FILES.items():
        (folder / name).write_text(text)
    indented = "".join(f"  {line}\n" for line in steps.strip().splitlines())
    text = f"- name: Case\n  workloadTemplate:\n{indented}  workloads:\n  - name: w\n    params: {params}\n"
    (case,) = read_cases(text, "perf.yaml")
    assert case.faults == ()
    with trio.fail_after(3000):
        return await run_workload(case, case.workloads[0], default_config(), folder / "perf.yaml", 1)


NODES = "- {opcode: createNodes, count: 4}\n"


def measured(results: list[Collected]) -> list[int]:
    return [each.pods for each in results]


async def test_pods_of_a_step_are_scheduled_and_measured(tmp_path) -> None:
    steps = NODES + "- {opcode: createPods, count: 3}\n- {opcode: createPods, countParam: $many, collectMetrics: true}"
    (result,) = await run(tmp_path, steps, "{many: 20}")
    assert result.pods == 20
    by_metric = {item.labels["Metric"]: item for item in result.items}
    assert by_metric["SchedulingThroughput"].data["Average"] > 0
    attempts = by_metric["scheduler_scheduling_attempt_duration_seconds"]
    assert attempts.labels["result"] == "scheduled"
    assert attempts.labels["Name"] == "BenchmarkPerfScheduling/Case/w/namespace-2"


async def test_sets_of_pods_have_a_namespace_each(tmp_path) -> None:
    steps = NODES + (
        "- {opcode: createNamespaces, prefix: init, count: 2, namespaceTemplatePath: namespace.yaml}\n"
        "- {opcode: createAny, namespace: init-0, templatePath: service.yaml}\n"
        "- opcode: createPodSets\n  count: 2\n  namespacePrefix: init\n  "
        "createPodsOp: {opcode: createPods, count: 5, podTemplatePath: pod.yaml}\n"
        "- {opcode: createPods, count: 1, collectMetrics: true, namespace: last}"
    )
    assert measured(await run(tmp_path, steps)) == [1]


async def test_a_measurement_of_its_own_counts_the_pods_that_it_selects(tmp_path, autojump_clock) -> None:
    steps = NODES + (
        "- {opcode: startCollectingMetrics, name: chosen, namespaces: [a, b], labelSelector: {type: named}}\n"
        "- {opcode: createPods, count: 2, namespace: a, podTemplatePath: pod.yaml, skipWaitToCompletion: true}\n"
        "- {opcode: createPods, count: 3, namespace: b, skipWaitToCompletion: true}\n"
        "- {opcode: createPods, count: 4, namespace: c, podTemplatePath: pod.yaml}\n"
        "- {opcode: barrier}\n"
        "- {opcode: sleep, duration: 1m}\n"
        "- {opcode: stopCollectingMetrics}"
    )
    (result,) = await run(tmp_path, steps)
    assert result.pods == 2
    assert result.items[0].labels["Name"] == "BenchmarkPerfScheduling/Case/w/chosen"


async def test_gated_pods_are_attempted_and_scheduled_once_they_are_updated(tmp_path, autojump_clock) -> None:
    steps = NODES + (
        "- {opcode: startCollectingMetrics, namespaces: [g]}\n"
        "- {opcode: createPods, count: 3, namespace: g, podTemplatePath: gated.yaml, skipWaitToCompletion: true}\n"
        "- {opcode: barrier, stageRequirement: Attempted, namespaces: [g]}\n"
        "- {opcode: updateAny, countParam: $many, namespace: g, templatePath: opened.yaml, updatePerSecond: 10}\n"
        "- {opcode: barrier, namespaces: [g]}\n"
        "- {opcode: stopCollectingMetrics}"
    )
    assert measured(await run(tmp_path, steps, "{many: 3}")) == [3]


async def test_deleted_pods_make_room(tmp_path, autojump_clock) -> None:
    steps = (
        "- {opcode: createNodes, count: 1}\n"
        "- {opcode: createPods, count: 110, namespace: old, podTemplatePath: pod.yaml}\n"
        "- opcode: deletePods\n  namespace: old\n  labelSelector: {type: named}\n"
        "  deletePodsPerSecond: 50\n  skipWaitToCompletion: true\n"
        "- {opcode: createPods, count: 1, collectMetrics: true}\n"
        "- {opcode: deletePods, namespace: old}"
    )
    assert measured(await run(tmp_path, steps)) == [1]


async def test_devices_of_a_driver_are_claimed(tmp_path, autojump_clock) -> None:
    steps = NODES + (
        "- {opcode: createResourceDriver, driverName: driver.example, nodes: node-*, maxClaimsPerNode: 2}\n"
        "- {opcode: createAny, templatePath: class.yaml}\n"
        "- {opcode: createAny, templatePath: claim.yaml, namespace: test}\n"
        "- {opcode: allocResourceClaims, namespace: none}\n"
        "- {opcode: createPods, namespace: test, count: 8, podTemplatePath: device-pod.yaml, collectMetrics: true}"
    )
    assert measured(await run(tmp_path, steps)) == [8]


async def test_allocated_claims_leave_the_other_devices_to_pods(tmp_path, autojump_clock) -> None:
    steps = NODES + (
        "- {opcode: createResourceDriver, driverName: driver.example, nodes: node-*, maxClaimsPerNode: 2}\n"
        "- {opcode: createAny, templatePath: class.yaml}\n"
        "- {opcode: createAny, templatePath: taken.yaml, namespace: init, count: 5}\n"
        "- {opcode: allocResourceClaims, namespace: init}\n"
        "- {opcode: allocResourceClaims}\n"
        "- {opcode: createAny, templatePath: claim.yaml, namespace: test}\n"
        "- {opcode: createPods, namespace: test, count: 3, podTemplatePath: device-pod.yaml, collectMetrics: true}"
    )
    assert measured(await run(tmp_path, steps)) == [3]
    with pytest.raises(PerfRunError) as refusal:
        await run(tmp_path, steps.replace("count: 3", "count: 4"))
    assert "3 of 4 pods in test were scheduled" in str(refusal.value)
    with pytest.raises(PerfRunError) as refusal:
        await run(tmp_path, steps.replace("count: 5", "count: 9"))
    assert "perf.yaml:7: allocResourceClaims: no node has devices for claim init/taken-" in str(refusal.value)


async def test_pods_with_volumes_are_scheduled(tmp_path) -> None:
    steps = (
        "- opcode: createNodes\n  count: 2\n  nodeTemplatePath: node.yaml\n"
        "  nodeAllocatableStrategy: {csiNodeAllocatable: {ebs.example: {count: 5}}}\n"
        "- opcode: createPods\n  count: 10\n  collectMetrics: true\n"
        "  persistentVolumeTemplatePath: pv.yaml\n  persistentVolumeClaimTemplatePath: pvc.yaml"
    )
    assert measured(await run(tmp_path, steps)) == [10]


@pytest.mark.parametrize("mode", ["create", "recreate"])
async def test_churn_goes_on_beside_the_other_steps(tmp_path, mode, autojump_clock) -> None:
    steps = NODES + (
        f"- opcode: churn\n  mode: {mode}\n  number: 2\n  intervalMilliseconds: 1000\n  namespace: c\n"
        "  templatePaths: [small.yaml, churned.yaml]\n"
        "- {opcode: sleep, durationParam: $long}\n"
        "- {opcode: createPods, count: 5, collectMetrics: true}"
    )
    assert measured(await run(tmp_path, steps, "{long: 10s}")) == [5]


@pytest.mark.parametrize(
    ("steps", "answer"),
    [
        pytest.param(
            "- {opcode: createPods, count: 2, collectMetrics: true}",
            "perf.yaml:3: createPods: 0 of 2 pods in namespace-0 were scheduled, and no other for 600 s",
            id="pods-that-fit-nowhere",
        ),
        pytest.param(
            "- {opcode: createAny, templatePath: service.yaml}\n- {opcode: createPods, count: 0, collectMetrics: true}",
            "perf.yaml:3: createAny: ",
            id="refused-object",
        ),
        pytest.param(
            "- {opcode: stopCollectingMetrics}",
            "perf.yaml:3: stopCollectingMetrics: startCollectingMetrics is missing before stopCollectingMetrics",
            id="stop-without-start",
        ),
        pytest.param(
            "- {opcode: startCollectingMetrics, namespaces: [a]}\n"
            "- {opcode: createPods, count: 1, collectMetrics: true}",
            "the two measurements overlap",
            id="overlap",
        ),
        pytest.param(
            "- {opcode: barrier, namespaces: [nowhere]}\n- {opcode: createPods, count: 1, collectMetrics: true}",
            "unknown namespace nowhere",
            id="barrier",
        ),
    ],
)
async def test_what_does_not_come_about_ends_the_run_with_its_line(tmp_path, steps, answer, autojump_clock) -> None:
    with pytest.raises(PerfRunError) as refusal:
        await run(tmp_path, steps)
    assert answer in str(refusal.value)


async def test_an_unused_parameter_is_a_slip(tmp_path) -> None:
    with pytest.raises(PerfRunError) as refusal:
        await run(tmp_path, "- {opcode: createPods, count: 0, collectMetrics: true}", "{measurPods: 1}")
    assert "measurPods" in str(refusal.value)
