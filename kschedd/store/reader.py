"""StoreReader: read access to the store.

StoreReader implements `ClusterReader` for the embedded store: its objects, the event log, the clock for the timestamps
of objects, and the rules of the emulated kube-apiserver version. Reading changes nothing.

`Store` writes the objects and the log (`StoredObjects`).
"""

import builtins
from collections.abc import Callable, Container, Iterable, Sequence

import attrs

from kschedd.api.objects import Object, Raw
from kschedd.api.pods import Pod
from kschedd.api.schemas.check import schema_for
from kschedd.api.schemas.kinds import Kind, kind_of
from kschedd.api.schemas.schema import Schema
from kschedd.api.selecting.selector_text import FieldSelector
from kschedd.api.selecting.selectors import LabelSelector
from kschedd.api.simulation.pod_behavior import PodBehavior
from kschedd.config.versions.rules import Rules
from kschedd.managed_fields.structural import structural_schema
from kschedd.store.custom_resources import kinds as custom
from kschedd.store.custom_resources.simulated_behavior_kind import SIMULATED_BEHAVIORS
from kschedd.store.errors import NotFound
from kschedd.store.leases import LEASE, Renewed, renewed
from kschedd.store.objects.log import Cursor, WatchEvent
from kschedd.store.objects.stored import StoredObjects


