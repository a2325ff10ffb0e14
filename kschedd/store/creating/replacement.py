"""Replacement: the steps that turn an existing object and a request into the updated object.

All updates, patches and applies use this code. Their input is the existing object and the requested object; for a
subresource, only the requested part. The requested object gets its defaults, passes admission, and is validated. Fields
that only the server may set keep their old values. Finally, the changed fields are recorded for their field manager. A
status write checks only the status; status updates of pods are by far the most frequent writes and do not affect other
fields.

Owns nothing.
Source: Kubernetes v1.34, apiserver/pkg/registry/rest/update.go (BeforeUpdate), registry/generic/registry
(Store.Update).
Raises: ApiError.
"""

from collections.abc import Mapping
from typing import Any, Final

from kschedd.api.objects import Object, Raw
from kschedd.api.pods import Pod
from kschedd.api.schemas.check import check_meta_schema, check_schema, check_status_schema
from kschedd.api.schemas.codec import decoded_object, encoded_object
from kschedd.api.schemas.fields import FieldError
from kschedd.api.schemas.kinds import BY_NAME, kind_of
from kschedd.api.text.times import stamp
from kschedd.registry.defaults import default_typed
from kschedd.registry.strategy import prepare_finalize, prepare_status, prepare_update, strategy_of
from kschedd.registry.validation import validate_updated
from kschedd.registry.validation_times import status_meta_faults, times_validated
from kschedd.registry.validation_update import validate_status_update
from kschedd.store.admission.request import RequestAdmission
from kschedd.store.admission_plugins.attributes import Attributes, SubresourceOf
from kschedd.store.creating import updates
from kschedd.store.creating.cluster_rules import (
    check_size,
    claim_status_faults,
    expression_faults,
    managing_write,
    with_addresses,
    with_names,
)
from kschedd.store.creating.scales import paths_of, scale_of_raw
from kschedd.store.custom_resources import kinds as custom
from kschedd.store.custom_resources.scale import with_integer
from kschedd.store.errors import Invalid, Undecodable
from kschedd.store.field_validation import accepted, checked_status, status_with_faults
from kschedd.store.managing import MANAGED, Component, Managing, entries_after, unless_times_only, with_entries
from kschedd.store.patches.merging import merge_patch
from kschedd.store.prototypes.pod_strategy import PodStrategy, packed
from kschedd.store.reader import StoreReader

_NOTHING: Mapping[str, Any] = {}
# upstream ignores the metadata in these requests, except the UID
_KEEP_METADATA: Final = frozenset(("resize", "ephemeralcontainers"))


