"""Creation: the steps that turn a manifest into a new object.

The steps are: determine kind, namespace and name; set defaults; run admission; validate; set the fields that only the
server sets (UID, creation time, resourceVersion, generation); record the field manager. For pods, `pod_strategy`
implements a faster path. The store itself checks that the namespace accepts new objects and that the name is not in
use.

Owns nothing.
Source: Kubernetes v1.34, apiserver/pkg/registry/rest/create.go (BeforeCreate), registry/generic/registry
(Store.Create).
Raises: ApiError.
"""

from collections.abc import Mapping
from typing import Any, Final

from kschedd.api.objects import Object, Raw
from kschedd.api.schemas.check import check_meta_schema, check_schema
from kschedd.api.schemas.codec import decoded_object, encoded_object
from kschedd.api.schemas.fields import FieldError, invalid, required
from kschedd.api.schemas.kinds import BY_NAME
from kschedd.api.simulation.pod_behavior import BEHAVIOR, PodBehavior, added_annotations
from kschedd.api.text.times import stamp
from kschedd.registry.defaults import default_typed
from kschedd.registry.strategy import prepare_create, strategy_of
from kschedd.store.admission.request import RequestAdmission
from kschedd.store.admission_plugins.attributes import Attributes
from kschedd.store.creating.cluster_rules import (
    check_size,
    expression_faults,
    managing_write,
    with_addresses,
    with_names,
)
from kschedd.store.creating.job_selector import with_own_labels, with_selector
from kschedd.store.custom_resources import kinds as custom
from kschedd.store.errors import Invalid, Undecodable
from kschedd.store.field_validation import accepted
from kschedd.store.managing import (
    MANAGED,
    NOBODY,
    Managing,
    as_stated,
    entries_of_new,
    new_pod_entries,
    with_entries,
    with_resolved_entries,
)
from kschedd.store.objects.stored import typed
from kschedd.store.prototypes.generated import Generated
from kschedd.store.prototypes.pod_strategy import SHARED_META, InternedPod, PodStrategy, new_pod, packed
from kschedd.store.reader import StoreReader

_NOTHING: Mapping[str, Any] = {}
# larger specs get complete managed fields immediately; for smaller specs, each reader computes them
_LARGE_SPEC: Final = 16 << 10


