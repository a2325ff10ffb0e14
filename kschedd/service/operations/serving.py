"""Dispatch of a user's write to its operation, with the resulting warnings.

All writes of clients use `serve`: over HTTP or the socket, in the daemon's cluster, in a fork, or in a cluster in
virtual time.
"""

from collections.abc import Callable, Mapping
from typing import Final

import attrs

from kschedd.errors import KscheddError
from kschedd.registry.warnings.objects import creation_warnings, update_warnings
from kschedd.service.operations.authorizing import authorize
from kschedd.service.operations.binding import bind
from kschedd.service.operations.deletion import delete, evict
from kschedd.service.operations.scaling import scale
from kschedd.service.operations.writing import apply, create, patch, update
from kschedd.service.request import Request, Response
from kschedd.store.admission_plugins.attributes import UserInfo
from kschedd.store.cluster_api import ClusterWriter

Operation = Callable[[ClusterWriter, Request, list[str]], Response]

_JOBS: Final = frozenset(("Job", "CronJob"))
_CLUSTER = UserInfo("system:admin", ("system:masters",))
"""The user of requests without one."""


def serve(store: ClusterWriter, request: Request) -> Response:
    """Execute one request on the store. Raises KscheddError, with the request's warnings, and AccessDenied."""
    authorize(store, request)
    operation = _operation(request)
    warnings: list[str] = []
    with store.on_behalf_of(request.user or _CLUSTER) as remarks:
        try:
            response = operation(store, request, warnings)
            warnings += _warnings(request, response, store.features)
        except KscheddError as refusal:
            refusal.request_warnings = tuple(dict.fromkeys((*warnings, *remarks.warnings)))
            refusal.audit_annotations = remarks.annotations
            raise
    if response.object.kind in _JOBS and store.pod_behavior is not None:
        response = attrs.evolve(response, jobs_finish=store.pod_behavior.finish_jobs_s is not None)
    if not (warnings or remarks.warnings or remarks.annotations):
        return response
    together = tuple(dict.fromkeys((*warnings, *remarks.warnings)))
    return attrs.evolve(response, warnings=together, audit_annotations=remarks.annotations)


def _warnings(request: Request, response: Response, features: frozenset[str]) -> tuple[str, ...]:
    """Return the warnings about the stored object."""
    if response.action == "created":
        return creation_warnings(response.object, features)
    if response.before is None or request.subresource not in ("", "scale"):
        return ()
    return update_warnings(response.before, response.object, features)


def _operation(request: Request) -> Operation:
    return _OF_SUBRESOURCE.get(request.subresource) or _OF_VERB[request.verb]


_OF_SUBRESOURCE: Final[Mapping[str, Operation]] = {"binding": bind, "eviction": evict, "scale": scale}
_OF_VERB: Final[Mapping[str, Operation]] = {
    "create": create,
    "update": update,
    "patch": patch,
    "apply": apply,
    "delete": delete,
}
