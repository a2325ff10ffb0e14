"""Field labels: the fields that field selectors may use, by kind.

Source: Kubernetes v1.34, pkg/apis/*/v1/conversion.go (AddFieldLabelConversions...) and apimachinery's
DefaultMetaV1FieldSelectorConversion.
"""

from collections.abc import Mapping, Sequence
from typing import Final

import attrs

from kschedd.api.schemas.kinds import Kind
from kschedd.api.selecting.selector_text import OLD_NODE_NAME, FieldSelector
from kschedd.errors import KscheddError

_NAME: Final = ("metadata.name",)
_META: Final = ("metadata.name", "metadata.namespace")
# cluster-scoped kinds that do not support the field label metadata.namespace
_NAME_ONLY: Final = frozenset(("Node", "Namespace", "ResourceSlice"))
_EVENT: Final = (
    *(
        f"involvedObject.{field}"
        for field in ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
    ),
    "reason",
    "reportingComponent",
    "source",
    "type",
)
_MORE: Final[Mapping[str, Sequence[str]]] = {
    "Pod": (
        "spec.nodeName",
        "spec.restartPolicy",
        "spec.schedulerName",
        "spec.serviceAccountName",
        "spec.hostNetwork",
        "status.phase",
        "status.podIP",
        "status.podIPs",
        "status.nominatedNodeName",
    ),
    "Node": ("spec.unschedulable",),
    "ReplicationController": ("status.replicas",),
    "Event": _EVENT,
    "Namespace": ("status.phase",),
    "Secret": ("type",),
    "Service": ("spec.clusterIP", "spec.type"),
    "Job": ("status.successful",),
    "StatefulSet": ("status.successful",),
    "ResourceSlice": ("spec.nodeName", "spec.driver"),
}


@attrs.define(eq=False)
class FieldLabelError(KscheddError):
    """The error for a field label that this kind does not support."""

    kind: str
    label: str
    supported: tuple[str, ...]
    custom: bool = False  # True for a kind that is not built in

    @property
    def rpc_code(self) -> str:
        return "invalid"

    def __str__(self) -> str:
        if self.kind not in _MORE and not self.custom:
            return self.upstream
        return f"{self.upstream}; of a {self.kind} there are {', '.join(self.supported)}"

    @property
    def upstream(self) -> str:
        """Upstream's message, which for some kinds does not list the supported labels."""
        label = self.label[:100]
        if self.kind == "Job":
            return f'field label "{label}" not supported for Job'
        if self.kind == "StatefulSet":
            return f"field label not supported for appsv1.StatefulSet: {label}"
        if self.kind == "ResourceSlice":
            return f"field label not supported for resource.k8s.io/v1, Kind=ResourceSlice: {label}"
        if self.custom or self.kind in _MORE:
            return f"field label not supported: {label}"
        names = ", ".join(f'"{each}"' for each in self.supported)
        return f'"{label}" is not a known field selector: only {names}'


def check_field_selector(kind: Kind, selector: FieldSelector | None) -> None:
    """Raise FieldLabelError if the selector uses a field that is not supported for this kind."""
    if selector is None:
        return
    own = _NAME if kind.name in _NAME_ONLY else _META
    supported = (*own, *_MORE.get(kind.name, ()), *kind.selectable)
    for requirement in selector.requirements:
        if requirement.path not in supported and not (kind.name == "Pod" and requirement.path == OLD_NODE_NAME):
            raise FieldLabelError(kind.name, requirement.path, supported, not kind.known)
