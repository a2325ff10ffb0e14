"""Tests of object parts in the form of Go structs of the internal types."""

from typing import Any

import pytest

from kschedd.registry.go_structs import go_diff, go_struct, go_template


@pytest.mark.parametrize(
    ("kind", "raw", "shown"),
    [
        pytest.param(
            "SecurityContext",
            {"capabilities": {"add": ["X"]}, "privileged": True},
            {"Capabilities": {"Add": ["X"], "Drop": None}, "Privileged": True, "SELinuxOptions": None},
            id="structures-within",
        ),
        pytest.param(
            "Probe",
            {"httpGet": {"port": 80, "httpHeaders": [{"name": "a", "value": "b"}]}},
            {
                "HTTPGet": {
                    "Path": "",
                    "Port": 80,
                    "Host": "",
                    "Scheme": "",
                    "HTTPHeaders": [{"Name": "a", "Value": "b"}],
                },
                "TCPSocket": None,
                "TerminationGracePeriodSeconds": None,
            },
            id="abbreviations",
        ),
        pytest.param(
            "RBDVolumeSource",
            {"monitors": ["m"], "image": "i"},
            {"CephMonitors": ["m"], "RBDImage": "i", "RBDPool": "", "RadosUser": ""},
            id="names-of-its-own",
        ),
        pytest.param(
            "PodAffinityTerm",
            {"topologyKey": "zone", "labelSelector": {"matchLabels": {"b": "1", "a": "2"}}},
            {"TopologyKey": "zone", "LabelSelector": {"matchLabels": {"a": "2", "b": "1"}}, "Namespaces": None},
            id="selectors-as-outside",
        ),
        pytest.param(
            "apps.v1.RollingUpdateStatefulSetStrategy", {}, {"Partition": 0, "MaxUnavailable": None}, id="values-inside"
        ),
        pytest.param("batch.v1.PodFailurePolicy", {"rules": []}, {"Rules": []}, id="an-empty-list-is-shown"),
    ],
)
def test_a_structure(kind: str, raw: dict[str, Any], shown: dict[str, Any]) -> None:
    got = go_struct(kind, raw)
    assert {field: got[field] for field in shown} == shown


def test_a_pods_template_has_host_namespaces_in_its_security_context() -> None:
    got = go_template({"metadata": {"labels": {"b": "1", "a": "2"}}, "spec": {"hostPID": True}}, "PodSpec")
    assert list(got) == ["labels", "Spec"]
    assert list(got["labels"]) == ["a", "b"]
    assert got["Spec"]["SecurityContext"]["HostPID"] is True
    assert got["Spec"]["SecurityContext"]["SELinuxOptions"] is None
    assert "HostPID" not in got["Spec"]
    assert got["Spec"]["Containers"] is None


def test_a_diff_of_two_specs_has_lines_of_both_in_gos_order() -> None:
    old = {"nodeName": "a", "containers": [{"name": "c", "image": "<i>"}]}
    assert go_diff("PodSpec", old, {**old, "nodeName": "b"}).splitlines() == [
        "@@ -42,7 +42,7 @@",
        '  "NodeSelector": null,',
        '  "ServiceAccountName": "",',
        '  "AutomountServiceAccountToken": null,',
        '- "NodeName": "a",',
        '+ "NodeName": "b",',
        '  "SecurityContext": {',
        '   "HostNetwork": false,',
        '   "HostPID": false,',
    ]
