"""Methods for pods' subresources: eviction, and binding for clients that schedule pods in addition to the scheduler."""

from typing import Any

import attrs

from kschedd.service.cluster import ClusterBackend
from kschedd.service.execution import Executor
from kschedd.service.objects.answers import BindingAnswer, EvictionAnswer
from kschedd.service.objects.parameters import DRY_RUN
from kschedd.service.params import Param
from kschedd.service.request import DeleteOptions, Request
from kschedd.service.table import Call, Methods, method

_INT64 = 2**63 - 1


@attrs.frozen(eq=False)
class PodMethods(Methods):
    _cluster: ClusterBackend

    @method(
        "pods.bind",
        (
            Param("name", "string", doc="the pod's name"),
            Param("node", "string", doc="name of the node"),
            Param("namespace", "string", False, "default", "its namespace"),
            Param("uid", "string", False, "", "precondition: only the pod with this uid"),
        ),
        doc="Binds a pod to a node as the scheduler does; for extenders that bind. A pod that already has a node is "
        "rejected with `conflict`; the node's existence and capacity are not checked.",
        answer=BindingAnswer,
        judged=True,
    )
    async def bind(self, call: Call) -> Any:
        body = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": call["name"], "uid": call["uid"]},
            "target": {"kind": "Node", "name": call["node"]},
        }
        request = Request("create", "Pod", call["namespace"], call["name"], "binding", body)
        await Executor.of(self._cluster, call).serve(request)
        return BindingAnswer(call["node"])

    @method(
        "pods.evict",
        (
            Param("name", "string", doc="the pod's name"),
            Param("namespace", "string", False, "default", "its namespace"),
            Param(
                "grace_period_s",
                "integer",
                False,
                doc="null: the grace period in the pod's spec",
                minimum=0,
                maximum=_INT64,
            ),
            Param("uid", "string", False, "", "precondition: only the pod with this uid"),
            Param("resource_version", "integer", False, doc="precondition: the pod still has this version"),
            DRY_RUN,
        ),
        doc=(
            "Deletes a pod if its disruption budget allows it now; otherwise the error is `too_many_requests`. Pods "
            "that are Pending, have finished or are being deleted do not count against a budget."
        ),
        answer=EvictionAnswer,
        judged=True,
    )
    async def evict(self, call: Call) -> Any:
        options = DeleteOptions(
            call["grace_period_s"],
            uid=call["uid"] or None,
            resource_version=call["resource_version"],
            dry_run=call["dry_run"],
        )
        request = Request("create", "Pod", call["namespace"], call["name"], "eviction", deletion=options)
        response = await Executor.of(self._cluster, call).serve(request)
        return EvictionAnswer(response.gone)
