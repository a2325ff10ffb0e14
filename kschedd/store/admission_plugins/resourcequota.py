"""ResourceQuota: rejects requests that exceed the quotas of their namespace, and counts the usage of all others.

Source: Kubernetes v1.34, staging/src/k8s.io/apiserver/pkg/admission/plugin/resourcequota/controller.go.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from kschedd.api.objects import Object
from kschedd.api.quantity import format_nanos, nanos, style
from kschedd.store.admission_plugins.attributes import Attributes, Classes, Raw
from kschedd.store.admission_plugins.quantities import ResourceList, add
from kschedd.store.admission_plugins.quota_usage import handles, in_scope, matching, unstated, usage
from kschedd.store.errors import Forbidden

QUOTA: Final = "ResourceQuota"
Charge = tuple[Object, ResourceList]
"""A quota, and its usage after this request."""


def charges(attributes: Attributes, raw: Raw, old: Raw | None, classes: Classes) -> Sequence[Charge]:
    """Return the quotas that count the object. Raises Forbidden if the object exceeds one of the quotas."""
    quotas = classes.list(QUOTA, attributes.namespace) if attributes.namespace else ()
    if not quotas or not handles(attributes.kind, attributes.operation, attributes.subresource):
        return ()
    counting = [quota for quota in quotas if _counts(attributes, raw, quota)]
    if not counting:
        return ()
    wanted = usage(attributes.kind, raw)
    if negative := sorted(name for name, quantity in wanted.items() if nanos(quantity) < 0):
        why = f"quota usage is negative for resource(s): {','.join(negative)}"
        raise Forbidden(attributes.kind, attributes.name, why)
    if old is not None:
        wanted = _less(wanted, usage(attributes.kind, old))
    wanted = {name: quantity for name, quantity in wanted.items() if nanos(quantity)}
    charged = [(quota, _used(attributes, quota, wanted)) for quota in counting] if wanted else []
    return [(quota, used) for quota, used in charged if used != (quota.status.get("used") or {})]


def _counts(attributes: Attributes, raw: Raw, quota: Object) -> bool:
    names = matching(attributes.kind, quota.status.get("hard") or ())
    if not names or not in_scope(attributes.kind, raw, quota.spec):
        return False
    if missing := unstated(attributes.kind, raw, names):
        raise Forbidden(attributes.kind, attributes.name, f"failed quota: {quota.name}: must specify {missing}")
    if not names <= (quota.status.get("used") or {}).keys():
        why = f"status unknown for quota: {quota.name}, resources: {','.join(sorted(names))}"
        raise Forbidden(attributes.kind, attributes.name, why)
    return True


def _less(wanted: ResourceList, before: Mapping[str, Any]) -> ResourceList:
    """Return the increase over the previous usage; 0 for a decrease."""
    return {
        name: format_nanos(max(0, nanos(quantity) - nanos(before.get(name, 0))), style(quantity))
        for name, quantity in wanted.items()
    }


def _used(attributes: Attributes, quota: Object, wanted: ResourceList) -> ResourceList:
    hard, used = quota.status.get("hard") or {}, quota.status.get("used") or {}
    requested = {name: quantity for name, quantity in wanted.items() if name in hard}
    total = dict(used)
    add(total, requested)
    exceeded = [name for name in requested if nanos(total[name]) > nanos(hard[name])]
    if exceeded:
        why = (
            f"exceeded quota: {quota.name}, requested: {_shown(requested, exceeded)}, "
            f"used: {_shown(used, exceeded)}, limited: {_shown(hard, exceeded)}"
        )
        raise Forbidden(attributes.kind, attributes.name, why)
    return total


def _shown(quantities: Mapping[str, Any], names: Iterable[str]) -> str:
    return ",".join(f"{name}={quantities[name]}" for name in sorted(names) if name in quantities)
