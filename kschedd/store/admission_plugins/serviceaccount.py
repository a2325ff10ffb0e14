"""ServiceAccount: rejects pods that name a ServiceAccount which does not exist in their namespace.

Unlike in kube-apiserver, only namespaces with ServiceAccounts are checked, because most manifests and dumps contain no
account. The account `default` always exists in a cluster, where a controller creates it, and here it counts as present.
No token is mounted.
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
