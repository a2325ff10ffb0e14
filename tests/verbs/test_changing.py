"""Tests of verbs that change objects: each reports its changes, and reports faults before the first change."""

import json
from pathlib import Path

import pytest

from kschedd.scenarios.commands import ScenarioCluster
from kschedd.service.errors import RpcError

GOOD = "apiVersion: v1\nkind: Pod\nmetadata: {name: new}\nspec: {containers: [{name: a, image: b}]}\n"


def test_apply_says_what_became_of_each_object(typed, tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(GOOD)
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "b.yml").write_text(GOOD.replace("new", "other"))
    (tmp_path / "notes.txt").write_text("not a manifest")
    assert typed(f"apply -f {tmp_path}") == 0
    assert typed.out == "pod/new created\npod/other created\n"


def test_apply_reads_standard_input(typed, daemon) -> None:
    typed.input = GOOD.encode()
    assert typed("apply -f - --dry-run") == 0
    assert typed.out == "pod/new created (dry run)\n"
    assert daemon.calls[-1][1]["dry_run"] is True


def test_a_fault_names_file_and_line_and_the_rest_is_applied(typed, tmp_path: Path) -> None:
    file = tmp_path / "mixed.yaml"
    file.write_text(GOOD + "---\nkind: Pod\nmetadata: {name: x}\n")
    assert typed(f"apply -f {file}") == 1
    assert typed.out == "pod/new created\n"
    assert f"{file}:6: " in typed.err
    assert "apiVersion" in typed.err


def test_an_atomic_apply_of_several_files_is_one_call_with_lines_told_apart(typed, daemon, tmp_path: Path) -> None:
    first, second = tmp_path / "1.yaml", tmp_path / "2.yaml"
    first.write_text(GOOD.rstrip("\n"))
    second.write_text("# a comment\nkind: Pod\nmetadata: {name: x}\n")
    assert typed(f"apply --atomic -f {first} -f {second}") == 1
    assert typed.out == ""
    assert f"{second}:2: " in typed.err
    assert [method for method, _ in daemon.calls] == ["objects.apply"]


def test_objects_without_a_namespace_get_the_one_that_was_said(typed, daemon) -> None:
    typed.input = GOOD.encode() + b"---\napiVersion: v1\nkind: Namespace\nmetadata: {name: team}\n"
    assert typed("apply -n team -f -") == 0
    assert daemon.calls[-1][1]["namespace"] == "team"


@pytest.mark.parametrize(
    ("line", "code", "words"),
    [
        pytest.param("apply -f missing.yaml", 1, "missing.yaml: cannot be read: No such file", id="no-file"),
        pytest.param("apply", 2, "-f/--filename", id="no-file-named"),
        pytest.param("apply -f https://example.com/a.yaml", 1, "addresses are not fetched", id="address"),
        pytest.param("delete pods", 2, "pods: names, -l LABELS, --field-selector", id="delete-a-whole-kind"),
        pytest.param("delete pod ''", 2, "a kind or name is empty", id="delete-a-name-that-is-empty"),
        pytest.param("delete pod web-7", 1, 'did you mean "web-', id="delete-misspelt"),
        pytest.param("scale deploy web --replicas=-1", 2, "must be 0 or more", id="negative-replicas"),
        pytest.param("scale deploy web", 2, "--replicas", id="no-replicas"),
        pytest.param("label pod web-0", 2, "KEY=VALUE, KEY- or --list is required", id="no-label"),
        pytest.param(
            "taint node node-a gpu=yes", 2, "an effect is required, such as gpu=yes:NoSchedule", id="no-effect"
        ),
        pytest.param("taint node node-a gpu=yes:Never", 2, "allowed are NoSchedule", id="unknown-effect"),
        pytest.param("cordon", 2, "a node name, -l LABELS or --all is required", id="no-node"),
        pytest.param("cordon node-x", 1, 'did you mean "node-', id="node-misspelt"),
        pytest.param("patch pod web-0", 2, "a patch is required", id="no-patch"),
        pytest.param("patch pod web-0 -p '{a: [}'", 2, "neither JSON nor YAML", id="broken-patch"),
        pytest.param("patch pod web-0 -p 7", 2, "a map of fields", id="patch-is-no-map"),
        pytest.param("create deployment x", 2, "--image", id="no-image"),
        pytest.param("create pod x", 2, "use create -f FILE", id="cannot-be-created-so"),
        pytest.param("set weight X many", 2, "a whole number", id="weight-is-no-number"),
        pytest.param("set weight X ²", 2, "a whole number", id="weight-is-no-digit"),
        pytest.param(f"set parallelism {'9' * 5000}", 2, "a whole number", id="number-of-many-digits"),
        pytest.param(f"break delete {'9' * 5000}", 2, "not the id of a breakpoint", id="id-of-many-digits"),
        pytest.param(f"create service clusterip s --tcp {'9' * 5000}", 2, "expected a port", id="port"),
    ],
)
def test_what_is_wrong(typed, daemon, line, code, words) -> None:
    before = [dict(raw) for raw in daemon.objects]
    assert typed(line) == code
    assert words in typed.err
    assert daemon.objects == before