class StoreReader:
    """Read access to the objects.

    `now` is in seconds since the epoch; `service_range` are the networks of cluster IPs, separated by commas.
    """

    def __init__(
        self,
        objects: StoredObjects,
        now: Callable[[], float],
        rules: Rules,
        max_object_bytes: int,
        service_range: str,
    ) -> None:
        self._objects = objects
        self._now = now
        self.log = objects.log
        self.rules = rules
        self.features = rules.features
        self.pod_behavior: PodBehavior | None = None
        self.max_object_bytes = max_object_bytes
        self.service_range = service_range

    def stand_for(self, rules: Rules) -> None:
        """Emulate the kube-apiserver of the Kubernetes version with these rules."""
        self.rules = rules
        self.simulate_pods(self.pod_behavior)

    def simulate_pods(self, behavior: PodBehavior | None) -> None:
        """Set the behavior of new pods. With a behavior, SimulatedBehavior objects are served and applied as well."""
        self.pod_behavior = behavior
        self.features = self.rules.features if behavior is None else self.rules.features | {SIMULATED_BEHAVIORS}

    def keep_jobs_running(self) -> None:
        """Let the pods of Jobs run until they are deleted, so that a what-if analysis does not free capacity."""
        if self.pod_behavior is not None:
            self.simulate_pods(attrs.evolve(self.pod_behavior, finish_jobs_s=None, finish_pods_s=None))

    def become_copy(self) -> None:
        """Change the behavior of pods to the behavior in a copy of another cluster, before a dump is loaded."""
        if self.pod_behavior is not None:
            self.simulate_pods(self.pod_behavior.of_copy())

    @property
    def now(self) -> float:
        return self._now()

    def set_clock(self, now: Callable[[], float]) -> None:
        """Replace the clock."""
        self._now = now

    # --- the objects --------------------------------------------------------------------------------------------------

    def find(self, kind: str, namespace: str, name: str) -> Object | None:
        found = self._objects.find(kind, namespace, name)
        return renewed(found, self._now()) if kind == LEASE and found and not self.is_watched(LEASE) else found

    def get(self, kind: str, namespace: str, name: str) -> Object:
        found = self.find(kind, namespace, name)
        if found is None:
            raise NotFound(kind, name)
        return found

    def list(
        self,
        kind: str,
        namespace: str | None = None,
        label_selector: LabelSelector | None = None,
        field_selector: FieldSelector | None = None,
    ) -> Sequence[Object]:
        """Return all objects of a kind, sorted by namespace and name; `namespace` None means all namespaces."""
        found = [space[name] for space in self._objects.spaces(kind, namespace) for name in sorted(space)]
        if label_selector is not None and not label_selector.empty:
            found = [obj for obj in found if label_selector.matches(obj.labels)]
        if field_selector is not None and field_selector.requirements:
            found = [obj for obj in found if field_selector.matches(obj.raw)]
        return self._as_read(kind, found)

    def present(self, kind: str, namespace: str | None = None) -> Sequence[Sequence[Object]]:
        """Return the objects of a kind by namespace, unsorted; `listing.in_order` sorts them."""
        return [self._as_read(kind, [*space.values()]) for space in self._objects.spaces(kind, namespace) if space]

    def _as_read(self, kind: str, found: builtins.list[Object]) -> Sequence[Object]:
        """Return objects as readers get them: Leases that this program renews have their latest renewal."""
        return Renewed(found, self._now()) if kind == LEASE and not self.is_watched(LEASE) else found

    def names(self, kind: str, namespace: str) -> Container[str]:
        """Return the names of the objects of a kind in a namespace."""
        return self._objects.space(kind, namespace)

    def present_in(self, kind: str, namespace: str) -> bool:
        """Return whether objects of a kind exist, or have existed, in a namespace.

        This method is called for each new pod.
        """
        return self._objects.present_in(kind, namespace)

    def kinds(self) -> Sequence[str]:
        """Return the kinds that have at least one object."""
        return self._objects.kinds()

    def kind_of(self, raw: Raw) -> Kind:
        """Return the kind of an object; for a custom resource, return the kind from its definition if one exists."""
        known = kind_of(raw)
        definition = None if known.known else custom.definition_of(self, raw)
        return known if definition is None else custom.defined_kind(definition)

    def merge_schema_of(self, raw: Raw) -> Schema:
        """Return the schema of an object's fields with their merge strategies."""
        known = schema_for(dict(raw))
        if known is not None:
            return known
        definition = custom.definition_of(self, raw)
        version = {} if definition is None else custom.version_of(definition, str(raw.get("apiVersion") or ""))
        return structural_schema((version.get("schema") or {}).get("openAPIV3Schema"))

    def serves(self, kind: Kind) -> bool:
        """Return whether this cluster has the kind: it is built in, or has a definition."""
        return kind.known or kind.api_version in custom.served_versions(self, kind.name)

    def count(self, kind: str) -> int:
        return self._objects.count(kind)

    def owned_by(self, uid: str) -> Sequence[Object]:
        """Return the objects whose ownerReferences contain this UID, in order of creation."""
        return self._objects.owned_by(uid)

    def pods_on(self, node_name: str) -> Sequence[Pod]:
        """Return the pods bound to this node, including finished ones, in the order of their binding."""
        return self._objects.pods_on(node_name)

    def in_namespace(self, namespace: str) -> Sequence[Object]:
        """Return all objects in a namespace."""
        return self._objects.in_namespace(namespace)

    def has_uid(self, uid: str) -> bool:
        """Return whether an object has this UID, so that no other object may get it."""
        return self._objects.has_uid(uid)

    # --- the event log ------------------------------------------------------------------------------------------------

    @property
    def version(self) -> int:
        """The version of the last write."""
        return self.log.version

    @property
    def history_used(self) -> tuple[int, int]:
        """Number of events in the log, and the largest number so far."""
        return self.log.used

    def is_watched(self, kind: str) -> bool:
        """Return whether a client watches objects of this kind."""
        return self.log.is_watched(kind)

    @property
    def history_bytes_used(self) -> tuple[int, int]:
        """Estimated number of bytes of the events in the log now, and the maximum so far."""
        return self.log.bytes_used

    def watch(self, kinds: Iterable[str] | None = None, since_version: int | None = None) -> Cursor:
        """Watch the writes after `since_version` (None: after the last write).

        Raises Gone if these writes have been compacted.
        """
        return self.log.watch(kinds, self.log.shown if since_version is None else since_version)

    def shown_after(self, version: int) -> builtins.list[WatchEvent]:
        """Return the writes after that version that watches may already receive, oldest first.

        Raises Gone if these writes have been compacted.
        """
        return self.log.after(version)

    def written_after(self, version: int) -> builtins.list[WatchEvent]:
        """Return all writes after that version, including writes that watches may not receive yet."""
        return self.log.written_after(version)
