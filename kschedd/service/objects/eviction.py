"""Methods over the Eviction subresource: a deletion that a pod's disruption budget must allow."""

from typing import Any

import attrs

from kschedd.service.cluster import ClusterBackend
from kschedd.service.objects.methods import DRY_RUN
from kschedd.service.params import Param
from kschedd.service.table import Call, Method
from kschedd.store.cluster_api import ClusterWriter

_INT64 = 2**63 - 1


@attrs.frozen(eq=False)
class EvictionMethods:
    _cluster: ClusterBackend

    def table(self) -> list[Method]:
        return [
            Method(
                "pods.evict",
                self.evict,
                (
                    Param("name", "string", doc="the pod's name"),
                    Param("namespace", "string", False, "default", "its namespace"),
                    Param("grace_period_s", "integer", False, doc="null: what the pod says", minimum=0, maximum=_INT64),
                    Param("uid", "string", False, "", "precondition: only the pod with this uid"),
                    Param("resource_version", "integer", False, doc="precondition: only this version of the pod"),
                    DRY_RUN,
                ),
                doc="Deletes a pod if its disruption budget allows that now; else the error is `too_many_requests`. "
                "A pod that is Pending, has ended or is being deleted needs no budget.",
                returns="`{gone}`; it is false while the pod is given its grace period, or a finalizer holds it.",
            )
        ]

    async def evict(self, call: Call) -> Any:
        name, namespace = call["name"], call["namespace"]

        def request(store: ClusterWriter) -> dict[str, bool]:
            store.evict(
                namespace,
                name,
                uid=call["uid"] or None,
                resource_version=call["resource_version"],
                grace_period_s=call["grace_period_s"],
                dry_run=call["dry_run"],
            )
            return {"gone": not call["dry_run"] and store.find("Pod", namespace, name) is None}

        return await self._cluster.store.do(request)