def test_delete_by_name_and_by_label(typed) -> None:
    assert typed("delete pod web-0 --force") == 0
    assert typed.out == 'pod "web-0" force deleted from default namespace\n'
    assert typed.err.startswith("Warning: Immediate deletion does not wait for confirmation that")
    assert typed("delete pods -l app=web") == 0
    assert typed.out == 'pod "web-1" deleted from default namespace\n'


@pytest.mark.parametrize(
    ("flag", "propagation"),
    [("", "Background"), (" --cascade orphan", "Orphan"), (" --cascade=foreground", "Foreground")],
)
def test_delete_says_what_becomes_of_what_an_object_owns(typed, daemon, flag: str, propagation: str) -> None:
    assert typed(f"delete pod web-0{flag}") == 0
    (requests,) = [params for method, params in daemon.calls if method == "objects.delete"]
    assert requests["propagation"] == propagation


def test_a_negative_grace_period_leaves_it_to_the_pods(typed, daemon) -> None:
    assert typed("delete pod web-0 --grace-period=-1") == 0
    (requests,) = [params for method, params in daemon.calls if method == "objects.delete"]
    assert "grace_period_s" not in requests


def test_delete_knows_three_cascades(typed) -> None:
    assert typed("delete pod web-0 --cascade=sideways") == 2
    assert '--cascade "sideways": allowed are background, foreground, orphan' in typed.err


def test_delete_what_a_manifest_names_last_first(typed, daemon) -> None:
    typed.input = (
        b"apiVersion: v1\nkind: Node\nmetadata: {name: node-a}\n---\n"
        b"apiVersion: v1\nkind: Pod\nmetadata: {name: web-0, namespace: default}\nspec: {}\n"
    )
    assert typed("delete -f - --dry-run") == 0
    assert typed.out.splitlines() == [
        'pod "web-0" deleted from default namespace (dry run)',
        'node "node-a" deleted (dry run)',
    ]


def test_delete_what_is_not_there_may_be_no_failure(typed) -> None:
    assert typed("delete pod gone --ignore-not-found") == 0
    assert typed.err == ""


def test_mutations_say_what_they_changed(typed, daemon) -> None:
    daemon.objects.append({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}})
    for line, answer in (
        ("scale deployment/web --replicas 3", "deployment.apps/web scaled: 1 -> 3"),
        ("label pod web-0 tier=front app-", "pod/web-0 labeled: tier, app"),
        ("label pod web-0 tier=front", "pod/web-0 not labeled: no change"),
        ("patch pod web-0 -p '{\"spec\": {}}'", "pod/web-0 patched: spec"),
        ("cordon node-a", "node/node-a cordoned"),
        ("cordon node/node-a", "node/node-a already cordoned"),
        ("uncordon nodes node-a", "node/node-a uncordoned"),
        ("taint nodes node-a a=b:NoSchedule c:NoExecute-", "node/node-a modified: a=b:NoSchedule, c:NoExecute-"),
        ("set weight TaintToleration 5", "weight of TaintToleration in default-scheduler: 1 -> 5"),
        ("create namespace team", "namespace/team created"),
        ("activate web-1", "pod/default/web-1 activated"),
        ("allow gang-0", "pod/default/gang-0 allowed"),
        ("reject gang-0 --plugin-name Gang --reason late", "pod/default/gang-0 rejected for Gang"),
    ):  # fmt: skip
        assert typed(line) == 0, line
        assert typed.out == answer + "\n"


def test_label_all_of_a_kind(typed) -> None:
    assert typed("label pods --all tier=x") == 0
    assert typed.out.splitlines() == ["pod/web-0 labeled: tier", "pod/web-1 labeled: tier"]


