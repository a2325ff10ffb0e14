"""Tests of the command `kschedd lint`: its input, output formats, ignored rules and exit statuses."""

import json
from pathlib import Path
from typing import Any

import pytest

from kschedd.cli import main

SPREAD = """\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
spec:
  template:
    metadata:
      labels: {app: web}
    spec:
      topologySpreadConstraints:
        - maxSkew: 1
          topologyKey: zone
          whenUnsatisfiable: DoNotSchedule
          labelSelector: {}
"""
NODE = """\
apiVersion: v1
kind: Node
metadata: {name: n1, labels: {zone: a}}
status: {nodeInfo: {kubeletVersion: v1.36.1}}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "web.yaml"
    path.write_text(SPREAD)
    return path


def answer(capsys: Any, *words: str) -> Any:
    status = main(["lint", *words, "-o", "json"])
    return {**json.loads(capsys.readouterr().out), "status": status}


def codes(found: Any) -> list[str]:
    return [finding["code"] for finding in found["findings"]]


def test_a_finding_has_its_place_its_sentence_and_what_to_do(file: Path, capsys: Any) -> None:
    assert main(["lint", "-f", str(file)]) == 1
    assert capsys.readouterr().out == (
        "1 warning in 1 object (Kubernetes 1.37)\n\n"
        "warning spread-empty-selector: in 1.37, this constraint counts no pods, so it spreads nothing; from 1.38 on, "
        "it counts all pods of the namespace, so pods may stay pending\n"
        f"    {file}:14: Deployment/web spec.template.spec.topologySpreadConstraints[0].labelSelector\n"
        "  Write the intended labels, usually those of the pod itself.\n"
    )


def test_an_upgrade_says_what_both_releases_do(file: Path, capsys: Any) -> None:
    found = answer(capsys, "-f", str(file), "--kube-version", "1.36.3", "--upgrade-to", "1.38")
    [finding] = found["findings"]
    assert finding["message"] == (
        "in 1.36.3, this constraint counts no pods, so it spreads nothing; in 1.38, it counts all pods of the "
        "namespace, so pods may stay pending"
    )
    assert (found["kubeVersion"], found["upgradeTo"], found["status"]) == ("1.36.3", "1.38", 1)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("labelSelector: {}", "labelSelector: {}  # kschedd: ignore=spread-empty-selector"),
        (
            "          labelSelector",
            "          # on purpose, kschedd: ignore=other,spread-empty-selector\n          labelSelector",
        ),
        ("apiVersion", "# kschedd: ignore=spread-empty-selector\napiVersion"),
    ],
    ids=["line", "above", "object"],
)
def test_a_comment_ignores_a_code(file: Path, capsys: Any, before: str, after: str) -> None:
    file.write_text(f"{NODE}---\n" + SPREAD.replace(before, after, 1))
    found = answer(capsys, "-f", str(file))
    assert (found["findings"], found["ignored"], found["status"]) == ([], 1, 0)


def test_a_comment_elsewhere_or_with_another_code_ignores_nothing(file: Path, capsys: Any) -> None:
    file.write_text(
        SPREAD.replace("maxSkew: 1", "maxSkew: 1  # kschedd: ignore=spread-empty-selector") + "# kschedd: ignore=x\n"
    )
    assert answer(capsys, "-f", str(file))["ignored"] == 0


def test_the_flag_ignores_codes_that_exist(file: Path, capsys: Any) -> None:
    assert answer(capsys, "-f", str(file), "--ignore", "spread-empty-selector,beta-labels")["status"] == 0
    assert main(["lint", "-f", str(file), "--ignore", "spred"]) == 2
    assert "there is no rule 'spred'" in capsys.readouterr().err


def test_notes_are_no_failure_and_may_be_left_out(tmp_path: Path, capsys: Any) -> None:
    file = tmp_path / "a.yaml"
    file.write_text(
        "{kind: Pod, apiVersion: v1, metadata: {name: p}, spec: {nodeSelector: {beta.kubernetes.io/os: linux}}}"
    )
    found = answer(capsys, "-f", str(file))
    assert (codes(found), found["notes"], found["status"]) == (["beta-os-arch"], 1, 0)
    assert answer(capsys, "-f", str(file), "--level", "warning")["findings"] == []


def test_a_dump_is_a_whole_cluster_of_the_release_of_its_nodes(tmp_path: Path, file: Path, capsys: Any) -> None:
    dump = tmp_path / "dump.yaml"
    spec = "{selector: {matchLabels: {a: b}}}"
    budget = f"{{kind: PodDisruptionBudget, apiVersion: policy/v1, metadata: {{name: b}}, spec: {spec}}}"
    pod = "{kind: Pod, apiVersion: v1, metadata: {name: p, labels: {app: web}}, spec: {nodeSelector: {zone: b}}}"
    dump.write_text(f"{NODE}---\n{budget}\n---\n{pod}\n")
    found = answer(capsys, "--from", str(dump))
    assert found["kubeVersion"] == "1.36"
    assert sorted(codes(found)) == ["pdb-matches-nothing", "selector-matches-no-node"]
    beside = answer(capsys, "-f", str(file), "--from", str(dump))
    assert codes(beside) == ["spread-empty-selector"]
    assert beside["objects"] == 1


def test_a_pod_is_judged_by_the_template_that_made_it(tmp_path: Path, capsys: Any) -> None:
    spec = "{nodeSelector: {beta.kubernetes.io/os: linux}}"
    owner = "{apiVersion: apps/v1, kind: ReplicaSet, name: web, controller: true}"
    dump = tmp_path / "dump.yaml"
    dump.write_text(
        "{kind: ReplicaSet, apiVersion: apps/v1, metadata: {name: web}, "
        f"spec: {{template: {{spec: {spec}}}}}}}\n---\n"
        f"{{kind: Pod, apiVersion: v1, metadata: {{name: web-1, ownerReferences: [{owner}]}}, spec: {spec}}}\n"
    )
    [finding] = answer(capsys, "--from", str(dump))["findings"]
    assert finding["kind"] == "ReplicaSet"


@pytest.mark.parametrize(
    ("kind", "version", "said"),
    [
        ("PodSecurityPolicy", "policy/v1beta1", "are not served since 1.25"),
        ("PodDisruptionBudget", "policy/v1beta1", "is not served since 1.25. Write apiVersion: policy/v1."),
        ("DaemonSet", "extensions/v1beta1", "is not served since 1.16. Write apiVersion: apps/v1."),
        ("KubeSchedulerConfiguration", "kubescheduler.config.k8s.io/v1beta2", "is not read since 1.28"),
        ("KubeSchedulerConfiguration", "kubescheduler.config.k8s.io/v1beta1", "is not read since 1.23"),
    ],
)
def test_a_version_that_is_gone_has_its_release_and_what_replaces_it(
    tmp_path: Path, capsys: Any, kind: str, version: str, said: str
) -> None:
    file = tmp_path / "old.yaml"
    file.write_text(f"{{kind: {kind}, apiVersion: {version}, metadata: {{name: x}}}}")
    found = answer(capsys, "-f", str(file))["findings"]
    assert any(said in f"{finding['message']}. {finding['fix']}" for finding in found)


TAINT_RULE = """\
apiVersion: resource.k8s.io/v1
kind: DeviceTaintRule
metadata: {name: broken}
spec: {deviceSelector: {driver: gpu.example.com}, taint: {key: a.b/c, effect: NoExecute}}
"""
EXTENDED = """\
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: gpu}
spec:
  extendedResourceName: example.com/gpu
  selectors: [{cel: {expression: "device.driver == 'gpu.example.com'"}}]
