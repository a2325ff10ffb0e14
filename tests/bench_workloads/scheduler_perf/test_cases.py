"""Tests that performance-config.yaml is parsed as strictly as upstream, with the line of each fault."""

import pytest

from kschedd.bench.scheduler_perf.cases import PerfConfigError, PerfWorkload, enabled, read_cases
from kschedd.bench.scheduler_perf.operations import CreatePods, ParameterError, Parameters, unrolled
from kschedd.bench.scheduler_perf.run import SelectionError, choose

CASE = """\
- name: Small
  defaultPodTemplatePath: pod.yaml
  labels: [performance]
  featureGates:
    SchedulerAsyncPreemption: false
  workloadTemplate:
  - opcode: createNodes
    countParam: $nodes
    labelNodePrepareStrategy:
      labelKey: zone
      labelValues: [a, b]
  - opcode: createPodSets
    countParam: $sets
    namespacePrefix: init
    createPodsOp:
      opcode: createPods
      countParam: $pods
  - opcode: createPods
    COUNT: 3
    collectMetrics: true
  workloads:
  - name: 5Nodes
    labels: [short]
    threshold:
      default: 10
      other: 20
    params: {nodes: 5, sets: 2, pods: 4}
"""


def only(text: str):
    (case,) = read_cases(text, "perf.yaml")
    return case


def test_a_case_is_read() -> None:
    case = only(CASE)
    assert case.faults == ()
    (workload,) = case.workloads
    assert (case.name, workload.name, workload.labels) == ("Small", "5Nodes", ("short",))
    assert list(case.steps) == [7, 12, 18]
    assert (workload.limit("default"), workload.limit("other"), workload.limit("")) == (10, 20, 0)
    assert case.selector(workload).data_bucket == "Average"


def test_parameters_take_the_place_of_counts_and_sets_of_pods_are_unrolled() -> None:
    case = only(CASE)
    given = Parameters(case.workloads[0].params)
    steps = unrolled(case.steps, given)
    assert [(line, step.opcode) for line, step in steps] == [
        (7, "createNodes"),
        (12, "createPods"),
        (12, "createPods"),
        (18, "createPods"),
    ]
    assert [(step.namespace, step.count) for _, step in steps if isinstance(step, CreatePods)] == [
        ("init-0", 4),
        ("init-1", 4),
        ("", 3),
    ]
    assert given.unused == []


def test_a_parameter_that_nobody_uses_is_known() -> None:
    given = Parameters({"nodes": 1, "sets": 0, "pods": 1, "podz": 2})
    unrolled(only(CASE).steps, given)
    assert given.unused == ["podz"]


@pytest.mark.parametrize(
    ("values", "answer"),
    [
        pytest.param({"sets": 1, "pods": 1}, "parameter nodes: the workload does not define it", id="missing"),
        pytest.param({"nodes": "5", "sets": 1, "pods": 1}, "parameter nodes: '5' is no number", id="text"),
        pytest.param({"nodes": -5, "sets": 1, "pods": 1}, "parameter nodes: -5: at least 0", id="negative"),
    ],
)
def test_a_parameter_that_is_missing_or_of_another_type_is_refused(values, answer) -> None:
    with pytest.raises(ParameterError) as refusal:
        unrolled(only(CASE).steps, Parameters(values))
    assert str(refusal.value) == answer


def test_durations_and_switches_may_be_parameters() -> None:
    text = CASE.replace("COUNT: 3", "durationParam: $for\n    steadyStateParam: $steady\n    count: 1")
    given = Parameters({"nodes": 1, "sets": 0, "pods": 0, "for": "1m30s", "steady": True})
    (*_, (_, last)) = unrolled(only(text).steps, given)
    assert isinstance(last, CreatePods)
    assert (last.duration, last.steady_state) == (90.0, True)


@pytest.mark.parametrize(
    ("old", "new", "answer"),
    [
        pytest.param(
            "opcode: createNodes",
            "opcode: createMoons",
            "perf.yaml:7: $[0].workloadTemplate[0].opcode: 'createMoons' is not supported",
            id="unknown-opcode",
        ),
        pytest.param(
            "countParam: $nodes",
            "countParm: $nodes",
            "perf.yaml:8: $[0].workloadTemplate[0].countParm: this field is not supported",
            id="unknown-field",
        ),
        pytest.param(
            "countParam: $nodes",
            "countParam: nodes",
            "perf.yaml:8: $[0].workloadTemplate[0].countParam: 'nodes': a parameter is written with $",
            id="parameter-without-dollar",
        ),
        pytest.param(
            "COUNT: 3",
            "COUNT: many",
            "perf.yaml:19: $[0].workloadTemplate[2].COUNT: 'many': a whole number is expected",
            id="wrong-type",
        ),
        pytest.param(
            "COUNT: 3", "skipWaitToCompletion: true", "cannot be true at the same time", id="collect-without-waiting"
        ),
        pytest.param(
            "collectMetrics: true",
            "count: 1",
            "no operation in the workload template collects metrics",
            id="nothing-collected",
        ),
        pytest.param(
            "    COUNT: 3",
            "    count: 1\n  - {opcode: churn, mode: often, templatePaths: [a]}\n  - opcode: createPods",
            "'often': create or recreate",
            id="churn-mode",
        ),
        pytest.param("      default: 10", "      default: -1", "a number, 0 or more, is expected", id="threshold"),
    ],
)
def test_what_cannot_be_run_makes_its_case_unusable(old, new, answer) -> None:
    text = CASE.replace(old, new) + CASE.replace("Small", "Other")
    broken, other = read_cases(text, "perf.yaml")
    assert any(answer in fault for fault in broken.faults), broken.faults
    assert other.faults == ()


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        pytest.param("name: x", "a list of test cases is expected", id="no-list"),
        pytest.param(CASE + CASE, "perf.yaml:28: $[1].name: 'Small' is another case's name as well", id="twice"),
        pytest.param("- [", "perf.yaml:2: $: not YAML", id="no-yaml"),
    ],
)
def test_a_file_that_is_no_list_of_cases_is_refused(text, answer) -> None:
    with pytest.raises(PerfConfigError) as refusal:
        read_cases(text, "perf.yaml")
    assert answer in str(refusal.value)


@pytest.mark.parametrize(
    ("words", "labels", "through"),
    [
        pytest.param("", (), True, id="no-filter"),
        pytest.param("performance", ("performance", "short"), True, id="has-it"),
        pytest.param("performance,+short", ("performance",), False, id="lacks-one"),
        pytest.param("performance,-short", ("performance", "short"), False, id="must-not-have-it"),
    ],
)
def test_labels_choose_workloads(words, labels, through) -> None:
    assert enabled(words, labels) is through


def test_workloads_are_chosen_by_name_or_else_by_label() -> None:
    cases = read_cases(
        CASE + CASE.replace("Small", "Other").replace("[performance]", "[integration-test]"), "perf.yaml"
    )

    def chosen(*requests) -> list[str]:
        return [case.name for case, _ in choose(cases, *requests)]

    assert chosen(None, None, None) == ["Small"]
    assert chosen(["Other"], None, None) == ["Other"]
    assert chosen(None, ["5Nodes"], None) == ["Small", "Other"]
    assert chosen(None, None, "-performance") == ["Other"]
    for wrong in ((["None"], None, None), (None, ["None"], None), (None, None, "nightly")):
        with pytest.raises(SelectionError):
            chosen(*wrong)


def test_without_a_threshold_there_is_no_limit() -> None:
    assert PerfWorkload(name="w").limit("any") == 0