def test_a_created_deployment(typed, daemon) -> None:
    assert typed("create deployment web --image nginx --replicas 2 --requests cpu=1,memory=1Gi -o json") == 0
    made = json.loads(typed.out)
    assert made["spec"]["replicas"] == 2
    assert made["spec"]["template"]["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "1", "memory": "1Gi"}


def test_stop_asks_first(typed, daemon) -> None:
    typed.agrees = False
    assert typed("stop") == 1
    assert not daemon.stopped
    assert typed("stop --yes") == 0
    assert daemon.stopped


def test_a_request_that_is_invalid_is_told_without_the_object_in_it(typed, daemon) -> None:
    whole = '{\\"spec\\":' + "x" * 300 + "}"
    why = f' "" is invalid: patch: Invalid value: "{whole}": strict decoding error: unknown field "spec.replica"'

    def refuse(**params: object) -> None:
        raise RpcError("invalid", why)

    daemon.objects_patch = refuse
    assert typed("patch pod web-0 -p '{}'") == 1
    assert typed.err == 'error: The request is invalid: patch: strict decoding error: unknown field "spec.replica"\n'


def test_what_nothing_acts_on_yet_is_said_once_for_a_command(typed, daemon, tmp_path) -> None:
    why = "stored, but its pods are not made yet"

    def applied(**params: object) -> dict[str, object]:
        name = str(params["source"]).rpartition("/")[2].partition(".")[0]
        entry = {"kind": "Job", "namespace": "default", "name": name, "why": why}
        result = {"kind": "Job", "resource": "job.batch", "namespace": "default", "name": name, "action": "created"}
        return {"results": [result], "errors": [], "warnings": [], "unsupported": [entry]}

    daemon.objects_apply = applied
    for name in "ab":
        (tmp_path / f"{name}.yaml").write_text("kind: Job")
    assert typed(f"apply -f {tmp_path}") == 0
    assert typed.err == f"Warning: Job a, b: {why}\n"


def test_an_annotation_that_cannot_be_read_is_said_by_annotate_too(tmp_path: Path) -> None:
    scenario = ScenarioCluster(tmp_path)
    scenario.do("apply", "apiVersion: v1\nkind: Node\nmetadata: {name: a}\n")
    assert scenario.do("annotate node a kschedd.io/pressure=everything", "") == (
        "node/a annotated: metadata.annotations[kschedd.io/pressure]\n"
        'Warning: Node a: annotation kschedd.io/pressure: "everything" is ignored: '
        "allowed are memory, disk, pid, separated by commas\n"
    )


@pytest.mark.parametrize("flag", ["", " --wait", " --wait=true"])
def test_delete_waits_until_all_is_gone(typed, daemon, flag: str) -> None:
    daemon.lingering = True

    def goes() -> None:
        daemon.objects = [raw for raw in daemon.objects if raw["metadata"]["name"] != "web-0"]

    typed.on_sleep = goes
    assert typed(f"delete pod web-0{flag}") == 0
    assert typed.out == 'pod "web-0" deleted from default namespace\n'
    assert daemon.objects == [raw for raw in daemon.objects if raw["metadata"]["name"] != "web-0"]


def test_delete_does_not_wait_for_virtual_time(typed, daemon, monkeypatch: pytest.MonkeyPatch) -> None:
    daemon.lingering = True
    real = daemon.time_get()
    monkeypatch.setattr(type(daemon), "time_get", lambda self: {**real, "virtual": True, "speed": 0.0})
    assert typed("delete pod web-0") == 0
    assert typed.err == "Terminating objects go when virtual time advances, such as `advance 30s`.\n"
    assert typed("delete pod web-0 --wait=false") == 0
    assert typed.err == ""


@pytest.mark.parametrize(
    ("flags", "grace", "code", "words"),
    [
        ("--force", 0, 0, "Warning: Immediate deletion does not wait"),
        ("--force --grace-period=5", 5, 0, "Warning: --force is ignored because --grace-period is not 0."),
        ("--grace-period=0", 1, 0, ""),
        ("--now", 1, 0, ""),
        ("--now --grace-period=5", None, 2, "--now and --grace-period cannot be specified together"),
        ("--grace-period=0 --wait=false", None, 2, "--grace-period=0 must have either --force specified, or --wait"),
    ],
)
def test_grace_periods_are_those_of_kubectl(
    typed, daemon, flags: str, grace: int | None, code: int, words: str
) -> None:
    assert typed(f"delete pod web-0 {flags}") == code
    assert words in typed.err
    sent = [params["grace_period_s"] for method, params in daemon.calls if method == "objects.delete"]
    assert sent == ([] if grace is None else [grace])


def test_delete_gives_up_waiting_after_its_timeout(typed, daemon) -> None:
    daemon.lingering = True
    assert typed("delete pod web-0 --wait --timeout 2s") == 1
    assert "timed out waiting for the condition on pods/web-0" in typed.err
    assert typed("delete pod web-1 --wait --timeout soon") == 2
    assert "--timeout" in typed.err
