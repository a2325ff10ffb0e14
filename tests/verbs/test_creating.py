"""Tests of the verbs create, run and expose: the objects that they create, also with --dry-run=client."""

import base64

import pytest
import yaml


def made(typed, line: str):
    """Return the objects that a line creates, as --dry-run=client prints them."""
    words, dashes, command = line.partition(" -- ")
    assert typed(f"{words} --dry-run=client -o yaml{dashes}{command}") == 0, typed.err
    assert typed.daemon.calls == []
    return yaml.safe_load(typed.out)


def test_a_pod_is_printed_as_kubectl_prints_it(typed) -> None:
    assert typed("run r3 --image=x:1 --dry-run=client -o yaml") == 0
    assert typed.out == (
        "apiVersion: v1\nkind: Pod\nmetadata:\n  labels:\n    run: r3\n  name: r3\n"
        "spec:\n  containers:\n  - image: x:1\n    name: r3\n    resources: {}\n"
        "  dnsPolicy: ClusterFirst\n  restartPolicy: Always\nstatus: {}\n"
    )


def test_run_takes_labels_env_port_and_arguments(typed) -> None:
    pod = made(typed, "run r2 --image x:1 --labels a=b,c=d --env K=V --port 80 --restart Never -n team -- sleep 60")
    assert pod["metadata"] == {"name": "r2", "namespace": "team", "labels": {"a": "b", "c": "d"}}
    (container,) = pod["spec"]["containers"]
    assert container["args"] == ["sleep", "60"]
    assert container["env"] == [{"name": "K", "value": "V"}]
    assert container["ports"] == [{"containerPort": 80, "protocol": "TCP"}] or container["ports"] == [
        {"containerPort": 80}
    ]
    assert pod["spec"]["restartPolicy"] == "Never"
    pod = made(typed, """run r5 --image x --command --overrides '{"spec": {"nodeName": "n1"}}' -- sh -c x""")
    assert pod["spec"]["nodeName"] == "n1"
    assert pod["spec"]["containers"][0]["command"] == ["sh", "-c", "x"]


def test_run_with_a_service(typed, daemon) -> None:
    assert typed("run r4 --image x:1 --expose --port 8080") == 0
    assert typed.out == "service/r4 created\npod/r4 created\n"
    service = daemon._find("Service", "r4")
    assert service["spec"] == {
        "selector": {"run": "r4"},
        "ports": [{"port": 8080, "protocol": "TCP", "targetPort": 8080}],
    }


def test_a_deployment_names_its_containers_by_their_images(typed) -> None:
    found = made(typed, "create deployment web --image reg/a:1 --image b@sha256:0 --image c/a --replicas 2 --port 80")
    assert found["spec"]["replicas"] == 2
    assert found["spec"]["selector"] == {"matchLabels": {"app": "web"}}
    assert [one["name"] for one in found["spec"]["template"]["spec"]["containers"]] == ["a", "b", "a-2"]
    assert found["spec"]["strategy"] == {}


