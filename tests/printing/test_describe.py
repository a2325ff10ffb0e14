"""Tests of `describe`: the lines about pods that do not come from the manifest."""

from kschedd.printing.describing.describe import DescribeContext, tree
from kschedd.printing.describing.object import describe
from kschedd.printing.reports.explaining import explanation
from kschedd.printing.terminal.style import TerminalStyle

NOW = 1_735_689_600.0


def _pod(**spec: object) -> dict[str, object]:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "default"}, "spec": spec}


def test_volumes_say_which_claims_they_are_and_in_which_state() -> None:
    pod = _pod(
        volumes=[
            {"name": "data", "persistentVolumeClaim": {"claimName": "data-0"}},
            {"name": "gone", "persistentVolumeClaim": {"claimName": "nope"}},
            {"name": "conf", "configMap": {"name": "c"}},
        ]
    )
    claim = {"spec": {"volumeName": "pv-1", "storageClassName": "fast"}, "status": {"phase": "Bound"}}
    text = describe(pod, DescribeContext(NOW, TerminalStyle(), claims={"data-0": claim, "nope": None}))
    assert "  data: claim data-0 (Bound, volume pv-1, class fast)\n" in text
    assert "  gone: claim nope (no such claim)\n" in text
    assert "  conf: configMap (name c)\n" in text


def test_resource_claims_name_their_devices() -> None:
    pod = _pod(resourceClaims=[{"name": "gpu", "resourceClaimTemplateName": "one"}, {"name": "nic"}])
    pod["status"] = {"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": "p-gpu-x"}]}
    result = {"request": "r", "driver": "gpu.example.com", "pool": "node-a", "device": "gpu-0"}
    claim = {"status": {"allocation": {"devices": {"results": [result]}}}}
    text = describe(pod, DescribeContext(NOW, TerminalStyle(), resource_claims={"p-gpu-x": claim}))
    assert "  gpu: claim p-gpu-x (allocated)\n    device gpu.example.com/node-a/gpu-0 for request r\n" in text
    assert "not made yet" in text


def test_a_gated_pod_says_by_what() -> None:
    text = describe(_pod(schedulingGates=[{"name": "example.com/quota"}]), DescribeContext(NOW, TerminalStyle()))
    assert "Gated By:         example.com/quota\n" in text


def test_any_object_as_a_tree() -> None:
    value = {"matchLabels": {"app": "web"}, "items": [{"aB": 1, "c": [1, 2]}], "off": False, "none": {}}
    assert tree("Spec", value) == (
        "Spec:\n  Match Labels:\n    app: web\n  Items:\n    - A B: 1\n      C: 1, 2\n  Off: false\n"
    )


def test_labels_in_a_selector_keep_their_names_and_its_own_fields_get_words() -> None:
    assert tree("Selector", {"matchLabels": {"app": "web"}}) == "Selector:\n  Match Labels:\n    app: web\n"
    assert tree("Selector", {"app": "web"}) == "Selector:\n  app: web\n"


def test_an_explanation_of_many_nodes_is_summed_up_by_reason() -> None:
    verdicts = [
        {"node": f"n{n}", "plugin": "NodeResourcesFit", "code": "Unschedulable", "reasons": ["Insufficient cpu"]}
        for n in range(40)
    ]
    answer = {"pod": "default/p", "node": None, "verdicts": verdicts, "message": "0/40"}
    text = explanation(answer, TerminalStyle())
    assert "default/p fits on no node.\n  0/40\n" in text
    assert "40      NodeResourcesFit   Unschedulable   Insufficient cpu   n0, n1, n2 and 37 more" in text
    assert explanation(answer, TerminalStyle(), every_node=True).count("Insufficient cpu") == 40


def test_an_explanation_tells_a_pod_that_is_placed_from_where_it_would_go_now() -> None:
    answer = {"pod": "default/p", "node": "a", "chosen": None, "ties": ["b", "c"], "totals": {"b": 9, "c": 9, "a": 3}}
    answer |= {"scores": {"X": {"a": {"raw": 3, "weighted": 3}, "b": {"raw": 9, "weighted": 9}}}, "notes": ["so be it"]}
    lines = explanation(answer, TerminalStyle()).splitlines()
    assert lines[0] == "default/p -> a"
    assert lines[1] == "  as things are now, b would be chosen, with 9 points, one of 2 equally good nodes: b, c"
    assert lines[-1] == "- so be it"
    assert any(line.split() == ["b", "9", "(9)", "9", "tie"] for line in lines)
