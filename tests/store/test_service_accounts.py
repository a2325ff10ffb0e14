"""Tests of the admission plugin ServiceAccount in a cluster whose controllers create the account `default`."""

import base64
from typing import Any

import pytest

from kschedd.controllers.account_tokens import AccountTokens
from kschedd.controllers.runner import ControllerRunner
from kschedd.controllers.service_accounts import PLACEHOLDER, ServiceAccounts, certificates_in
from kschedd.managed_fields.noted import resolved
from kschedd.store.admission.chain import Admission
from kschedd.store.errors import Forbidden
from kschedd.store.managing import schema_for
from kschedd.store.objects.log import WatchEvent
from kschedd.store.store import Store
from tests.store.manifests import Clock

PATH = "/var/run/secrets/kubernetes.io/serviceaccount"


def store(*, accounts: bool = True, configured: dict[str, bool] | None = None) -> Store:
    return Store(now=Clock(), seed=6, admission=Admission(configured, accounts=accounts))


def pod(name: str = "p", **spec: Any) -> dict[str, Any]:
    whole = {"containers": [{"name": "c", "image": "i"}], **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"}, "spec": whole}


def account(name: str, **fields: Any) -> dict[str, Any]:
    meta = {"name": name, "namespace": "default", **fields.pop("metadata", {})}
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta, **fields}


def test_a_pod_gets_the_account_default_and_its_token() -> None:
    cluster = store()
    spec = cluster.create(pod(initContainers=[{"name": "i", "image": "i"}])).spec
    assert (spec["serviceAccountName"], spec["serviceAccount"]) == ("default", "default")
    (volume,) = spec["volumes"]
    assert volume["name"].startswith("kube-api-access-")
    assert [sorted(each) for each in volume["projected"]["sources"]] == [
        ["serviceAccountToken"],
        ["configMap"],
        ["downwardAPI"],
    ]
    mount = {"name": volume["name"], "readOnly": True, "mountPath": PATH}
    assert spec["containers"][0]["volumeMounts"] == spec["initContainers"][0]["volumeMounts"] == [mount]


def test_pods_with_an_equal_spec_share_their_spec() -> None:
    cluster = store()
    first, second = cluster.create(pod("a")), cluster.create(pod("b"))
    assert first.spec is second.spec
    other = cluster.create(pod("c", priority=0, hostname="h"))
    assert other.spec["volumes"][0]["name"] != first.spec["volumes"][0]["name"]
    assert store().create(pod("a")).spec == first.spec


@pytest.mark.parametrize(
    ("of_account", "of_pod", "mounted"),
    [
        pytest.param(None, None, True, id="by-default"),
        pytest.param(False, None, False, id="the-account-opts-out"),
        pytest.param(False, True, True, id="the-pod-wins"),
        pytest.param(True, False, False, id="the-pod-opts-out"),
    ],
)
def test_automounting_is_configurable(of_account: bool | None, of_pod: bool | None, mounted: bool) -> None:
    cluster = store()
    fields = {} if of_account is None else {"automountServiceAccountToken": of_account}
    cluster.create(account("default", **fields))
    spec = cluster.create(pod(**({} if of_pod is None else {"automountServiceAccountToken": of_pod}))).spec
    assert bool(spec.get("volumes")) == mounted


def test_a_container_with_a_mount_at_the_path_keeps_it() -> None:
    cluster = store()
    own = {"name": "own", "mountPath": PATH}
    containers = [{"name": "c", "image": "i", "volumeMounts": [own]}]
    spec = cluster.create(pod(containers=containers, volumes=[{"name": "own", "emptyDir": {}}])).spec
    assert [each["name"] for each in spec["volumes"]] == ["own"]
    assert [each["name"] for each in spec["containers"][0]["volumeMounts"]] == ["own"]


def test_a_pod_of_a_missing_account_is_rejected() -> None:
    cluster = store()
    with pytest.raises(Forbidden) as refused:
        cluster.create(pod(serviceAccountName="robot"))
    why = 'error looking up service account default/robot: serviceaccount "robot" not found'
    assert str(refused.value) == f'pods "p" is forbidden: {why}'
    cluster.create(account("robot", imagePullSecrets=[{"name": "pull"}]))
    assert cluster.create(pod(serviceAccountName="robot")).spec["imagePullSecrets"] == [{"name": "pull"}]
    cluster.delete("ServiceAccount", "default", "robot")
    with pytest.raises(Forbidden):
        cluster.create(pod("q", serviceAccountName="robot"))


