"""The operations that delete an object, and that evict a pod if its disruption budgets allow it.

Source: Kubernetes v1.34, apiserver/pkg/endpoints/handlers (delete.go),
pkg/registry/core/pod/storage/eviction.go.
Raises: ApiError.
"""

from typing import Final

from kschedd.service.request import Request, Response
from kschedd.store.cluster_api import ClusterWriter

_PODS_STAY: Final = (
    "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set "
    "propagationPolicy=Orphan to suppress this warning"
)


def delete(store: ClusterWriter, request: Request, warnings: list[str]) -> Response:
    warnings += deletion_warnings(request)
    options, key = request.deletion, (request.kind, request.namespace, request.name)
    last = store.delete(
        *key,
        grace_period_s=options.grace_period_s,
        uid=options.uid,
        resource_version=options.resource_version,
        propagation=options.propagation,
        dry_run=options.dry_run,
    )
    return Response(last, gone=not options.dry_run and store.find(*key) is None)


def deletion_warnings(request: Request) -> tuple[str, ...]:
    return (_PODS_STAY,) if request.kind == "Job" and not request.deletion.propagation else ()


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
