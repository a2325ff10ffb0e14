"""Tests of warnings about valid objects; tests/apiserver/test_recorded.py has recorded warnings."""

from functools import lru_cache
from typing import Any

import pytest

from kschedd.registry.warnings import objects
from kschedd.registry.warnings.objects import creation_warnings, update_warnings
from kschedd.registry.warnings.pods import pod_warnings
from kschedd.store.admission_plugins.attributes import UserInfo
from kschedd.store.store import Store


def pod(name: str = "web", annotations: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    meta = {"name": name, "annotations": annotations or {}}
    containers = spec.pop("containers", [{"name": "c", "image": "x"}])
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {"containers": containers, **spec}}


def container(name: str = "c", **fields: Any) -> dict[str, Any]:
    return {"name": name, "image": "x", **fields}


@pytest.mark.parametrize(
    ("manifest", "warnings"),
    [
        pytest.param(pod(), [], id="nothing-to-say"),
        pytest.param(
            pod("a.b"),
            [
                "metadata.name: this is used in the Pod's hostname, which can result in surprising behavior; "
                "a DNS label is recommended: [must not contain dots]"
            ],
            id="a-name-that-is-no-host-name",
        ),
        pytest.param(
            pod(containers=[container(env=[{"name": "A", "value": "1"}, {"name": "A", "value": "2"}])]),
            ['spec.containers[0].env[1]: hides previous definition of "A", which may be dropped when using apply'],
            id="a-variable-twice",
        ),
        pytest.param(
            pod(containers=[container(env=[{"name": "A", "value": "1"}, {"name": "A", "value": "$(A)2"}])]),
            [],
            id="a-variable-that-adds-to-itself",
        ),
        pytest.param(
            pod(
                initContainers=[container("i", ports=[{"containerPort": 80}])],
                containers=[container(ports=[{"containerPort": 80, "hostPort": 80}])],
            ),
            ["spec.containers[0].ports[0]: overlapping port definition with spec.initContainers[0].ports[0]"],
            id="overlapping-ports",
        ),
        pytest.param(
            pod(
                containers=[
                    container(ports=[{"containerPort": 80, "name": "http"}]),
                    container("d", ports=[{"containerPort": 81, "name": "http"}]),
                ]
            ),
            [
                'spec.containers[1].ports[0]: duplicate port name "http" with spec.containers[0].ports[0], services '
                "and probes that select ports by name will use spec.containers[0].ports[0]"
            ],
            id="a-port-name-twice",
        ),
        pytest.param(
            pod(nodeSelector={"beta.kubernetes.io/os": "linux"}),
            ['spec.nodeSelector[beta.kubernetes.io/os]: deprecated since v1.14; use "kubernetes.io/os" instead'],
            id="an-old-label-of-nodes",
        ),
    ],
)
def test_warnings_of_a_new_pod(manifest: dict[str, Any], warnings: list[str]) -> None:
    assert list(creation_warnings(Store().create(manifest))) == warnings


APPARMOR = "container.apparmor.security.beta.kubernetes.io/c"
RUNTIME_DEFAULT, LOCAL = {"type": "RuntimeDefault"}, {"type": "Localhost", "localhostProfile": "a"}


