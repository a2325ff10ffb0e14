"""The scale of a pod's controller: its wanted number of replicas.

For a ReplicaSet of a Deployment, the Deployment is used. A custom resource has a scale if its definition defines one.
Source: Kubernetes v1.34, pkg/controller/disruption/disruption.go (finders).
Raises: ScaleError, with kube-controller-manager's message, if the kind of the controller has no scale.
"""

from collections.abc import Mapping
from typing import Any, Final

import attrs

from kschedd.api.objects import Object, Raw
from kschedd.api.pods import Pod
from kschedd.api.schemas.kinds import BY_NAME, kind_of
from kschedd.controllers.running.controller import View
from kschedd.errors import KscheddError
from kschedd.store.custom_resources.kinds import version_of
from kschedd.store.custom_resources.scale import ScaleUnreadable, integer_at, scale_paths

_SCALED: Final = frozenset(("Deployment", "ReplicaSet", "ReplicationController", "StatefulSet"))


@attrs.define(eq=False)
class ScaleError(KscheddError):
    why: str


@attrs.frozen
class Scale:
    uid: str
    replicas: int


def scale_of_owner(pod: Pod, view: View) -> Scale | None:
    """Return the scale of the pod's controller, or None if the pod has no controller or it does not exist.

    Raises ScaleError.
    """
    reference = _controller_reference(pod)
    if reference is None:
        return None
    namespace = pod.namespace
    kind = kind_of({**reference, "metadata": {"namespace": namespace}})
    if kind.name in BY_NAME and kind.name not in _SCALED:
        resource = f"{kind.plural}.{kind.group}" if kind.group else kind.plural
        raise ScaleError(f"{resource} does not implement the scale subresource")
    owner = view.find(kind.name, namespace, reference.get("name") or "")
    if kind.name not in BY_NAME:
        return _custom(reference, owner, view)
    if owner is None or owner.uid != reference.get("uid"):
        return None
    if kind.name == "ReplicaSet":
        above = _controller_reference(owner)
        if above is not None and above.get("kind") == "Deployment":
            deployment = view.find("Deployment", namespace, above.get("name") or "")
            if deployment is not None and deployment.uid == above.get("uid"):
                return _scale(deployment)
    return _scale(owner)


def _scale(owner: Object) -> Scale:
    replicas = owner.spec.get("replicas")
    return Scale(owner.uid, 1 if replicas is None else replicas)


def _controller_reference(obj: Object) -> Raw | None:
    references = obj.metadata.get("ownerReferences") or ()
    return next((reference for reference in references if reference.get("controller")), None)


def _custom(reference: Raw, owner: Object | None, view: View) -> Scale | None:
    """Return the scale of a custom resource, from the path in its definition."""
    group, slash, version = str(reference.get("apiVersion") or "").rpartition("/")
    for definition in view.list("CustomResourceDefinition"):
        names: Mapping[str, Any] = definition.spec.get("names") or {}
        if definition.spec.get("group") != group or names.get("kind") != reference.get("kind"):
            continue
        paths = scale_paths(version_of(definition, f"{group}/{version}"))
        if paths is None:
            raise ScaleError(f"{names.get('plural')}.{group} does not implement the scale subresource")
        if owner is None or owner.uid != reference.get("uid"):
            return None
        try:
            return Scale(owner.uid, integer_at(owner.raw, paths.replicas) or 0)
        except ScaleUnreadable as wrong:  # the object was stored before its definition had a scale
            raise ScaleError(wrong.why) from None
    shown = f"{group}{slash}{version}"
    raise ScaleError(f'no matches for kind "{reference.get("kind")}" in version "{shown}"')
