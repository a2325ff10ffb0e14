"""ServiceAccount: requires that the account of a pod exists, and mounts its token if the cluster has all accounts.

By default, the plugin only rejects pods that name a missing ServiceAccount, in namespaces with ServiceAccounts, because
most manifests and dumps contain none. In a daemon whose controllers create the account `default`
(`Admission(accounts=True)`), the plugin does what kube-apiserver's does: it sets the account's name, adds the volume
with the token to the pod, and adds the account's imagePullSecrets. The account `default` is treated as existing,
because the controller creates it after the namespace.

Pods with an equal spec share the result. Their volume has therefore the same name, which depends only on the spec;
upstream generates a name for each pod.
Source: Kubernetes v1.37, plugin/pkg/admission/serviceaccount/admission.go.
"""

import json
from collections.abc import Hashable, Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import Any, Final

from kschedd.api.objects import Object
from kschedd.api.token_volumes import TOKEN_VOLUME
from kschedd.store.admission_plugins.attributes import Attributes, Classes, Raw
from kschedd.store.errors import Forbidden

DEFAULT_ACCOUNT: Final = "default"
MOUNT_PATH: Final = "/var/run/secrets/kubernetes.io/serviceaccount"
_KIND: Final = "ServiceAccount"
_ENFORCES: Final = "kubernetes.io/enforce-mountable-secrets"
_TRUE: Final = frozenset(("1", "t", "T", "true", "TRUE", "True"))
_LETTERS: Final = "bcdfghjklmnpqrstvwxz2456789"
_FIELD_REF: Final = {"apiVersion": "v1", "fieldPath": "metadata.namespace"}
_SOURCES: Final[Sequence[Mapping[str, Any]]] = (
    {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
    {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
    {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": _FIELD_REF}]}},
)


def scope(namespace: str, classes: Classes) -> Hashable:
    if not classes.present_in(_KIND, namespace):
        return None
    return tuple(sorted(account.name for account in classes.list(_KIND, namespace)))


def admit(attributes: Attributes, raw: Raw, classes: Classes) -> Raw:
    namespace, name = attributes.namespace, raw["spec"].get("serviceAccountName") or DEFAULT_ACCOUNT
    if not attributes.creates or name == DEFAULT_ACCOUNT or not classes.present_in(_KIND, namespace):
        return raw
    _account(attributes, name, classes)
    return raw


# --- complete accounts ---------------------------------------------------------------------------------------------


def scope_of_accounts(namespace: str, classes: Classes) -> Hashable:
    """Return what the accounts of the namespace say about pods; None if there is only a plain account `default`."""
    if not classes.present_in(_KIND, namespace):
        return None
    found = tuple(_terms(account) for account in classes.list(_KIND, namespace))
    return None if found in ((), ((DEFAULT_ACCOUNT, None, "", "", ""),)) else found


def _terms(account: Object) -> tuple[str | None, ...]:
    raw = account.raw
    lists = (json.dumps(raw.get(field) or "") if raw.get(field) else "" for field in ("imagePullSecrets", "secrets"))
    automount = raw.get("automountServiceAccountToken")
    return (account.name, automount, *lists, account.annotations.get(_ENFORCES) or "")


def admit_with_account(attributes: Attributes, raw: Raw, classes: Classes) -> Raw:
    if not attributes.creates or attributes.subresource:
        return raw
    spec = dict(raw["spec"])
    name = spec.get("serviceAccountName") or DEFAULT_ACCOUNT
    account = _account(attributes, name, classes)
    whole: Raw = {} if account is None else account.raw
    spec["serviceAccountName"] = spec["serviceAccount"] = name
    automount = spec.get("automountServiceAccountToken")
    if automount is None:
        automount = whole.get("automountServiceAccountToken")
    if automount is not False:
        _mount_token(spec)
    pull_secrets = [{"name": each.get("name") or ""} for each in whole.get("imagePullSecrets") or ()]
    if pull_secrets and not spec.get("imagePullSecrets"):
        spec["imagePullSecrets"] = pull_secrets
    if account is not None and account.annotations.get(_ENFORCES) in _TRUE:
        for why in _unlisted_secrets(spec, account):
            raise Forbidden("Pod", attributes.name, why)
    return {**raw, "spec": spec}


def _account(attributes: Attributes, name: str, classes: Classes) -> Object | None:
    """Return the account; None if `default` does not exist yet. Raises Forbidden."""
    found = classes.find(_KIND, attributes.namespace, name)
    if found is None and name != DEFAULT_ACCOUNT:
        why = f'error looking up service account {attributes.namespace}/{name}: serviceaccount "{name}" not found'
        raise Forbidden("Pod", attributes.name, why)
    return found


def _mount_token(spec: dict[str, Any]) -> None:
    """Add the volume with the token, and mount it in each container that has no mount at its path."""
    volumes = spec.get("volumes") or []
    present = next((each["name"] for each in volumes if str(each.get("name")).startswith(TOKEN_VOLUME)), None)
    volume = present or TOKEN_VOLUME + _suffix(spec)
    mount = {"name": volume, "readOnly": True, "mountPath": MOUNT_PATH}
    needed = False
    for field in ("initContainers", "containers"):
        containers = []
        for container in spec.get(field) or ():
            mounts = container.get("volumeMounts") or []
            if not any(each.get("mountPath") == MOUNT_PATH for each in mounts):
                container, needed = {**container, "volumeMounts": [*mounts, mount]}, True
            containers.append(container)
        if containers:
            spec[field] = containers
    if needed and present is None:
        spec["volumes"] = [*volumes, {"name": volume, "projected": {"defaultMode": 420, "sources": list(_SOURCES)}}]


def _suffix(spec: Raw) -> str:
    """Return five letters that depend on the spec."""
    digest = blake2b(json.dumps(spec, sort_keys=True, default=str).encode(), digest_size=5).digest()
    return "".join(_LETTERS[byte % len(_LETTERS)] for byte in digest)


def _unlisted_secrets(spec: Raw, account: Object) -> Iterator[str]:
    """Yield an error for each Secret of the pod that the account does not list."""
    listed = {each.get("name") for each in account.raw.get("secrets") or ()}
    known = f"because service account {account.name} does not reference that"
    for volume in spec.get("volumes") or ():
        secret = (volume.get("secret") or {}).get("secretName")
        if secret is not None and secret not in listed:
            yield f'volume with secret.secretName="{secret}" is not allowed {known} secret'
    for label, field in (("init container", "initContainers"), ("container", "containers")):
        for container in spec.get(field) or ():
            where = f"{label} {container.get('name')}"
            for env in container.get("env") or ():
                name = ((env.get("valueFrom") or {}).get("secretKeyRef") or {}).get("name")
                if name is not None and name not in listed:
                    of = f'{where} with envVar {env.get("name")} referencing secret.secretName="{name}"'
                    yield f"{of} is not allowed {known} secret"
            for source in container.get("envFrom") or ():
                name = (source.get("secretRef") or {}).get("name")
                if name is not None and name not in listed:
                    yield f'{where} with envFrom referencing secret.secretName="{name}" is not allowed {known} secret'
    pulled = {each.get("name") for each in account.raw.get("imagePullSecrets") or ()}
    for place, each in enumerate(spec.get("imagePullSecrets") or ()):
        if each.get("name") not in pulled:
            yield f'imagePullSecrets[{place}].name="{each.get("name")}" is not allowed {known} imagePullSecret'
