"""The operations that read objects: get and list, at the latest or an earlier version, and in pages.

An earlier version is computed from the current objects and the log of writes, which contains the previous state of each
object. Lists are sorted and filtered in slices.
Source: Kubernetes v1.34, apiserver/pkg/registry/generic/registry/store.go, apiserver/pkg/storage/cacher.
Raises: ApiError, FieldLabelError.
"""

from bisect import bisect_right
from collections.abc import Generator, Sequence
from typing import Final

import attrs

from kschedd.api.objects import Object
from kschedd.api.schemas.field_labels import check_field_selector
from kschedd.service.cluster import ClusterBackend
from kschedd.service.operations.components import COMPONENT_STATUS, component_statuses
from kschedd.service.operations.recorded_events import EVENT, recorded_event, with_recorded_events
from kschedd.service.operations.versions import converted
from kschedd.service.request import ReadOptions, Request
from kschedd.service.turns import Turns
from kschedd.store.cluster_api import ClusterReader
from kschedd.store.errors import NotFound, StillToCome
from kschedd.store.objects.listing import by_namespace, in_order
from kschedd.store.objects.log import WatchEvent
from kschedd.values import run_steps

FEW: Final = 256  # maximum number of objects that are sorted without yielding
_LOOKED_AT: Final = 200


@attrs.frozen(eq=False)
class ListPage:
    """Objects in order at `version`. If more objects follow, `more` is the key of the last object."""

    objects: Sequence[Object]
    version: int
    more: tuple[str, str] | None = None
    remaining: int | None = None


async def get(cluster: ClusterBackend, request: Request) -> Object:
    """Return the object that the request names, or the scheduler's event with that name."""
    wanted = request.reading.version

    def find(store: ClusterReader) -> Object:
        if wanted is not None and wanted > store.version:
            raise StillToCome(wanted, store.version)
        return store.get(request.kind, request.namespace, request.name)

    if request.kind == COMPONENT_STATUS.name:
        status = next((each for each in component_statuses() if each.name == request.name), None)
        if status is None:
            raise NotFound(request.kind, request.name)
        return status
    try:
        return await cluster.store.do(find)
    except NotFound:
        computed = next((each for each in request.reading.computed if each.name == request.name), None)
        if computed is not None:
            return computed
        event = await recorded_event(cluster, request.namespace, request.name) if request.kind == EVENT else None
        if event is None:
            raise
        return event


async def list_objects(cluster: ClusterBackend, request: Request, turns: Turns, client: str) -> ListPage:
    """Return the objects that the request selects. Raises Gone if the log no longer contains the version."""
    options = request.reading
    if options.selected_in is not None:
        check_field_selector(options.selected_in, options.fields)
    namespace = request.namespace or None
    wanted = options.version if options.cont is None else options.cont.version
    exact = options.cont is not None or options.exact
    if wanted is not None and wanted < 0:
        wanted = None

    def read(store: ClusterReader) -> tuple[Sequence[Sequence[Object]], int]:
        if wanted is not None and wanted > store.version:
            raise StillToCome(wanted, store.version, awaited=not exact)
        return store.present(request.kind, namespace), store.version

    present, version = await cluster.store.do(read)
    if request.kind == COMPONENT_STATUS.name:
        present = [component_statuses()]
    if options.computed:
        stored = {obj.key for space in present for obj in space}
        present = by_namespace((*present, [each for each in options.computed if each.key not in stored]))
    if request.kind == EVENT:
        named = () if options.fields is None else options.fields.requirements
        pod = next((each.value for each in named if each.path == "involvedObject.name" and each.equal), None)
        named_pod = None if namespace is None else pod
        present = await with_recorded_events(cluster, present, namespace, named_pod, turns, client)
        present = [list(map(as_selected, space)) for space in present]
    if exact and wanted and wanted != version:
        watch = await cluster.store.watch({request.kind}, wanted)
        try:
            events = [event for event in watch.take() if event.version <= version]
        finally:
            watch.close()
        present = await turns.drive(client, _undone(present, events, namespace))
        version = wanted
    sorting = in_order(present, options.labels, options.fields)
    few = sum(map(len, present)) <= FEW
    found = run_steps(sorting) if few else await turns.drive(client, sorting)
    # A name with a namespace identifies one object, so only that object is read and there is only one page.
    one_space = namespace is not None or (options.selected_in is not None and not options.selected_in.namespaced)
    by_key = one_space and _selects_name(options)
    return _page(found, options, version, present if options.selects and not by_key else ())


def as_selected(obj: Object) -> Object:
    """Return the object in the version whose fields selectors use; for an Event, the version of the core group."""
    if obj.kind != EVENT or obj.raw.get("apiVersion") == "v1":
        return obj
    return attrs.evolve(obj, raw=converted(obj.raw, "v1"))


def _selects_name(options: ReadOptions) -> bool:
    named = () if options.fields is None or options.cont is not None else options.fields.requirements
    return any(each.path == "metadata.name" and each.equal and each.value for each in named)


def _undone(
    present: Sequence[Sequence[Object]], events: Sequence[WatchEvent], namespace: str | None
) -> Generator[None, None, Sequence[Sequence[Object]]]:
    """Return the objects as they were before these events; the generator yields between its steps."""
    there = {obj.key: obj for space in present for obj in space}
    yield
    for number, event in enumerate(reversed(events)):
        if namespace is None or event.new.namespace == namespace:
            if event.old is None:
                there.pop(event.new.key, None)
            else:
                there[event.new.key] = event.old
        if number % _LOOKED_AT == 0:
            yield
    return by_namespace([list(there.values())])


def _page(found: list[Object], options: ReadOptions, version: int, others: Sequence[Sequence[Object]]) -> ListPage:
    """Return a page of the objects found. `others` are the objects to which the selector was applied.

    As in kube-apiserver, a full page reports that more objects may follow if any of `others` follow.
    """
    if options.cont is not None:
        keys = [(obj.namespace, obj.name) for obj in found]
        found = found[bisect_right(keys, options.cont.after) :]
    limit = options.limit
    if options.version == 0 and not options.match:
        limit = 0  # if any version is acceptable, the list has no pages
    if not limit or len(found) < limit or (len(found) == limit and not _follows(others, found[-1])):
        return ListPage(found, version)
    page = found[:limit]
    last = page[-1]
    remaining = None if options.selects else len(found) - limit
    return ListPage(page, version, (last.namespace, last.name), remaining)


def _follows(others: Sequence[Sequence[Object]], last: Object) -> bool:
    key = (last.namespace, last.name)
    return any((obj.namespace, obj.name) > key for space in others for obj in space)
