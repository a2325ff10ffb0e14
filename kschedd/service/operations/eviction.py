"""The eviction subresource: a deletion that the pod's disruption budget must allow.

Source: Kubernetes v1.34, pkg/registry/core/pod/storage/eviction.go.
Raises: ApiError.
"""

from kschedd.service.request import Request, Response
from kschedd.store.cluster_api import ClusterWriter


def evict(store: ClusterWriter, request: Request, warnings: list[str]) -> Response:
    options = request.deletion
    last = store.evict(
        request.namespace,
        request.name,
        uid=options.uid,
        resource_version=options.resource_version,
        grace_period_s=options.grace_period_s,
        dry_run=options.dry_run,
    )
    gone = not options.dry_run and store.find("Pod", request.namespace, request.name) is None
    return Response(last, gone=gone)