@pytest.mark.parametrize(
    ("line", "part"),
    [
        ("create ns team-a", {"kind": "Namespace", "metadata": {"name": "team-a"}}),
        ("create sa robot", {"kind": "ServiceAccount"}),
        ("create cm c --from-literal a=1 --from-literal b=x=y", {"data": {"a": "1", "b": "x=y"}}),
        (
            "create secret generic s --from-literal u=v --type example.com/t",
            {"data": {"u": base64.b64encode(b"v").decode()}, "type": "example.com/t"},
        ),
        (
            "create quota q --hard pods=2,requests.cpu=1 --scopes BestEffort",
            {"spec": {"hard": {"pods": "2", "requests.cpu": "1"}, "scopes": ["BestEffort"]}},
        ),
        (
            "create pc high --value 5 --preemption-policy Never --description text",
            {"value": 5, "preemptionPolicy": "Never", "description": "text"},
        ),
        (
            "create pdb g --selector app=web --min-available 1",
            {"spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}}},
        ),
        (
            "create pdb g --selector app=web --max-unavailable 50%",
            {"spec": {"maxUnavailable": "50%", "selector": {"matchLabels": {"app": "web"}}}},
        ),
        (
            "create svc nodeport s --tcp 80:http --node-port 30000",
            {
                "metadata": {"name": "s", "labels": {"app": "s"}},
                "spec": {
                    "type": "NodePort",
                    "selector": {"app": "s"},
                    "ports": [
                        {"name": "80-http", "port": 80, "targetPort": "http", "protocol": "TCP", "nodePort": 30000}
                    ],
                },
            },
        ),
    ],
)
def test_create_of_each_kind(typed, line, part) -> None:
    found = made(typed, line)
    assert {name: found[name] for name in part} == part


def test_jobs_run_a_command(typed) -> None:
    pod = made(typed, "create job j --image x:1 -- echo hi")["spec"]["template"]["spec"]
    assert (pod["restartPolicy"], pod["containers"][0]["command"]) == ("Never", ["echo", "hi"])
    spec = made(typed, "create cronjob c --image x:1 --schedule '*/5 * * * *'")["spec"]
    assert spec["schedule"] == "*/5 * * * *"
    assert spec["jobTemplate"]["spec"]["template"]["spec"]["restartPolicy"] == "OnFailure"


def test_a_job_of_a_cron_job(typed, daemon) -> None:
    template = {"spec": {"template": {"spec": {"containers": [{"name": "a", "image": "x"}], "restartPolicy": "Never"}}}}
    meta = {"name": "nightly", "namespace": "default", "uid": "u1"}
    daemon.objects.append(
        {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": meta, "spec": {"jobTemplate": template}}
    )
    assert typed("create job now --from cronjob/nightly") == 0
    job = daemon._find("Job", "now")
    assert job["spec"] == template["spec"]
    assert job["metadata"]["ownerReferences"][0]["uid"] == "u1"


def test_a_config_map_of_files(typed, tmp_path) -> None:
    typed.folder = tmp_path
    (tmp_path / "x.txt").write_text("text\n")
    (tmp_path / "y.bin").write_bytes(b"\xff\x00")
    (tmp_path / "vars").write_text("# comment\nA=1\n\nB=2\n")
    found = made(typed, "create cm c --from-file x.txt --from-file k=y.bin --from-env-file vars")
    assert found["data"] == {"x.txt": "text\n", "A": "1", "B": "2"}
    assert found["binaryData"] == {"k": base64.b64encode(b"\xff\x00").decode()}


def test_expose_selects_the_pods_of_the_object(typed, daemon) -> None:
    assert typed("expose pod web-0 --port 80 --target-port http --name shop --type NodePort") == 0
    assert typed.out == "service/shop exposed\n"
    service = daemon._find("Service", "shop")
    assert service["spec"] == {
        "selector": {"app": "web"},
        "ports": [{"protocol": "TCP", "port": 80, "targetPort": "http"}],
        "type": "NodePort",
    }


@pytest.mark.parametrize(
    ("line", "code", "words"),
    [
        ("run r7", 2, 'required flag(s) "image" not set'),
        ("run r8 --image 'bad image'", 2, "invalid reference format"),
        ("run r9 --image x --restart Nope", 2, "Nope"),
        ("run r9 --image x --expose", 2, "--port must be set when exposing a service"),
        ("run r9 --image x --overrides [", 2, "neither JSON nor YAML"),
        (f"run r9 --image x --overrides {'[' * 5_000}", 2, "nested more than 100 levels deep"),
        ("run r9 --image x --overrides 'spec: &a {x: *a}'", 2, "the anchor contains itself"),
        ("create deployment x3", 2, 'required flag(s) "image" not set'),
        ("create pdb g --selector a=b", 2, "one of min-available or max-unavailable must be specified"),
        ("create pdb g --selector a=b --min-available 1 --max-unavailable 1", 2, "cannot be both specified"),
        ("create cm", 2, "exactly one NAME is required, got 0"),
        ("create cm c --from-literal a=1 --from-literal a=2", 2, 'cannot add key "a"'),
        ("create cm c --from-file nope", 2, "No such file"),
        ("create nonsense x", 2, "cannot be created from flags"),
        ("create token app", 2, "tokens are created over the REST API"),
        ("create service clusterip s", 2, "at least one tcp port"),
        ("create service nodeprot s", 2, 'did you mean "nodeport"?'),
        ("create secret tls s", 2, "create secret generic"),
        ("expose pod web-0", 2, "couldn't find port via --port flag or introspection"),
        ("expose pod nope --port 80", 1, 'pods "nope" not found'),
        ("expose node node-a --port 80", 2, "cannot expose a Node"),
    ],
)
def test_what_is_missing_is_said(typed, line, code, words) -> None:
    assert typed(line) == code
    assert words in typed.err
    assert typed.out == ""