@pytest.mark.parametrize(
    ("annotation", "of_pod", "own", "becomes", "warned"),
    [
        pytest.param("runtime/default", None, None, RUNTIME_DEFAULT, True, id="becomes-the-containers"),
        pytest.param("localhost/a", None, None, LOCAL, True, id="with-its-file"),
        pytest.param("runtime/default", RUNTIME_DEFAULT, None, None, False, id="is-the-pods-already"),
        pytest.param("runtime/default", None, RUNTIME_DEFAULT, RUNTIME_DEFAULT, False, id="is-the-containers-already"),
        pytest.param("localhost/ ", None, None, None, True, id="is-no-profile"),
    ],
)
def test_a_new_pods_profile_by_annotation(
    annotation: str,
    of_pod: dict[str, str] | None,
    own: dict[str, str] | None,
    becomes: dict[str, str] | None,
    warned: bool,
) -> None:
    fields: dict[str, Any] = {} if own is None else {"securityContext": {"appArmorProfile": own}}
    context: dict[str, Any] = {} if of_pod is None else {"securityContext": {"appArmorProfile": of_pod}}
    store = Store()
    with store.on_behalf_of(UserInfo("admin")) as remarks:
        made = store.create(pod(annotations={APPARMOR: annotation}, containers=[container(**fields)], **context))
    (kept,) = made.raw["spec"]["containers"]
    assert (kept.get("securityContext") or {}).get("appArmorProfile") == becomes
    reported = f'metadata.annotations[{APPARMOR}]: deprecated since v1.30; use the "appArmorProfile" field instead'
    assert remarks.warnings == [reported] * warned


def deployment(seconds: int, **labels: str) -> dict[str, Any]:
    template = {
        "metadata": {"labels": {"app": "web"}},
        "spec": {**pod()["spec"], "terminationGracePeriodSeconds": seconds},
    }
    spec = {"selector": {"matchLabels": {"app": "web"}}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "labels": labels}, "spec": spec}


def test_an_update_warns_of_a_template_only_if_the_spec_changed() -> None:
    store = Store()
    old = store.create(deployment(-1))
    (reported,) = creation_warnings(old)
    assert reported.startswith("spec.template.spec.terminationGracePeriodSeconds: must be >= 0")
    relabelled = store.update(deployment(-1, a="b"))
    assert update_warnings(old, relabelled) == ()
    assert update_warnings(relabelled, store.update(deployment(-2, a="b"))) == (reported,)


def test_a_stateful_sets_claims_and_revisions_are_told_of_in_every_update() -> None:
    store = Store()
    labels = {"app": "a"}
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1500m"}}}

    def stateful_set(**meta: Any) -> dict[str, Any]:
        spec = {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container()]}},
            "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": claim}],
            "revisionHistoryLimit": -1,
        }
        return {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "s", **meta}, "spec": spec}

    old = store.create(stateful_set())
    new = store.update(stateful_set(labels=labels))
    why = ': fractional byte value "1500m" is invalid, must be an integer'
    limit = "spec.revisionHistoryLimit: a negative value retains all historical revisions; a value >= 0 is recommended"
    place = "spec.volumeClaimTemplates[0]"
    assert creation_warnings(old) == (f"{place}.resources.requests[storage]{why}", limit)
    assert update_warnings(old, new) == (f"{place}.Spec.resources.requests[storage]{why}", limit)


@pytest.mark.parametrize(
    ("annotation", "warns"),
    [
        ("kubectl.kubernetes.io/last-applied-configuration", False),
        ("scheduler.alpha.kubernetes.io/critical-pod", True),
        ("seccomp.security.alpha.kubernetes.io/pod", True),
        ("container.seccomp.security.alpha.kubernetes.io/a", True),
        ("example.org/other", False),
    ],
)
def test_a_spec_is_looked_at_once_unless_an_annotation_matters(
    monkeypatch: pytest.MonkeyPatch, annotation: str, warns: bool
) -> None:
    looked: list[str] = []

    def counted(spec: Any, annotations: Any, template: str = "") -> Any:
        looked.append(annotation)
        return pod_warnings(spec, annotations, template)

    monkeypatch.setattr(objects, "pod_warnings", counted)
    monkeypatch.setattr(objects, "_of_spec", lru_cache(objects._of_spec.__wrapped__))
    spec = {"containers": [{"name": "a", "image": "i"}]}
    store = Store()
    for name in ("x", "y", "z"):
        meta = {"name": name, "annotations": {annotation: "runtime/default"}}
        made = store.create({"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec})
        assert bool(creation_warnings(made)) == warns
    assert len(looked) == (3 if warns else 1)
