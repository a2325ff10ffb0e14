"""ServiceAccount: rejects pods that name a ServiceAccount which does not exist in their namespace.

Unlike kube-apiserver, kschedd checks only namespaces with ServiceAccounts, because most manifests and dumps contain
none. The account `default` is treated as existing, because in a cluster a controller creates it. No
token is mounted.
Source: Kubernetes v1.34, plugin/pkg/admission/serviceaccount/admission.go.
"""

from collections.abc import Hashable
from typing import Final

from kschedd.store.admission_plugins.attributes import Attributes, Classes, Raw
from kschedd.store.errors import Forbidden

_DEFAULT: Final = "default"
_KIND: Final = "ServiceAccount"


def scope(namespace: str, classes: Classes) -> Hashable:
    if not classes.present_in(_KIND, namespace):
        return None
    return tuple(sorted(account.name for account in classes.list(_KIND, namespace)))


def admit(attributes: Attributes, raw: Raw, classes: Classes) -> Raw:
    namespace, name = attributes.namespace, raw["spec"].get("serviceAccountName") or _DEFAULT
    if not attributes.creates or name == _DEFAULT or not classes.present_in(_KIND, namespace):
        return raw
    if classes.find(_KIND, namespace, name) is None:
        why = f'error looking up service account {namespace}/{name}: serviceaccount "{name}" not found'
        raise Forbidden("Pod", attributes.name, why)
    return raw
