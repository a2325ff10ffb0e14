"""Tests of set image, resources, env and serviceaccount; of explain KIND.path; and of unsupported verbs."""

import pytest

from kschedd.verbs.table import INSTEAD


@pytest.fixture
def web(daemon):
    containers = [
        {"name": "app", "image": "a:1", "env": [{"name": "OLD", "value": "1"}]},
        {"name": "side", "image": "s:1"},
    ]
    raw = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"template": {"spec": {"containers": containers, "initContainers": [{"name": "first", "image": "f"}]}}},
    }
    daemon.objects.append(raw)
    return raw


def patch_of(daemon):
    method, params = daemon.calls[-1]
    assert method == "objects.patch"
    return params["patch"]["spec"]["template"]["spec"]


@pytest.mark.parametrize(
    ("line", "done", "patch"),
    [
        ("set image deploy/web app=a:2", "image", {"containers": [{"name": "app", "image": "a:2"}]}),
        ("set image deploy web first=f:2", "image", {"initContainers": [{"name": "first", "image": "f:2"}]}),
        (
            "set image deploy web *=z",
            "image",
            {
                "initContainers": [{"name": "first", "image": "z"}],
                "containers": [{"name": "app", "image": "z"}, {"name": "side", "image": "z"}],
            },
        ),
        (
            "set resources deploy/web -c app --requests cpu=200m --limits cpu=1",
            "resource requirements",
            {"containers": [{"name": "app", "resources": {"limits": {"cpu": "1"}, "requests": {"cpu": "200m"}}}]},
        ),
        (
            "set env deploy/web -c a* NEW=2 OLD-",
            "env",
            {
                "containers": [
                    {
                        "name": "app",
                        "env": [
                            {"name": "NEW", "value": "2", "valueFrom": None},
                            {"name": "OLD", "$patch": "delete"},
                        ],
                    }
                ]
            },
        ),
        (
            "set serviceaccount deploy web robot",
            "serviceaccount",
            {"serviceAccountName": "robot", "serviceAccount": "robot"},
        ),
    ],
)
def test_objects_are_patched_where_they_differ(typed, daemon, web, line, done, patch) -> None:
    assert typed(line) == 0, typed.err
    assert typed.out == f"deployment.apps/web {done} updated\n"
    assert patch_of(daemon) == patch


def test_what_is_so_already_is_not_patched(typed, daemon, web) -> None:
    for line in ("set image deploy/web app=a:1", "set env deploy/web OLD=1 -c app", "set env deploy/web NONE-"):
        assert typed(line) == 0
        assert typed.out == ""
    assert all(method != "objects.patch" for method, _ in daemon.calls)


def test_the_environment_is_listed(typed, web) -> None:
    assert typed("set env deploy/web --list") == 0
    assert typed.out == "# Deployment web, container app\nOLD=1\n# Deployment web, container side\n"


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("set image deploy/web nope=x", 'unable to find container named "nope"'),
        ("set image deploy/web", "which image?"),
        ("set image node/node-a a=b", "a Node has no containers"),
        ("set resources deploy/web --limits cpu=x", "cpu=x"),
        ("set resources deploy/web", "must specify an update to requests or limits"),
        ("set env deploy/web", "at least one environment variable"),
        ("set weight ImageLocality 3 --limits cpu=1", "--limits is for: set image"),
        ("set image deploy/web a=b --profile x", "apply only to the configuration"),
        ("set imag deploy/web a=b", 'did you mean "image"?'),
    ],
)
def test_what_cannot_be_set_is_said(typed, daemon, web, line, words) -> None:
    assert typed(line) == 2
    assert words in typed.err
    assert all(method != "objects.patch" for method, _ in daemon.calls)


def test_the_fields_of_a_kind(typed, daemon) -> None:
    assert typed("explain deployment.spec") == 0
    assert typed.out.startswith(
        "GROUP:      apps\nKIND:       Deployment\nVERSION:    v1\n\nFIELD: spec <DeploymentSpec>\n\nFIELDS:\n"
    )
    assert "  replicas\t<integer>\n" in typed.out
    assert typed("explain pods.spec.containers") == 0
    assert "FIELD: containers <[]Container>\n" in typed.out
    assert typed("explain pod.spec.nodeSelector") == 0
    assert typed.out.endswith("FIELD: nodeSelector <map[string]string>\n\n")
    assert typed("explain pod.spec.affinity --recursive") == 0
    assert "    requiredDuringSchedulingIgnoredDuringExecution\t<NodeSelector>\n      nodeSelectorTerms" in typed.out
    assert daemon.calls == []
    assert typed("explain crd --recursive") == 0
    assert typed("explain pod.spec.nodName") == 2
    assert 'field "nodName" does not exist; did you mean "nodeName"' in typed.err


def test_explain_of_a_name_is_about_a_pod(typed, daemon) -> None:
    assert typed("explain web-1") == 0
    assert ("scheduler.explain", {"pod": "default/web-1"}) in daemon.calls


@pytest.mark.parametrize("verb", INSTEAD)
def test_a_verb_without_a_meaning_here_says_what_to_use(typed, daemon, verb) -> None:
    assert typed(f"{verb} web-0 -- ls") == 2
    assert f"{verb} is not supported: {INSTEAD[verb]}" in typed.err
    assert daemon.calls == []
