"""Validation rules that depend on other objects of the cluster.

Most rules depend on the object alone (`kschedd.registry`, `kschedd.api`). The rules of this module and of `custom` also
read other objects: the namespace of a resource claim, the addresses of other Services, the schema for a field manager's
fields. The rules apply to new objects and to replaced objects. Raises: Invalid, RangeFull, TooLarge.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from kschedd.api.objects import Object, Raw
from kschedd.api.schemas.fields import FieldError
from kschedd.api.schemas.kinds import BY_NAME
from kschedd.api.text.times import stamp
from kschedd.devices.checks import KINDS as DEVICE_KINDS
from kschedd.devices.checks import admin_faults, admin_status_faults, selector_faults
from kschedd.managed_fields.field_manager import FieldWrite
from kschedd.registry.networking.service_addresses import init_families
from kschedd.store.awaited import WebhookAnswers, checked
from kschedd.store.creating.service_addresses import allocate, networks_of
from kschedd.store.custom_resources import kinds as custom
from kschedd.store.custom_resources.definition_names import with_accepted_names
from kschedd.store.errors import Invalid, TooLarge
from kschedd.store.managing import field_write
from kschedd.store.reader import StoreReader


def managing_write(cluster: StoreReader, manager: str, raw: Raw, subresource: str, stored: str = "") -> FieldWrite:
    """Return the `managing.field_write` for an object at the current time; the object may be a custom resource."""
    definition = None if raw.get("kind") in BY_NAME else custom.definition_of(cluster, raw)
    return field_write(manager, raw, definition, subresource, stamp(cluster.now), stored)


_WITH_EXPRESSIONS: Final = frozenset(
    ("ValidatingAdmissionPolicy", "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
)


def expression_faults(
    cluster: StoreReader, kind: str, raw: Raw, answers: WebhookAnswers | None
) -> tuple[list[FieldError], list[FieldError]]:
    """Return errors for expressions that do not compile, and for admin access that the namespace does not allow.

    Raises WebhooksNeeded if compiling takes long and `answers` lacks the result.
    """
    if kind in _WITH_EXPRESSIONS:
        from kschedd.store.policies import checking  # imported here, because this imports CEL

        faults_of = checking.policy_faults if kind == "ValidatingAdmissionPolicy" else checking.webhook_faults
        return checked(answers, kind, raw, None, partial(faults_of, raw, cluster.features)), []
    if kind not in DEVICE_KINDS:
        return [], []
    faults = partial(selector_faults, raw, shares=cluster.rules.consumable_capacity)
    return checked(answers, kind, raw, None, faults), admin_faults(raw, _namespace_labels(cluster, raw))


def claim_status_faults(cluster: StoreReader, old: Raw, new: Raw) -> list[FieldError]:
    """Return errors for allocated devices with admin access that the namespace does not allow."""
    return admin_status_faults(old, new, _namespace_labels(cluster, new))


def _namespace_labels(cluster: StoreReader, raw: Raw) -> Mapping[str, str]:
    namespace = cluster.find("Namespace", "", raw["metadata"].get("namespace") or "")
    return {} if namespace is None else namespace.labels


def with_addresses(
    cluster: StoreReader, service: Raw, old: Object | None, dry_run: bool, *, restore: bool
) -> dict[str, Any]:
    """Return a Service with IP families, cluster IPs and node ports.

    Raises Invalid if a requested value is not available.

    A Service with invalid ports or addresses gets no allocation and is rejected. With `restore`, the Service is from
    another cluster, and keeps its addresses and ports.
    """
    spec, before = dict(service["spec"]), None if old is None else old.spec
    service = {**service, "spec": spec}
    networks = networks_of(cluster.service_range)
    faults = init_families(spec, before, list(networks))
    if restore:
        return service
    if faults:
        raise Invalid("Service", service["metadata"].get("name") or "", tuple(faults))
    others = [obj for space in cluster.present("Service") for obj in space if old is None or obj.uid != old.uid]
    return allocate(service, before, others, networks, dry_run)


def with_names(cluster: StoreReader, definition: Raw) -> dict[str, Any]:
    """Return a CustomResourceDefinition with the accepted names in its status."""
    return with_accepted_names(definition, cluster.list(custom.DEFINITION), stamp(cluster.now))


def check_size(cluster: StoreReader, kind: str, name: str, size: int) -> None:
    """Raise TooLarge if an object of this size in bytes exceeds the limit."""
    if size > cluster.max_object_bytes:
        raise TooLarge(kind, name, size, cluster.max_object_bytes)