---
apiVersion: v1
kind: Pod
metadata: {name: train}
spec: {containers: [{name: c, resources: {limits: {example.com/gpu: 1}}}]}
"""


def test_objects_of_different_folders_are_not_compared(tmp_path: Path, capsys: Any) -> None:
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
    (tmp_path / "one" / "rule.yaml").write_text(TAINT_RULE)
    other = tmp_path / "two" / "gpu.yaml"
    other.write_text(EXTENDED)
    assert codes(answer(capsys, "-f", str(tmp_path))) == []
    other.rename(tmp_path / "one" / "gpu.yaml")
    assert codes(answer(capsys, "-f", str(tmp_path))) == ["taintrule-extended"]


def test_a_taint_rule_concerns_the_pods_of_its_own_driver(tmp_path: Path, capsys: Any) -> None:
    (tmp_path / "gpu.yaml").write_text(EXTENDED)
    (tmp_path / "rule.yaml").write_text(TAINT_RULE.replace("gpu.example.com", "net.example.com"))
    assert codes(answer(capsys, "-f", str(tmp_path))) == []


def test_patches_of_a_kustomization_are_no_objects(tmp_path: Path, capsys: Any) -> None:
    patch = tmp_path / "pdb.yaml"
    patch.write_text("{kind: PodDisruptionBudget, apiVersion: policy/v1, metadata: {name: b}, spec: {minAvailable: 1}}")
    assert codes(answer(capsys, "-f", str(tmp_path))) == ["pdb-nil-selector"]
    (tmp_path / "kustomization.yaml").write_text("resources: [b.yaml]\npatches: [{path: pdb.yaml}]\n")
    assert answer(capsys, "-f", str(tmp_path))["objects"] == 0


CLASSLESS = "{kind: PersistentVolume, apiVersion: v1, metadata: {name: v}, spec: {capacity: {storage: 1Gi}}}"
SLICE = "{kind: ResourceSlice, apiVersion: resource.k8s.io/v1, metadata: {name: s}, spec: {devices: [{name: d, %s}]}}"


@pytest.mark.parametrize(
    ("text", "code", "beside"),
    [
        (
            "{kind: PersistentVolumeClaim, apiVersion: v1, metadata: {name: c}, spec: {storageClassName: ''}}",
            "pvc-empty-class",
            CLASSLESS,
        ),
        (
            "{kind: ResourceClaim, apiVersion: resource.k8s.io/v1, metadata: {name: c}, spec: {devices: {requests: "
            "[{name: r, exactly: {capacity: {requests: {cpu.example.com/cpu: 1}}}}]}}}",
            "capacity-qualified-name",
            SLICE % "capacity: {cpu.example.com/cpu: {value: 8}}",
        ),
    ],
)
def test_another_object_may_explain_a_field(tmp_path: Path, capsys: Any, text: str, code: str, beside: str) -> None:
    file = tmp_path / "c.yaml"
    file.write_text(text)
    assert codes(answer(capsys, "-f", str(file), "--upgrade-to", "1.38")) == [code]
    file.write_text(f"{text}\n---\n{beside}\n")
    assert codes(answer(capsys, "-f", str(file), "--upgrade-to", "1.38")) == []


@pytest.mark.parametrize("field", ["hostNetwork: true", "priorityClassName: system-cluster-critical"])
def test_pods_of_the_system_may_tolerate_every_taint(tmp_path: Path, capsys: Any, field: str) -> None:
    file = tmp_path / "cni.yaml"
    text = "{kind: Deployment, apiVersion: apps/v1, metadata: {name: d}, spec: {template: {spec: {%s}}}}"
    file.write_text(text % "tolerations: [{operator: Exists}]")
    assert codes(answer(capsys, "-f", str(file))) == ["toleration-without-key"]
    file.write_text(text % f"{field}, tolerations: [{{operator: Exists}}]")
    assert codes(answer(capsys, "-f", str(file))) == []


def test_messages_in_the_status_are_no_scripts(tmp_path: Path, capsys: Any) -> None:
    file = tmp_path / "pod.yaml"
    condition = "{type: PodScheduled, status: 'False', message: 'preemption: 0/1 nodes are available'}"
    file.write_text(
        f"{{kind: Pod, apiVersion: v1, metadata: {{name: p}}, spec: {{}}, status: {{conditions: [{condition}]}}}}"
    )
    assert answer(capsys, "-f", str(file))["findings"] == []


def test_sarif_has_the_rule_the_level_and_the_line(file: Path, capsys: Any) -> None:
    assert main(["lint", "-f", str(file), "-o", "sarif"]) == 1
    sarif = json.loads(capsys.readouterr().out)
    [run] = sarif["runs"]
    [result] = run["results"]
    assert sarif["version"] == "2.1.0"
    assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == result["ruleId"] == "spread-empty-selector"
    [location] = result["locations"]
    assert location["physicalLocation"] == {"artifactLocation": {"uri": str(file)}, "region": {"startLine": 14}}
    assert result["level"] == "warning"


def test_markdown_links_the_code_to_its_page(file: Path, capsys: Any) -> None:
    assert main(["lint", "-f", str(file), "-o", "markdown"]) == 1
    text = capsys.readouterr().out
    assert text.startswith("### ❌ 1 warning in 1 object")
    assert "docs/reference/lint/spreading.md#spread-empty-selector)" in text


def test_scripts_are_read_and_other_files_passed_over(tmp_path: Path, capsys: Any) -> None:
    (tmp_path / "alert.sh").write_text("#!/bin/sh\ncurl prometheus | grep scheduler_scheduler_cache_size\n")
    (tmp_path / "values.yaml").write_text("replicas: 3\n")
    (tmp_path / "chart.yaml").write_text("{{ if .Values.a }}\nkind: Pod\n{{ end }}\n")
    (tmp_path / "picture.yaml").write_bytes(b"\xff\xfe\x00")
    status = main(["lint", "-f", str(tmp_path)])
    reported = capsys.readouterr()
    assert status == 1
    assert f"{tmp_path / 'alert.sh'}:2: Script/alert.sh lines[1]" in reported.out
    assert "skipped, because it is not a Kubernetes object: " in reported.err
    assert "and parts of 2 more files" in reported.err


def test_programs_and_pages_may_show_messages_but_not_metrics(tmp_path: Path, capsys: Any) -> None:
    for name in ("run.sh", "page.md", "main.go"):
        (tmp_path / name).write_text("untolerated taint {\nPodGroupScheduled\nscheduler_scheduler_cache_size\n")
    found = answer(capsys, "-f", str(tmp_path))
    assert sorted(codes(found)) == ["metric-cache-size"] * 3 + ["podgroup-condition", "text-taint"]


def test_lists_in_tests_are_no_queries(tmp_path: Path, capsys: Any) -> None:
    for name in ("main_test.go", "test_main.py", "main_test.py", "contest_main.py"):
        (tmp_path / name).write_text("scheduler_scheduler_cache_size\n")
    found = answer(capsys, "-f", str(tmp_path))
    assert [each["name"] for each in found["findings"]] == ["contest_main.py"]


@pytest.mark.parametrize(
    ("spec", "required"),
    [
        (
            "backend: {serviceName: s, servicePort: 80}",
            "Write `defaultBackend: {service: {name: NAME, port: {number: PORT}}}` in place of spec.backend.",
        ),
        (
            "rules: [{host: h}]",
            "Set pathType in spec.rules[].http.paths[], and write `backend: {service: {name: NAME, port: {number: "
            "PORT}}}`.",
        ),
    ],
)
def test_an_old_ingress_names_the_fields_that_it_has(tmp_path: Path, capsys: Any, spec: str, required: str) -> None:
    file = tmp_path / "i.yaml"
    file.write_text(f"{{kind: Ingress, apiVersion: extensions/v1beta1, metadata: {{name: i}}, spec: {{{spec}}}}}")
    [finding] = answer(capsys, "-f", str(file))["findings"]
    assert finding["fix"] == f"Write apiVersion: networking.k8s.io/v1. {required}"


@pytest.mark.parametrize(
    ("spec", "changes"),
    [
        (
            "{version: v1, group: a.b}",
            [
                "Write `versions: [{name, served: true, storage: true, schema}]` in place of spec.version",
                "Write a schema",
            ],
        ),
        (
            "{version: v1, validation: {openAPIV3Schema: {type: object}}, subresources: {status: {}}}",
            ["Write `versions:", "Move spec.validation, spec.subresources into each version"],
        ),
        ("{versions: [{name: v1, schema: {openAPIV3Schema: {type: object}}}]}", []),
        ("{version: v1, versions: [{name: v1, schema: {openAPIV3Schema: {type: object}}}]}", ["Remove spec.version"]),
        ("{versions: [{name: v1}, {name: v2, schema: {openAPIV3Schema: {type: object}}}]}", ["Write a schema"]),
    ],
)
def test_an_old_definition_names_the_changes_that_it_needs(
    tmp_path: Path, capsys: Any, spec: str, changes: list[str]
) -> None:
    file = tmp_path / "d.yaml"
    head = "kind: CustomResourceDefinition, apiVersion: apiextensions.k8s.io/v1beta1"
    file.write_text(f"{{{head}, metadata: {{name: d}}, spec: {spec}}}")
    [finding] = answer(capsys, "-f", str(file))["findings"]
    first, *others = finding["fix"].removesuffix(".").split(". ")
    assert first == "Write apiVersion: apiextensions.k8s.io/v1"
    assert len(others) == len(changes)
    assert all(other.startswith(change) for other, change in zip(others, changes, strict=True))


@pytest.mark.parametrize(("spec", "is_critical"), [("{}", False), ("{priorityClassName: c}", True)])
def test_an_annotation_of_critical_pods_tells_what_they_lack(
    tmp_path: Path, capsys: Any, spec: str, is_critical: bool
) -> None:
    file = tmp_path / "d.yaml"
    meta = "{annotations: {scheduler.alpha.kubernetes.io/critical-pod: ''}}"
    template = f"{{template: {{metadata: {meta}, spec: {spec}}}}}"
    file.write_text(f"{{kind: Deployment, apiVersion: apps/v1, metadata: {{name: d}}, spec: {template}}}")
    [finding] = answer(capsys, "-f", str(file))["findings"]
    assert ("without priorityClassName the pods are not critical" in finding["message"]) is not is_critical


def test_a_small_scratch_volume_needs_no_request(tmp_path: Path, capsys: Any) -> None:
    file = tmp_path / "pod.yaml"
    text = "{kind: Pod, apiVersion: v1, metadata: {name: p}, spec: {volumes: [{name: v, emptyDir: {sizeLimit: %s}}]}}"
    file.write_text(text % "1Gi")
    assert codes(answer(capsys, "-f", str(file))) == []
    file.write_text(text % "2Gi")
    assert codes(answer(capsys, "-f", str(file))) == ["emptydir-size"]


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        ([], "nothing to look at"),
        (["-f", "none.yaml"], "none.yaml: cannot be read"),
        (["-f", "/dev/zero"], "/dev/zero: cannot be read: a file is expected, and this is a device"),
        (["-f", "."], "no Kubernetes objects found"),
        (["-f", "x.yaml", "--kube-version", "1.12"], "invalid release '1.12': allowed are 1.29 to 1.38"),
        (["-f", "x.yaml", "--upgrade-to", "next"], "invalid release 'next'"),
    ],
)
def test_unusable_input_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any, words: list[str], answer: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["lint", *words]) == 2
    assert answer in capsys.readouterr().err


def test_the_rules_are_listed(capsys: Any) -> None:
    assert main(["lint", "--rules"]) == 0
    assert "spread-empty-selector  " in capsys.readouterr().out


def test_a_version_that_is_gone_names_the_fields_that_the_object_lacks(tmp_path: Path, capsys: Any) -> None:
    file = tmp_path / "old.yaml"
    file.write_text(
        "{kind: HorizontalPodAutoscaler, apiVersion: autoscaling/v2beta1, metadata: {name: a}, spec: {metrics: [{}]}}\n"
        "---\n{kind: HorizontalPodAutoscaler, apiVersion: autoscaling/v2beta2, metadata: {name: b}, "
        "spec: {metrics: [{}]}}\n"
    )
    first, second = answer(capsys, "-f", str(file))["findings"]
    assert "Write `target: {type: Utilization, averageUtilization: N}`" in first["fix"]
    assert second["fix"] == "Write apiVersion: autoscaling/v2."


def test_gates_and_flags_of_other_programs_are_their_own(tmp_path: Path, capsys: Any) -> None:
    flag = "--feature-gates=HonorPVReclaimPolicy=true"
    for image, found in (("sig-storage/csi-provisioner:v5", []), ("kube-controller-manager", ["gates-gone-136"])):
        pod = f'{{containers: [{{name: c, image: "registry.k8s.io/{image}", args: ["{flag}"]}}]}}'
        (tmp_path / "pod.yaml").write_text(f"{{kind: Pod, apiVersion: v1, metadata: {{name: p}}, spec: {pod}}}")
        assert codes(answer(capsys, "-f", str(tmp_path))) == found


OLD_BUDGET = (
    "{kind: PodDisruptionBudget, apiVersion: policy/v1beta1, "
    "metadata: {name: b}, spec: {selector: {matchLabels: {a: b}}}}"
)


@pytest.mark.parametrize(
    ("files", "passed_over"),
    [
        (["a.yaml", "_archived/web/a.yaml", "deprecated/a.yaml", "install-legacy.yaml"], {1, 2, 3}),
        (["old-browser/a.yaml", "legacy.yaml", "archive.yaml"], set()),
        (["deploy/v4.8.0/a.yaml", "deploy/v4.13.1/a.yaml", "deploy/v4.9.2/a.yaml"], {0, 2}),
        (["postgres-13.1/a.yaml", "postgres-14.2/a.yaml", "v1/a.yaml", "v2/a.yaml"], set()),
        (["kubernetes-1.14/a.yaml", "k8s-1.16+/a.yaml", "1.20/a.yaml"], {0}),
        (["web/a.yaml", "web-1.21+/a.yaml", "db/a.yaml", "db-1.38+/a.yaml"], {0}),
        (["1.30/a.yaml", "1.36/a.yaml", "1.38/a.yaml"], {0}),
        (["deploy-k8s-1.20.yaml", "deploy-k8s-1.31.yaml"], {0}),
        (["crds-v1beta1/a.yaml", "crds/a.yaml", "pdb-v1beta1.yaml"], {0, 2}),
        (["v2_0_0_full.yaml", "v2_10_0_full.yaml", "v2_1_0_other.yaml", "mysql-5.7.yaml", "mysql-8.0.yaml"], {0}),
        (["install-v1.0.0-rc1.yaml", "install-v1.0.0-rc10.yaml", "x-v1.0.0-rc1.yaml", "x-v1.0.0.yaml"], {0, 2}),
        (["pkg/testdata/a.yaml", "tests/a.yaml", "contest/a.yaml", "test.yaml"], {0, 1}),
        (["_site/a.yaml", "web/node_modules/x/a.yaml", "vendor/a.yaml", "vendor.yaml", "site/a.yaml"], {0, 1, 2}),
    ],
)
def test_files_that_are_kept_beside_the_current_ones_are_passed_over(
    tmp_path: Path, capsys: Any, files: list[str], passed_over: set[int]
) -> None:
    for file in files:
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text(OLD_BUDGET)
    found = answer(capsys, "-f", str(tmp_path))
    expected = [str(tmp_path / file) for place, file in enumerate(files) if place in passed_over]
    assert sorted(each["file"] for each in found["passedOver"]) == sorted(expected)
    assert len(found["findings"]) == len(files) - len(passed_over)
    assert len(answer(capsys, "-f", str(tmp_path), "--kept")["findings"]) == len(files)
    assert len(answer(capsys, *(word for file in files for word in ("-f", str(tmp_path / file))))["findings"]) == len(
        files
    )


@pytest.mark.parametrize(
    ("name", "text", "kept"),
    [
        ("install.sh", "yum install -y kubeadm-1.9.0 kubelet-1.9.0", True),
        ("install.sh", "yum install -y kubeadm-1.36.0", False),
        ("install.sh", "# since Kubernetes 1.9.0", False),
        ("cluster.yaml", "kubernetesVersion: v1.24.0", True),
        ("clusters.yaml", "kubernetesVersion: v1.24.0\n---\nkubernetesVersion: 'v1.36.2'", False),
        ("kind.yaml", "nodes: [{image: kindest/node:v1.21.1}]", True),
        ("env.sh", 'export KUBERNETES_VERSION="1.19.4"', True),
        ("up.sh", "minikube start --kubernetes-version=v1.20.0", True),
        ("main_test.go", 'kubernetesVersion: "v1.20.0"', False),
        ("README.md", "kubernetesVersion: v1.20.0", False),
    ],
)
def test_a_folder_that_pins_an_old_release_is_for_old_clusters(
    tmp_path: Path, capsys: Any, name: str, text: str, kept: bool
) -> None:
    (tmp_path / "deploy" / "sub").mkdir(parents=True)
    (tmp_path / "deploy" / name).write_text(text)
    beside, below = tmp_path / "deploy" / "a.yaml", tmp_path / "deploy" / "sub" / "a.yaml"
    for file in (beside, below):
        file.write_text(OLD_BUDGET)
    found = answer(capsys, "-f", str(tmp_path))
    assert [each["file"] for each in found["findings"]] == ([] if kept else [str(beside)]) + [str(below)]
    assert [each["reason"] for each in found["passedOver"]] == ["for old clusters"] * kept
    assert len(answer(capsys, "-f", str(tmp_path), "--kept")["findings"]) == 2


def test_the_summary_counts_the_kept_files_by_reason(tmp_path: Path, capsys: Any) -> None:
    for file in ("_archived/a.yaml", "_archived/b.yaml", "pdb-v1beta1.yaml"):
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).write_text(OLD_BUDGET)
    assert main(["lint", "-f", str(tmp_path)]) == 0
    assert "3 files skipped (--kept includes them): 2 in archives, 1 for old clusters" in capsys.readouterr().out


def test_templates_are_passed_over_in_one_line(tmp_path: Path, capsys: Any) -> None:
    (tmp_path / "web" / "templates").mkdir(parents=True)
    (tmp_path / "web" / "Chart.yaml").write_text("name: web\n")
    (tmp_path / "web" / "templates" / "a.yaml").write_text(
        "{kind: Pod, apiVersion: v1, metadata: {name: '{{ .Values.name }}'}}"
    )
    (tmp_path / "b.yaml").write_text("kind: Pod\n{{ if .Values.web }}\napiVersion: v1\n{{ end }}\n")
    (tmp_path / "c.yaml").write_text("{kind: Pod, apiVersion: v1, metadata: {name: c}}")
    assert main(["lint", "-f", str(tmp_path)]) == 0
    shown = capsys.readouterr()
    assert "nothing found in 1 object" in shown.out
    assert shown.err == (
        f"Note: skipped 2 templates, such as {tmp_path}/b.yaml "
        "(render a chart first: helm template CHART | kschedd lint -f -)\n"
        "Note: skipped, because it is not a Kubernetes object: "
        f"{tmp_path}/web/Chart.yaml:1: apiVersion: Required value\n"
    )


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        pytest.param(
            "{apiVersion: apps/v1, kind: Deployment, metadata: {name: d, lables: {}}, "
            "spec: {template: {spec: {container: [], nodeselector: {}}}}}",
            ["metadata.lables", "spec.template.spec.container", "spec.template.spec.nodeselector"],
            id="each-field",
        ),
        pytest.param("{apiVersion: a.b/v1, kind: Thing, metadata: {name: t}, spec: {x: 1}}", [], id="custom-resource"),
        pytest.param(
            "{apiVersion: v1, kind: Pod, metadata: {name: p, uid: u}, spec: {x: 1}}", [], id="from-an-api-server"
        ),
        pytest.param(
            "{apiVersion: extensions/v1beta1, kind: Deployment, metadata: {name: d}, spec: {rollbackTo: {}}}",
            [],
            id="another-version",
        ),
    ],
)
def test_fields_that_the_kind_does_not_have(tmp_path: Path, capsys: Any, text: str, fields: list[str]) -> None:
    file = tmp_path / "a.yaml"
    file.write_text(text)
    found = [each for each in answer(capsys, "-f", str(file))["findings"] if each["code"] == "unknown-field"]
    assert [each["field"] for each in found] == fields
    assert all(each["fix"].startswith("Write ") for each in found)