def test_an_account_may_limit_the_secrets_of_its_pods() -> None:
    cluster = store()
    annotations = {"annotations": {"kubernetes.io/enforce-mountable-secrets": "true"}}
    cluster.create(account("default", secrets=[{"name": "known"}], metadata=annotations))
    volumes = [{"name": "v", "secret": {"secretName": "known"}}]
    cluster.create(pod("a", volumes=volumes))
    with pytest.raises(Forbidden, match='secretName="other" is not allowed because'):
        cluster.create(pod("b", volumes=[{"name": "v", "secret": {"secretName": "other"}}]))


@pytest.mark.parametrize(
    "made",
    [store(accounts=False), store(configured={"ServiceAccount": False})],
    ids=["without-accounts", "disabled"],
)
def test_elsewhere_pods_stay_as_they_are(made: Store) -> None:
    spec = made.create(pod()).spec
    assert "volumes" not in spec
    assert "serviceAccountName" not in spec


def test_the_creator_does_not_own_what_admission_adds() -> None:
    cluster = store()
    made = cluster.create(pod(), manager="kubectl")
    (entry,) = resolved(made.raw, schema_for(dict(made.raw)) or {})
    fields = entry["fieldsV1"]["f:spec"]
    assert not {"f:volumes", "f:serviceAccountName", "f:serviceAccount"} & fields.keys()
    assert "f:volumeMounts" not in fields["f:containers"]['k:{"name":"c"}']


# --- the controller ------------------------------------------------------------------------------------------------


def test_each_namespace_has_an_account_and_a_certificate() -> None:
    cluster = store()
    runner = ControllerRunner(cluster, [ServiceAccounts("PEM")])
    cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}})
    runner.run_until_idle()
    namespaces = [each.name for each in cluster.list("Namespace")]
    assert [(each.namespace, each.name) for each in cluster.list("ServiceAccount")] == [
        (namespace, "default") for namespace in namespaces
    ]
    config_maps = cluster.list("ConfigMap")
    assert [(each.namespace, each.name, each.raw["data"]) for each in config_maps] == [
        (namespace, "kube-root-ca.crt", {"ca.crt": "PEM"}) for namespace in namespaces
    ]


def test_only_certificates_of_a_file_are_published() -> None:
    key = "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"
    assert certificates_in(f"{PLACEHOLDER}{key}{PLACEHOLDER}") == PLACEHOLDER * 2
    assert certificates_in(key) == ""


def test_deleted_and_changed_objects_are_restored() -> None:
    cluster = store()
    runner = ControllerRunner(cluster, [ServiceAccounts("PEM")])
    runner.run_until_idle()
    cluster.delete("ServiceAccount", "default", "default")
    cluster.delete("ConfigMap", "kube-system", "kube-root-ca.crt")
    cluster.merge_patch("ConfigMap", "default", "kube-root-ca.crt", {"data": {"ca.crt": "no", "more": "x"}})
    runner.run_until_idle()
    assert cluster.find("ServiceAccount", "default", "default") is not None
    data = [each.raw["data"] for each in cluster.list("ConfigMap")]
    assert data == [{"ca.crt": "PEM"}] * len(cluster.list("Namespace"))


def test_events_of_other_accounts_and_config_maps_are_not_delivered() -> None:
    cluster = store()
    controller = ServiceAccounts()
    robot = cluster.create(account("robot"))
    assert not controller.concerns(WatchEvent("ADDED", None, robot, robot.resource_version))
    default = cluster.create(account("default"))
    assert controller.concerns(WatchEvent("DELETED", default, default, default.resource_version))


def test_a_secret_receives_a_token_or_is_deleted_with_its_account() -> None:
    cluster = store()
    runner = ControllerRunner(cluster, [AccountTokens("PEM", lambda account, secret: f"{account.name} in {secret}")])
    made = cluster.create(account("robot"))
    for name, owner in (("a", "robot"), ("b", "nobody")):
        meta = {"name": name, "namespace": "default", "annotations": {"kubernetes.io/service-account.name": owner}}
        kind = "kubernetes.io/service-account-token"
        cluster.create({"apiVersion": "v1", "kind": "Secret", "metadata": meta, "type": kind})
    runner.run_until_idle()
    (secret,) = cluster.list("Secret")
    data = {key: base64.b64decode(value).decode() for key, value in secret.raw["data"].items()}
    assert data == {"ca.crt": "PEM", "namespace": "default", "token": "robot in a"}
    assert secret.annotations["kubernetes.io/service-account.uid"] == made.uid
    cluster.delete("ServiceAccount", "default", "robot")
    runner.run_until_idle()
    assert not cluster.list("Secret")
