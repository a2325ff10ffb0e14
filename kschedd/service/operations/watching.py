"""The operation that watches objects: first the existing objects, if requested, then all changes.

An object that no longer matches the selectors is sent as DELETED with its last state, at the current version. An object
that starts to match the selectors is sent as ADDED.
Source: Kubernetes v1.34, apiserver/pkg/storage/cacher.
Raises: ApiError, FieldLabelError; Gone if the log does not contain all events since the version.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Final

import attrs

from kschedd.api.objects import Object, Raw
from kschedd.api.schemas.field_labels import check_field_selector
from kschedd.service.cluster import ClusterBackend
from kschedd.service.operations.kubelet_events import ReporterOfChanges
from kschedd.service.operations.reading import as_selected, list_objects
from kschedd.service.operations.recorded_events import EVENT
from kschedd.service.request import NOT_OLDER, Request
from kschedd.service.turns import Turns
from kschedd.store.cluster_api import Bell, ClusterReader, ClusterWatch
from kschedd.store.errors import StillToCome
from kschedd.store.objects.log import ADDED, DELETED, MODIFIED, WatchEvent

MOST_BEHIND: Final = 200_000  # maximum number of events stored for a client that does not read them

Change = tuple[str, Raw]
"""ADDED, MODIFIED or DELETED, and the object."""


@attrs.define(eq=False)
class Watching:
    """A client's watch: the initial objects, and the source of changes."""

    request: Request
    events: ClusterWatch
    first: Sequence[Object] = ()
    after: int = 0  # version of the last write that the watch must not send
    kubelets: ReporterOfChanges | None = None  # source of the kubelets' Events, in a watch of Events

    def changes(self, event: WatchEvent) -> Sequence[Change]:
        """Return the changes that the watch sends for the event."""
        new = event.new
        if self.kubelets is None or new.kind == EVENT:
            change = self._change(event)
            return () if change is None else (change,)
        return () if event.version <= self.after else self.selected(self.kubelets.changes(event))

    def selected(self, events: Iterable[tuple[str, Object]]) -> list[Change]:
        """Return the changes that the watch sends for these Events, which are not stored."""
        namespace = self.request.namespace
        return [
            (type_, each.raw) for type_, each in events if namespace in ("", each.namespace) and self._selects(each)
        ]

    def _change(self, event: WatchEvent) -> Change | None:
        """Return the change that the watch sends; None if neither the old nor the new object is selected."""
        new = event.new
        if event.version <= self.after or (self.request.namespace and new.namespace != self.request.namespace):
            return None
        if new.kind in self.request.reading.without:
            return None
        selected = event.type != DELETED and self._selects(new)
        before = event.old is not None and self._selects(event.old)
        if selected:
            return MODIFIED if before else ADDED, new.raw
        if not before:
            return None
        if event.type == DELETED:
            return DELETED, new.raw
        assert event.old is not None, "an object that was selected before was there before"
        return DELETED, _at_version(event.old, event.version)

    def _selects(self, obj: Object) -> bool:
        options = self.request.reading
        if options.labels is not None and not options.labels.matches(obj.labels):
            return False
        return options.fields is None or options.fields.matches(as_selected(obj).raw)


async def watch_objects(
    cluster: ClusterBackend, request: Request, turns: Turns, client: str, bell: Bell | None = None
) -> Watching:
    """Open the watch that the request describes. `bell`: signal that wakes the watch; None creates a new signal.

    Existing objects are sent first if the request requires it, or if it has no version and does not exclude them.
    """
    options = request.reading
    if options.selected_in is not None:
        check_field_selector(options.selected_in, options.fields)
    first: Sequence[Object] = ()
    since = options.version
    if options.initial_events or (options.initial_events is None and not since):
        match = NOT_OLDER if since else options.match
        listing = attrs.evolve(request, reading=attrs.evolve(options, limit=0, match=match))
        page = await list_objects(cluster, listing, turns, client)
        first, since = page.objects, page.version
    kinds = {request.kind} if request.kind else None
    kubelets = await _kubelets(cluster) if request.kind == EVENT else None
    if kubelets is not None:
        kinds = {EVENT, "Pod"}
    try:
        return Watching(request, await cluster.store.watch(kinds, since, bell=bell), first, kubelets=kubelets)
    except StillToCome:
        if not options.patient:
            raise
        assert since is not None, "only a version that was given can be still to come"
        return Watching(request, await cluster.store.watch(kinds, bell=bell), after=since, kubelets=kubelets)


async def _kubelets(cluster: ClusterBackend) -> ReporterOfChanges | None:
    """Return the source of kubelets' Events; None if no pods are simulated."""

    def source(store: ClusterReader) -> ReporterOfChanges | None:
        if store.pod_behavior is None:
            return None
        return ReporterOfChanges(cluster.clock.now, "fields_of_1_35" in store.features)

    return await cluster.store.do(source)


def _at_version(obj: Object, version: int) -> dict[str, Any]:
    """Return the object with another resourceVersion."""
    return {**obj.raw, "metadata": {**obj.metadata, "resourceVersion": str(version)}}