class Creation:
    """The creation of objects in one cluster."""

    def __init__(
        self,
        cluster: StoreReader,
        admission: RequestAdmission,
        pods: PodStrategy,
        generated: Generated,
    ) -> None:
        self._cluster = cluster
        self._admission = admission
        self._pods = pods
        self._generated = generated

    def identified(self, raw: Raw, *, served: bool = False) -> tuple[str, dict[str, Any]]:
        """Return the kind of the object, and its metadata with the final name and namespace.

        With `served`, the manifest's version must be served; otherwise NoMatch is raised.
        """
        kind = raw.get("kind")
        if not isinstance(kind, str) or not kind:
            raise Invalid("Object", "", (required("kind"),))
        given = raw.get("metadata")
        pod = kind == "Pod" and raw.get("apiVersion", "v1") == "v1"
        cluster = self._cluster
        known = BY_NAME["Pod"] if pod else custom.creatable_kind(cluster, raw) if served else cluster.kind_of(raw)
        if given is None:
            given = _NOTHING
        if type(given) is not dict and not isinstance(given, Mapping):
            raise Undecodable(known.name, "", (invalid("metadata", given, "must be a mapping"),))
        meta = {
            field: value
            for field, value in given.items()
            # the order of the tests is for speed, because most values are truthy
            if value or (value is not None and value != {} and value != [])
        }
        if known.namespaced:
            meta["namespace"] = meta.get("namespace") or "default"
        else:
            meta.pop("namespace", None)
        if meta.get("name") in (None, ""):
            base = meta.get("generateName")
            if base and isinstance(base, str):
                taken = cluster.names(known.name, meta.get("namespace") or "")
                meta["name"] = self._generated.name(known.name, base, taken)
            elif known.name in BY_NAME:
                meta["name"] = ""  # validation reports the missing name along with other errors
            else:
                raise Invalid(known.name, "", (required("metadata.name", "name or generateName is required"),))
        if not isinstance(meta["name"], str) or not isinstance(meta.get("namespace") or "", str):
            raise Undecodable(known.name, "", tuple(check_meta_schema(meta)))
        return known.name, meta

    def new(
        self, kind: str, raw: Raw, meta: dict[str, Any], managing: Managing, *, restore: bool, dry_run: bool
    ) -> Object:
        """Return the new object; `kind` and `meta` come from `identified`."""
        if kind == "Pod":
            return self._new_pod(raw, meta, restore, dry_run, managing)
        if kind not in BY_NAME and not restore:
            raw = custom.as_defined(self._cluster, raw, None, "", self._admission.webhook_answers)
        return self._new_object(kind, raw, meta, restore, dry_run, managing)

    def _new_pod(self, raw: Raw, meta: dict[str, Any], restore: bool, dry_run: bool, managing: Managing) -> Object:
        if self._admission.mutates and not restore:
            raw, meta = self._mutated_pod(raw, meta, dry_run)
        spec, name = raw.get("spec"), meta["name"]
        node_name = (spec.get("nodeName") or "") if type(spec) is dict or isinstance(spec, Mapping) else ""
        if raw.get("apiVersion") != "v1":
            accepted("Pod", name, {**raw, "metadata": meta})
        if not restore and type(meta.get("generation")) is int:
            del meta["generation"]  # the generation starts at 1, whatever the manifest contains
        admitted = self._pods.admit(raw, meta, name, restored=restore)
        for warning in admitted.warnings:
            self._admission.warn(warning)
        for field in SHARED_META:
            meta.pop(field, None)
        meta.update(admitted.meta)
        if admitted.annotations:
            meta["annotations"] = {**(meta.get("annotations") or {}), **admitted.annotations}
        if self._cluster.pod_behavior is not None and not restore:
            self._add_behavior(self._cluster.pod_behavior, meta, admitted)
        self._born("Pod", meta, restore)
        if managing is not NOBODY and (managing.manager or managing.entries):
            meta[MANAGED] = new_pod_entries(managing, meta, admitted.stated_spec, node_name)
        status: Raw = admitted.status_at(meta["creationTimestamp"])
        if restore and raw.get("status"):
            status = self._pods.restored_status(status, raw, meta, name)
        if MANAGED in meta and admitted.size > _LARGE_SPEC:
            whole = new_pod(raw, meta, admitted, node_name, status).raw
            meta[MANAGED] = with_resolved_entries(whole)["metadata"][MANAGED]
        size = admitted.size + len(packed("Pod", name, (meta, status)))
        if size > self._cluster.max_object_bytes and MANAGED in meta and managing.entries is None:
            del meta[MANAGED]  # upstream drops managedFields (except for an apply) before it rejects the object
            size = admitted.size + len(packed("Pod", name, (meta, status)))
        check_size(self._cluster, "Pod", name, size)
        return new_pod(raw, meta, admitted, node_name, status)

    def _add_behavior(self, default: PodBehavior, meta: dict[str, Any], admitted: InternedPod) -> None:
        behaviors = self._cluster.list(BEHAVIOR) if self._cluster.count(BEHAVIOR) else ()
        added = added_annotations(default, behaviors, meta, admitted.labels, admitted.spec)
        if added:
            meta["annotations"] = {**(meta.get("annotations") or {}), **added}

    def _new_object(
        self, kind: str, raw: Raw, meta: dict[str, Any], restore: bool, dry_run: bool, managing: Managing
    ) -> Object:
        cluster, name = self._cluster, meta["name"]
        generated = not (raw.get("metadata") or _NOTHING).get("name")
        attributes = Attributes("CREATE", kind, meta.get("namespace") or "", name, generated=generated)
        entries = managing.entries

        def prepare(defaulted: dict[str, Any]) -> dict[str, Any]:
            nonlocal entries
            if entries is None and managing.manager:
                write = managing_write(cluster, managing.manager, defaulted, "", kind)
                entries = entries_of_new(encoded_object(as_stated(defaulted, raw)), write)
            admitted = self._admission.admit(attributes, defaulted)
            if self._admission.mutates and not restore:
                admitted = self._mutated(attributes, admitted, dry_run)
            self._admission.check_escalation(attributes, admitted, None)
            prepared = prepare_create(kind, admitted, stamp(cluster.now), cluster.features, restore=restore)
            if kind == "CertificateSigningRequest" and not restore:
                prepared["spec"] = self._requested(prepared.get("spec") or {})
            if restore and defaulted.get("status"):
                prepared["status"] = defaulted["status"]
            meta = dict(prepared["metadata"])
            if restore and (given := defaulted["metadata"].get("generation")):
                meta["generation"] = given
            if kind == "Job":
                self._born(kind, meta, restore)
            prepared["metadata"] = meta
            if kind == "Service":
                return with_addresses(cluster, prepared, None, dry_run, restore=restore)
            if kind == "Job":
                return with_selector(prepared)
            return with_names(cluster, prepared) if kind == custom.DEFINITION else prepared

        def check(new: Raw) -> list[FieldError]:
            selectors, admin = expression_faults(cluster, new.get("kind") or "", new, self._admission.webhook_answers)
            return admin + selectors

        whole = accepted(kind, name, {**raw, "metadata": meta}, prepare, check)
        if kind == "Job" and not (raw.get("metadata") or {}).get("labels"):
            whole = with_own_labels(whole)
        custom.check_definition(kind, whole, None, self._admission.webhook_answers)
        self._admission.validate(attributes, whole, None)
        if kind != "Job":  # the selector of a Job contains its UID
            meta = dict(whole["metadata"])
            self._born(kind, meta, restore)
            whole["metadata"] = meta
        bare = stored = encoded_object(whole)
        if entries:
            stored = with_entries(bare, entries)
        size = len(packed(kind, name, stored))
        if size > cluster.max_object_bytes and managing.entries is None:
            stored, size = bare, len(packed(kind, name, bare))
        check_size(cluster, kind, name, size)
        return typed(kind, stored)

    def _mutated(self, attributes: Attributes, admitted: dict[str, Any], dry_run: bool) -> dict[str, Any]:
        """Return a new object, in decoded form, after the mutating policies."""

        def admit(changed: dict[str, Any]) -> dict[str, Any]:
            return encoded_object(self._admission.admit(attributes, default_typed(decoded_object(changed))))

        stored = encoded_object(admitted)
        changed = self._admission.mutated(attributes, stored, None, dry_run, admit)
        return admitted if changed is stored else default_typed(decoded_object(dict(changed)))

    def _mutated_pod(self, raw: Raw, meta: dict[str, Any], dry_run: bool) -> tuple[Raw, dict[str, Any]]:
        """Return the manifest and the metadata of a new pod after the mutating policies.

        The policies get the pod with its defaults and the changes of the in-tree plugins.
        """
        whole = {**raw, "metadata": meta}
        if not raw.get("spec") or check_schema(whole):
            return raw, meta  # the pod is rejected when it is decoded or validated
        generated = not (raw.get("metadata") or _NOTHING).get("name")
        attributes = Attributes("CREATE", "Pod", meta["namespace"], meta["name"], generated=generated)
        changed = self._mutated(
            attributes, self._admission.admit(attributes, default_typed(decoded_object(whole))), dry_run
        )
        stored = encoded_object(changed)
        return stored, dict(stored["metadata"])

    def _requested(self, spec: Raw) -> Raw:
        """Return the spec of a CertificateSigningRequest with the requesting user in place of any user in the manifest.

        For a request of the cluster itself the spec contains no user.
        """
        attributes = {
            field: value for field, value in spec.items() if field not in ("username", "uid", "groups", "extra")
        }
        user = self._admission.user
        if user is None:
            return attributes
        return {**attributes, "username": user.name, **({"groups": list(user.groups)} if user.groups else {})}

    def _born(self, kind: str, meta: dict[str, Any], restore: bool) -> None:
        """Add the server's metadata to a new object, in place."""
        cluster = self._cluster
        if not (restore and meta.get("uid")) or cluster.has_uid(meta["uid"]):
            meta["uid"] = self._generated.uid(kind)
        if not (restore and meta.get("creationTimestamp")):
            meta["creationTimestamp"] = stamp(cluster.now)
        meta.pop("selfLink", None)
        if not restore:
            meta.pop("deletionTimestamp", None)
            meta.pop("deletionGracePeriodSeconds", None)
        meta.pop("managedFields", None)
        meta["resourceVersion"] = str(cluster.version + 1)
        if strategy_of(kind).born and not (restore and meta.get("generation")):
            meta["generation"] = 1