class Replacement:
    """Replacement of objects in one cluster."""

    def __init__(self, cluster: StoreReader, admission: RequestAdmission, pods: PodStrategy) -> None:
        self._cluster = cluster
        self._admission = admission
        self._pods = pods

    def checked(
        self, old: Object, raw: Raw, subresource: updates.Subresource, with_status: bool, dry_run: bool
    ) -> tuple[dict[str, Any], Raw]:
        """Return the object to store, and the requested object with defaults but without changes by admission.

        With `with_status`, the status is replaced, too.
        """
        if subresource == "status" and isinstance(old, Pod):
            mistyped = [] if raw.get("metadata") == old.metadata else check_meta_schema(raw.get("metadata"))
            if not isinstance(raw.get("status") or _NOTHING, Mapping):  # the fields of a mapping are checked later
                mistyped = [*mistyped, *check_status_schema(old.kind, raw["status"])]
        elif old.kind in BY_NAME:
            mistyped = check_schema(dict(raw))
        else:
            mistyped = check_meta_schema(raw.get("metadata") or {})
        if mistyped:
            raise Undecodable(old.kind, old.name, tuple(mistyped))
        attributes = Attributes("UPDATE", old.kind, old.namespace, old.name, subresource)
        self._admission.authorize(attributes, raw, old.raw)
        if old.kind not in BY_NAME:
            raw = custom.as_defined(
                self._cluster, raw, old, subresource, self._admission.webhook_answers, self._admission.warn
            )
        if subresource in updates.OF_STATUS:
            wanted = self._checked_status(old, raw, subresource)
            check_size(self._cluster, old.kind, old.name, len(packed(old.kind, old.name, wanted.get("status"))))
            self._admission.validate_whole(attributes, wanted, old.raw, dry_run=dry_run)
            return wanted, wanted
        wanted, requested = self._checked(attributes, old, raw, subresource, dry_run)
        if with_status and raw.get("status"):
            wanted = checked_status(old.kind, old.name, {**wanted, "status": raw["status"]})
        check_size(self._cluster, old.kind, old.name, len(packed(old.kind, old.name, wanted)))
        if subresource == "scale" and self._admission.validates:
            new, before, of = self._scales(old, wanted)
            self._admission.validate_whole(attributes, new, before, dry_run=dry_run, of=of)
        else:
            self._admission.validate_whole(attributes, wanted, old.raw, dry_run=dry_run)
        return wanted, requested

    def _scales(self, old: Object, wanted: Raw) -> tuple[Raw, Raw, SubresourceOf]:
        """Return the new and the old Scale of an object, for admission."""
        paths = paths_of(self._cluster, old)
        of = SubresourceOf("autoscaling/v1", "Scale", old.raw)
        return scale_of_raw(wanted, paths), scale_of_raw(old.raw, paths), of

    def _mutated_scale(
        self, attributes: Attributes, old: Object, wanted: dict[str, Any], dry_run: bool
    ) -> dict[str, Any]:
        """Return an object with the replicas of its Scale after the mutating policies."""
        new, before, of = self._scales(old, wanted)
        changed = self._admission.mutated(attributes, new, before, dry_run, of=of)
        if changed is new:
            return wanted
        replicas = (changed.get("spec") or {}).get("replicas") or 0
        whole: dict[str, Any] = merge_patch(wanted, with_integer(paths_of(self._cluster, old).replicas, replicas))
        return whole

    def managed(
        self, old: Object, wanted: dict[str, Any], requested: Raw, subresource: str, managing: Managing
    ) -> dict[str, Any]:
        """Return the object with its managed fields after this write.

        The managed fields stay unchanged if the write has no field manager or if a component writes the status.
        """
        before = old.metadata.get(MANAGED)
        if not managing.manager or (isinstance(managing.manager, Component) and subresource == "status"):
            if wanted["metadata"].get(MANAGED) is before:
                return wanted
            return with_entries(wanted, before or [])
        entries = managing.entries
        if entries is None:
            write = managing_write(self._cluster, managing.manager, old.raw, subresource, old.kind)
            entries = entries_after(old, requested, write)
        return unless_times_only(old, with_entries(wanted, entries))

    def _mutated(self, attributes: Attributes, wanted: dict[str, Any], old: Raw, dry_run: bool) -> dict[str, Any]:
        """Return an updated object after the mutating policies."""
        built_in = attributes.kind in BY_NAME
        stored = encoded_object(default_typed(decoded_object(wanted))) if built_in else wanted
        changed = self._admission.mutated(attributes, stored, old, dry_run)
        return wanted if changed is stored else dict(changed)

    def _checked_status(self, old: Object, raw: Raw, subresource: updates.Subresource) -> dict[str, Any]:
        """Return the object with its new status, decoded and validated."""
        given, before = raw.get("metadata") or _NOTHING, old.metadata
        meta = before if given == before else updates.merged_meta(old, given)
        wanted = {**raw, "metadata": meta}
        if not isinstance(old, Pod) and old.kind in BY_NAME:
            wanted = default_typed(decoded_object(wanted))
        elif meta is not before:
            wanted["metadata"] = decoded_object({**old.raw, "metadata": meta})["metadata"]
        cluster = self._cluster
        wanted = prepare_status(old.kind, wanted, old.raw, stamp(cluster.now), cluster.features, subresource)
        faults = claim_status_faults(cluster, old.raw, wanted) if old.kind == "ResourceClaim" else []
        if meta is not before:
            kept = strategy_of(old.kind).status_keeps
            changed = {field: part for field, part in given.items() if field not in kept}
            faults += status_meta_faults(kind_of(old.raw), wanted["metadata"], updates.meta_faults(old, changed))
        wanted, wrong = status_with_faults(old.kind, old.name, wanted)
        if faults := [*faults, *wrong, *validate_status_update(old.raw, wanted, subresource)]:
            raise Invalid(old.kind, old.name, tuple(faults))
        return wanted

    def _checked(
        self, attributes: Attributes, old: Object, raw: Raw, subresource: updates.Subresource, dry_run: bool
    ) -> tuple[dict[str, Any], Raw]:
        """Return the results of `checked` for a write that is not a status update.

        A changed spec increments the generation.
        """
        cluster = self._cluster
        wanted = updates.merged_update(old, raw, subresource)
        if self._admission.mutates and not check_schema(wanted):
            if subresource == "scale":
                wanted = self._mutated_scale(attributes, old, wanted, dry_run)
            else:
                wanted = self._mutated(attributes, wanted, old.raw, dry_run)
        given = raw.get("metadata") or _NOTHING
        if subresource in _KEEP_METADATA:
            given = {field: given[field] for field in ("uid",) if field in given}
        wrong = updates.meta_faults(old, given)

        # a pod is compared in stored form, any other object in decoded form
        before = old.raw if isinstance(old, Pod) else decoded_object(dict(old.raw))

        requested: list[dict[str, Any]] = []

        def prepare(new: dict[str, Any]) -> dict[str, Any]:
            requested.append(new)
            if subresource == "finalize":
                return prepare_finalize(new, before)
            self._admission.check_escalation(attributes, new, before)
            prepared = prepare_update(old.kind, new, before, stamp(cluster.now), cluster.features)
            if old.kind == custom.DEFINITION:
                return with_names(cluster, prepared)
            return with_addresses(cluster, prepared, old, dry_run, restore=False) if old.kind == "Service" else prepared

        def check(new: Raw) -> list[FieldError]:
            found = updates.update_faults(old, before, new, subresource, cluster.features)
            if not isinstance(old, Pod):
                answers = self._admission.webhook_answers
                found += times_validated(old.kind) * expression_faults(cluster, old.kind, new, answers)[0]
            return found

        if isinstance(old, Pod):
            wanted["spec"] = _kept_fields(old.raw["spec"], wanted.get("spec"))
            checked = self._pods.admit_update(wanted, old, subresource, check, wrong, self._admission.warn)
            checked = prepare(checked)
            if checked["spec"] == old.raw["spec"]:
                checked["spec"] = old.raw["spec"]
            return checked, checked
        checked = accepted(
            old.kind, old.name, wanted, prepare, check, lambda done: validate_updated(done, wrong, before)
        )
        custom.check_definition(old.kind, checked, before, self._admission.webhook_answers)
        self._admission.validate(attributes, checked, before)
        return encoded_object(checked), encoded_object(requested[0])


def _kept_fields(old: Raw, new: Any) -> Any:
    """Return the spec with fields that admission set at creation and that an update may omit."""
    if not isinstance(new, Mapping):
        return new
    kept = ("priority", "preemptionPolicy")
    return {**new, **{name: old[name] for name in kept if name in old and new.get(name) is None}}
